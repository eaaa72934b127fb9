/** The reader went away: what a process gets as SIGPIPE. */
export class BrokenPipeError extends Error {
  override readonly name = 'BrokenPipeError';
}

export interface ByteWriter {
  /** Waits while the reader is behind. Rejects with BrokenPipeError when there is no reader any more. */
  write(data: Uint8Array | string): Promise<void>;
}

/** Bytes in order, with the means to read lines and leave the rest for the next reader. */
export interface ByteReader {
  /** The next bytes, however many; undefined at the end. */
  read(): Promise<Uint8Array | undefined>;
  /** A line without its newline; undefined at the end. `complete` tells whether there was a newline. */
  readLine(): Promise<{ line: string; complete: boolean } | undefined>;
  /** Everything up to the end; at most MAX_SLURP bytes. */
  readAll(): Promise<Uint8Array>;
  /** No more will be read. */
  close(): void;
}

/** What an applet that needs all of its input at once may hold. */
const MAX_SLURP = 64 * 1024 * 1024;
const MAX_LINE = 16 * 1024 * 1024;
/** Bytes in a pipe before its writer waits. */
const PIPE_BYTES = 64 * 1024;
const EMPTY = new Uint8Array(0);

/** More input than an applet may hold in memory. */
export class TooMuchInputError extends Error {
  override readonly name = 'TooMuchInputError';
}

export function createByteReader(
  pull: () => Promise<Uint8Array | undefined>,
  close: () => void = () => undefined,
): ByteReader {
  let rest: Uint8Array = EMPTY;
  let ended = false;
  const read = async (): Promise<Uint8Array | undefined> => {
    if (rest.length > 0) {
      const chunk = rest;
      rest = EMPTY;
      return chunk;
    }
    if (ended) return undefined;
    // An end is not for ever: ^D on a terminal ends one reader, and the shell reads on.
    return pull();
  };
  return {
    read,
    async readLine() {
      const parts: Uint8Array[] = [];
      let size = 0;
      for (;;) {
        const chunk = await read();
        if (chunk === undefined) {
          if (size === 0) return undefined;
          return { line: Buffer.concat(parts).toString('utf8'), complete: false };
        }
        const end = chunk.indexOf(10);
        if (end >= 0) {
          rest = chunk.subarray(end + 1);
          parts.push(chunk.subarray(0, end));
          return { line: Buffer.concat(parts).toString('utf8'), complete: true };
        }
        parts.push(chunk);
        size += chunk.length;
        if (size > MAX_LINE) throw new TooMuchInputError('line too long');
      }
    },
    async readAll() {
      const parts: Uint8Array[] = [];
      let size = 0;
      for (let chunk = await read(); chunk !== undefined; chunk = await read()) {
        parts.push(chunk);
        size += chunk.length;
        if (size > MAX_SLURP) throw new TooMuchInputError('out of memory');
      }
      return Buffer.concat(parts);
    },
    close() {
      ended = true;
      rest = EMPTY;
      close();
    },
  };
}

export function readerOf(data: Uint8Array | string): ByteReader {
  let left: Uint8Array | undefined = typeof data === 'string' ? Buffer.from(data) : data;
  return createByteReader(async () => {
    const chunk = left && left.length > 0 ? left : undefined;
    left = undefined;
    return chunk;
  });
}

/** One writer's end, one reader's end, PIPE_BYTES between them. */
export function createBytePipe(): { reader: ByteReader; writer: ByteWriter & { end(): void } } {
  const queue: Uint8Array[] = [];
  let size = 0;
  let ended = false;
  let closed = false;
  let wakeReader: (() => void) | undefined;
  let wakeWriter: (() => void) | undefined;
  const wake = (): void => {
    wakeReader?.();
    wakeReader = undefined;
    wakeWriter?.();
    wakeWriter = undefined;
  };
  const reader = createByteReader(
    async () => {
      while (queue.length === 0 && !ended) {
        await new Promise<void>((resolve) => {
          wakeReader = resolve;
        });
      }
      const chunk = queue.shift();
      size -= chunk?.length ?? 0;
      wakeWriter?.();
      wakeWriter = undefined;
      return chunk;
    },
    () => {
      closed = true;
      queue.length = 0;
      size = 0;
      wake();
    },
  );
  return {
    reader,
    writer: {
      async write(data) {
        const bytes = typeof data === 'string' ? Buffer.from(data) : data;
        if (bytes.length === 0) return;
        if (closed) throw new BrokenPipeError('Broken pipe');
        queue.push(bytes);
        size += bytes.length;
        wakeReader?.();
        wakeReader = undefined;
        while (size > PIPE_BYTES && !closed) {
          await new Promise<void>((resolve) => {
            wakeWriter = resolve;
          });
        }
      },
      end() {
        ended = true;
        wake();
      },
    },
  };
}

/** Collects what is written; for `$(…)`. Throws TooMuchInputError beyond its limit. */
export function createCollector(): ByteWriter & { text(): string } {
  const parts: Uint8Array[] = [];
  let size = 0;
  return {
    async write(data) {
      const bytes = typeof data === 'string' ? Buffer.from(data) : data;
      parts.push(bytes);
      size += bytes.length;
      if (size > MAX_SLURP) throw new TooMuchInputError('out of memory');
    },
    text: () => Buffer.concat(parts).toString('utf8'),
  };
}

export const nullWriter: ByteWriter = { write: async () => undefined };
