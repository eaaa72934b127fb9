import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { applyMergePatch, deepEqual } from '#server/kube';
import { mergePatch } from './changes.ts';

/** JSON objects without nulls: a merge patch cannot say them. */
const { object } = fc.letrec<{ value: unknown; object: Record<string, unknown> }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.string(),
    fc.integer(),
    fc.boolean(),
    fc.array(fc.integer(), { maxLength: 3 }),
    tie('object'),
  ),
  object: fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd'), tie('value'), { maxKeys: 4 }),
}));

describe('a merge patch between two objects', () => {
  it('turns the one into the other', () => {
    fc.assert(
      fc.property(object, object, (before, after) => {
        const patch = mergePatch(before, after);
        expect(deepEqual(applyMergePatch(before, patch ?? {}), after)).toBe(true);
      }),
    );
  });

  it('is absent exactly when they are equal', () => {
    fc.assert(
      fc.property(object, object, (before, after) => {
        expect(mergePatch(before, after) === undefined).toBe(deepEqual(before, after));
      }),
    );
  });
});
