import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  formatLabelSelector,
  formatLabels,
  labelSelectorText,
  matchesLabelSelector,
  matchesLabels,
  parseFieldSelector,
  parseLabelSelector,
} from './selectors.ts';

const refusal = (action: () => unknown): string => {
  try {
    action();
  } catch (error) {
    return (error as Error).message;
  }
  return 'no error';
};

const key = fc.constantFrom('app', 'tier', 'example.com/zone');
const value = fc.constantFrom('', 'a', 'b', 'c-1');
const labels = fc.dictionary(key, value);

describe('label selectors as text', () => {
  it.each([
    ['', {}, true],
    ['app', { app: '' }, true],
    ['!app', { app: 'a' }, false],
    ['app=a', { app: 'a' }, true],
    ['app == a , tier!=x', { app: 'a' }, true],
    ['app in (a, b)', { app: 'b' }, true],
    ['app notin (a,b)', {}, true],
    ['app in ()', { app: '' }, true],
    ['in in (in,notin)', { in: 'notin' }, true],
    ['size>5', { size: '6' }, true],
    ['size<5', { size: '6' }, false],
    ['size>5', { size: 'big' }, false],
    ['app', { constructor: 'x' }, false],
  ])('%s of %j is %s', (text, present, expected) => {
    expect(parseLabelSelector(text)(present)).toBe(expected);
  });

  it.each([
    ['a b', "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"],
    ['a in b', "unable to parse requirement: found 'b' expected: '('"],
    ['a=b,', "found '', expected: identifier after ','"],
    ['=x', "found '=', expected: !, identifier, or 'end of string'"],
    ['a=b c', "found 'c', expected: ',' or 'end of string'"],
    ['a in (b', "unable to parse requirement: found '', expected: ',' or ')'"],
    [
      'a=-x',
      `unable to parse requirement: values[0][a]: Invalid value: "-x": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`,
    ],
    [
      'a>x',
      `unable to parse requirement: values[0]: Invalid value: "x": for 'Gt', 'Lt' operators, the value must be an integer`,
    ],
  ])('%s is refused: %s', (text, message) => {
    expect(refusal(() => parseLabelSelector(text))).toBe(message);
  });

  it('agrees with the selector it is the text of', () => {
    const expression = fc.record({
      key,
      operator: fc.constantFrom('In', 'NotIn', 'Exists', 'DoesNotExist'),
      values: fc.array(value, { minLength: 1, maxLength: 3 }),
    });
    fc.assert(
      fc.property(
        labels,
        fc.array(expression, { maxLength: 3 }),
        labels,
        (matchLabels, expressions, present) => {
          const matchExpressions = expressions.map(({ operator, values, ...rest }) =>
            operator.endsWith('In') ? { ...rest, operator, values } : { ...rest, operator },
          );
          const selector = { matchLabels, matchExpressions };
          const text = labelSelectorText(selector);
          expect(parseLabelSelector(text)(present)).toBe(matchesLabelSelector(selector, present));
        },
      ),
    );
  });
});

describe('label selectors as objects', () => {
  it('match nothing when absent and everything when empty', () => {
    expect([matchesLabelSelector(undefined, {}), matchesLabelSelector({}, undefined)]).toEqual([false, true]);
  });

  it('match nothing with an operator nobody knows', () => {
    expect(matchesLabelSelector({ matchExpressions: [{ key: 'a', operator: 'Near' }] }, { a: 'b' })).toBe(
      false,
    );
  });

  it('are written sorted by key, for people and for programs', () => {
    const selector = {
      matchLabels: { b: '2', a: '1' },
      matchExpressions: [{ key: 'c', operator: 'In', values: ['z', 'y'] }],
    };
    expect(formatLabelSelector(selector)).toBe('a=1,b=2,c in (y,z)');
    expect([formatLabelSelector({}), labelSelectorText({})]).toEqual(['<none>', '']);
    expect(formatLabelSelector({ matchExpressions: [{ key: 'c', operator: 'In' }] })).toBe('<error>');
  });

  it('of Services are plain maps', () => {
    expect(matchesLabels({ app: 'a' }, { app: 'a', tier: 'x' })).toBe(true);
    expect(matchesLabels({ app: 'a' }, undefined)).toBe(false);
    expect(formatLabels({ b: '2', a: '1' })).toBe('a=1,b=2');
  });
});

describe('field selectors', () => {
  it('are split at bare commas, unescaped and sorted', () => {
    expect(parseFieldSelector('status.phase!=Failed,metadata.name==a\\,b\\=c,')).toEqual([
      { field: 'metadata.name', operator: '=', value: 'a,b=c' },
      { field: 'status.phase', operator: '!=', value: 'Failed' },
    ]);
  });

  it.each([
    ['metadata.name', "invalid selector: 'metadata.name'; can't understand 'metadata.name'"],
    ['a=b=c', 'invalid field selector: unescaped character in value: 61'],
    ['a=b\\c', 'invalid field selector: invalid escape sequence: \\c'],
  ])('%s is refused: %s', (text, message) => {
    expect(refusal(() => parseFieldSelector(text))).toBe(message);
  });
});
