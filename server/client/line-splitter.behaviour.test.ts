import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createLineSplitter, LineTooLongError } from './line-splitter.ts';

describe('line splitter', () => {
  it('finds the same lines however the bytes are cut', () => {
    const line = fc
      .string({ unit: 'grapheme', minLength: 1, maxLength: 30 })
      .filter((text) => !text.includes('\n'));
    fc.assert(
      fc.property(
        fc.array(line),
        fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }),
        (lines, cuts) => {
          const bytes = Buffer.from(lines.map((text) => `${text}\n`).join(''));
          const found: string[] = [];
          const splitter = createLineSplitter(1024, (text) => found.push(text));
          for (let at = 0, i = 0; at < bytes.length; i++) {
            const size = cuts[i % cuts.length] ?? 1;
            splitter.push(bytes.subarray(at, at + size));
            at += size;
          }
          expect(found).toEqual(lines);
        },
      ),
    );
  });

  it('holds a half line back and passes over empty ones', () => {
    const found: string[] = [];
    const splitter = createLineSplitter(10, (text) => found.push(text));
    splitter.push(Buffer.from('\n\na\n\nb'));
    expect(found).toEqual(['a']);
    splitter.push(Buffer.from('c\n'));
    expect(found).toEqual(['a', 'bc']);
  });

  it('gives up on a line longer than the limit, without waiting for its end', () => {
    const splitter = createLineSplitter(10, () => undefined);
    splitter.push(Buffer.from('0123456789\n01234'));
    expect(() => splitter.push(Buffer.from('567890'))).toThrow(LineTooLongError);
  });
});
