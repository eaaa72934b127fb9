// store/testing: the suite every StoreEngine passes; the contract's sentences, checked.
//
// `describeStoreContract(name, createHarness)` declares vitest tests: single promises one by one, then random
// sequences of calls beside a model. A harness is a place engines keep their data in.
import { describe } from 'vitest';
import { describeEngines } from './engines.ts';
import type { CreateHarness } from './harness.ts';
import { describeModel } from './model.ts';
import { describeLists, describeWatches } from './reads.ts';
import { describeWrites } from './writes.ts';

export type { CreateHarness, StoreHarness } from './harness.ts';

export function describeStoreContract(name: string, createHarness: CreateHarness): void {
  describe(`${name} keeps the store contract`, () => {
    describe('writes', () => describeWrites(createHarness));
    describe('lists', () => describeLists(createHarness));
    describe('watches', () => describeWatches(createHarness));
    describe('engines', () => describeEngines(createHarness));
    describe('model', () => describeModel(createHarness));
  });
}
