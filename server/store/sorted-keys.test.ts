import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createSortedKeys } from './sorted-keys.ts';

const key = fc.integer({ min: 0, max: 3_000 }).map((n) => n.toString(36).padStart(3, '0'));

it('behaves as a sorted array does, over many runs', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(key, { maxLength: 1_500, size: 'max' }),
      fc.array(key, { maxLength: 1_500, size: 'max' }),
      fc.array(key, { maxLength: 2_000, size: 'max' }),
      (initial, added, removed) => {
        const model = new Set(initial);
        const keys = createSortedKeys([...initial].sort());
        for (const each of added) if (!model.has(each)) keys.insert((model.add(each), each));
        for (const each of removed) if (model.delete(each)) keys.remove(each);
        const sorted = [...model].sort();
        expect(keys.size).toBe(sorted.length);
        expect(keys.slice(0, keys.size)).toEqual(sorted);
        for (const bound of removed.slice(0, 20)) {
          const rank = sorted.filter((other) => other < bound).length;
          expect(keys.rank((other) => other < bound)).toBe(rank);
          expect(keys.slice(rank, rank + 7)).toEqual(sorted.slice(rank, rank + 7));
        }
      },
    ),
    { numRuns: 30 },
  );
});

it('holds 100,000 keys put in random order', () => {
  const keys = createSortedKeys();
  for (let i = 0; i < 100_000; i++) keys.insert(`/registry/pods/${((i * 7_919) % 100_000) + 100_000}`);
  expect(keys.size).toBe(100_000);
  expect(keys.rank((other) => other < '/registry/pods/150000')).toBe(50_000);
  expect(keys.slice(50_000, 50_002)).toEqual(['/registry/pods/150000', '/registry/pods/150001']);
});
