import fc from 'fast-check';
import { expect, it } from 'vitest';
import { scanJson } from './json-text.ts';

it.each([
  ['', 'unexpected end of JSON input'],
  ['{"a":1', 'unexpected end of JSON input'],
  ['{"a" 1}', "invalid character '1' after object key"],
  ['{"a":1 "b":2}', `invalid character '"' after object key:value pair`],
  ['[1 2]', "invalid character '2' after array element"],
  ['{a:1}', "invalid character 'a' looking for beginning of object key string"],
  ['tru ', "invalid character ' ' in literal true (expecting 'e')"],
  ['{} x', "invalid character 'x' after top-level value"],
  ['"\\x"', "invalid character 'x' in string escape code"],
  ['-', 'unexpected end of JSON input'],
])('%j: %s', (text, message) => {
  expect(scanJson(text).syntaxError).toBe(message);
});

it('accepts what JSON.parse accepts, and nothing else', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.json(),
        fc.string(),
        fc.json().map((text) => text.slice(0, -1)),
      ),
      (text) => {
        let parses = true;
        try {
          JSON.parse(text);
        } catch {
          parses = false;
        }
        expect(scanJson(text).syntaxError === undefined).toBe(parses);
      },
    ),
  );
});

it('finds members that come twice, by path', () => {
  expect(scanJson('{"a":{"b":1,"b":2},"c":[{"d":1,"d":1}],"a":1}').duplicates).toEqual([
    'duplicate field "a.b"',
    'duplicate field "c[0].d"',
    'duplicate field "a"',
  ]);
});
