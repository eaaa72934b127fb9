/** The reader was slower than the queue is long. */
export class QueueOverflowError extends Error {
  override readonly name = 'QueueOverflowError';
}

/** One writer, one reader, a limit: what `push` cannot hold ends the queue with QueueOverflowError. */
export interface AsyncQueue<T> extends AsyncIterable<T> {
  /** False when the queue has ended (also when this very push overflowed it). */
  push(item: T): boolean;
  /** Ends the queue after what it holds; with an error, the reader then throws it. */
  end(error?: unknown): void;
  readonly size: number;
}

export function createAsyncQueue<T>(limit: number): AsyncQueue<T> {
  const items: T[] = [];
  let ended = false;
  let failure: { error: unknown } | undefined;
  let wake: (() => void) | undefined;
  const notify = (): void => {
    wake?.();
    wake = undefined;
  };
  return {
    push(item) {
      if (ended) return false;
      if (items.length >= limit) {
        ended = true;
        failure = { error: new QueueOverflowError(`more than ${limit} items waited`) };
        notify();
        return false;
      }
      items.push(item);
      notify();
      return true;
    },
    end(error) {
      if (ended) return;
      ended = true;
      if (error !== undefined) failure = { error };
      notify();
    },
    get size() {
      return items.length;
    },
    async *[Symbol.asyncIterator]() {
      for (;;) {
        while (items.length > 0) yield items.shift() as T;
        if (ended) {
          if (failure) throw failure.error;
          return;
        }
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
}
