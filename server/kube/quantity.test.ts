import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  addQuantities,
  canonicalQuantity,
  compareQuantities,
  isQuantity,
  quantityToMilli,
  quantityToNumber,
  subtractQuantities,
} from './quantity.ts';

describe('canonical form', () => {
  it.each([
    ['0', '0'],
    ['0.5', '500m'],
    ['1000m', '1'],
    ['1500m', '1500m'],
    ['1.5Gi', '1536Mi'],
    ['1024Ki', '1Mi'],
    ['1000Ki', '1000Ki'],
    ['0.5Ki', '512'],
    ['2000', '2k'],
    ['12e6', '12e6'],
    ['1E3', '1E3'],
    ['-0.25', '-250m'],
    ['1e-12', '1e-9'],
    ['00100m', '00100m'],
    ['+5', '+5'],
    ['9Ei', '9223372036854775807'],
  ])('of %s is %s', (text, expected) => {
    expect(canonicalQuantity(text)).toBe(expected);
  });

  it.each(['', 'x', '1Q', '1 Gi', '--1', '1.2.3'])('is refused for %j', (text) => {
    expect(isQuantity(text)).toBe(false);
    expect(() => canonicalQuantity(text)).toThrow(/quantit/);
  });

  it('has the same value and settles', () => {
    const text = fc
      .tuple(fc.integer({ min: -1e9, max: 1e9 }), fc.constantFrom('', '.5', '.125'), suffix)
      .map(([whole, fraction, end]) => `${whole}${fraction}${end}`);
    fc.assert(
      fc.property(text, (quantity) => {
        const canonical = canonicalQuantity(quantity);
        expect(compareQuantities(canonical, quantity)).toBe(0);
        const again = canonicalQuantity(canonical);
        expect(canonicalQuantity(again)).toBe(again);
      }),
    );
  });
});

const suffix = fc.constantFrom('', 'm', 'k', 'M', 'Ki', 'Mi', 'Gi', 'e3');
const quantity = fc.tuple(fc.integer({ min: 0, max: 1e6 }), suffix).map(([n, end]) => `${n}${end}`);

describe('arithmetic', () => {
  it('adds in the suffixes of the first, or of the second when the first is zero', () => {
    expect(addQuantities('1Gi', '512Mi')).toBe('1536Mi');
    expect(addQuantities('0', '512Mi')).toBe('512Mi');
    expect(addQuantities('250m', '1')).toBe('1250m');
    expect(subtractQuantities('1', '250m')).toBe('750m');
  });

  it('commutes, and subtraction undoes it', () => {
    fc.assert(
      fc.property(quantity, quantity, (a, b) => {
        expect(compareQuantities(addQuantities(a, b), addQuantities(b, a))).toBe(0);
        expect(compareQuantities(subtractQuantities(addQuantities(a, b), b), a)).toBe(0);
        expect(Math.sign(compareQuantities(a, b))).toBe(-Math.sign(compareQuantities(b, a)) || 0);
      }),
    );
  });

  it('reads numbers and thousandths, the latter rounded up', () => {
    expect([quantityToNumber('1500m'), quantityToNumber('1Ki')]).toEqual([1.5, 1024]);
    expect([quantityToMilli('1'), quantityToMilli('100u'), quantityToMilli('-100u')]).toEqual([
      1000n,
      1n,
      -1n,
    ]);
  });
});
