import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cloneJson } from './json-value.ts';
import { applyMergePatch } from './merge-patch.ts';

describe('merge patch', () => {
  it.each([
    [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
    [{ a: 'b', c: 1 }, { a: null }, { c: 1 }],
    [{ a: { b: 1, c: 2 } }, { a: { b: null } }, { a: { c: 2 } }],
    [{ a: [1] }, { a: [{ b: null }, null] }, { a: [{}, null] }],
    [{ a: 'x' }, { a: { b: null, c: 1 } }, { a: { c: 1 } }],
    [{}, { a: { b: { c: null } } }, { a: { b: {} } }],
  ])('%j patched by %j is %j', (document, patch, expected) => {
    expect(applyMergePatch(document, patch)).toEqual(expected);
  });

  it('must be an object or a list', () => {
    expect(() => applyMergePatch({}, null)).toThrow('Invalid JSON Patch');
    expect(() => applyMergePatch({}, 'x')).toThrow('Invalid JSON Patch');
  });

  it('is idempotent and leaves its arguments alone', () => {
    const key = fc.constantFrom('a', 'b', 'c');
    const leaf = fc.oneof(fc.integer(), fc.constant(null), fc.constant([1]));
    const objects = fc.dictionary(
      key,
      fc.oneof(leaf, fc.dictionary(key, fc.oneof(leaf, fc.dictionary(key, leaf)))),
    );
    fc.assert(
      fc.property(objects, objects, (document, patch) => {
        const [documentBefore, patchBefore] = [cloneJson(document), cloneJson(patch)];
        const once = applyMergePatch(document, patch);
        expect(applyMergePatch(once, patch)).toEqual(once);
        expect([document, patch]).toEqual([documentBefore, patchBefore]);
      }),
    );
  });
});
