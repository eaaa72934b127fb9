/** A line was longer than allowed. */
export class LineTooLongError extends Error {
  override readonly name = 'LineTooLongError';
}

const NEWLINE = 0x0a;

/**
 * Cuts chunks of bytes into lines of UTF-8 text, without their newline; empty lines are passed over. `push` throws
 * LineTooLongError when more than `limit` bytes come without a newline, and whatever `onLine` throws. What follows the
 * last newline is held, never given out: a half line is no line.
 */
export function createLineSplitter(
  limit: number,
  onLine: (line: string) => void,
): { push(chunk: Buffer): void } {
  let held: Buffer[] = [];
  let size = 0;

  const hold = (part: Buffer): void => {
    size += part.length;
    if (size > limit) throw new LineTooLongError(`a line is longer than ${limit} bytes`);
    held.push(part);
  };
  return {
    push(chunk) {
      let start = 0;
      for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
        hold(chunk.subarray(start, end));
        const line = held.length === 1 ? held[0] : Buffer.concat(held);
        held = [];
        size = 0;
        start = end + 1;
        if (line && line.length > 0) onLine(line.toString('utf8'));
      }
      if (start < chunk.length) hold(chunk.subarray(start));
    },
  };
}
