import type { Clock, Timer } from '#server/base';

export interface WorkQueueOptions {
  clock: Clock;
  /** Milliseconds before the first rate-limited retry of a key; doubles with every further one. Default 5. */
  baseDelay?: number;
  /** The longest such wait, milliseconds. Default 1,000,000. */
  maxDelay?: number;
}

/**
 * Keys to work on, each at most once at a time. A key added while it waits is not added again; one added while it is
 * being processed comes back after `done`. So the queue never holds more entries than there are distinct keys.
 */
export interface WorkQueue {
  add(key: string): void;
  /** Adds after `milliseconds`; of several pending waits for one key the earliest counts. */
  addAfter(key: string, milliseconds: number): void;
  /** Adds after a wait that grows with every call until `forget`. */
  addRateLimited(key: string): void;
  /** The key's next rate-limited wait is the first one again. */
  forget(key: string): void;
  /** How often the key was added rate-limited since it was last forgotten. */
  retries(key: string): number;
  /**
   * The next key, waiting for one. Undefined when the queue was shut down and is empty, or `signal` aborted.
   * Whoever gets a key must call `done` with it.
   */
  get(signal?: AbortSignal): Promise<string | undefined>;
  done(key: string): void;
  /** How many keys wait to be processed. */
  readonly length: number;
  /** Nothing more is accepted, delayed keys are dropped; what already waits can still be taken. */
  shutDown(): void;
}

interface Delayed {
  due: number;
  timer: Timer;
}

/** First in, first out, without shifting: the spent head is cut off once it is the larger part. */
function createFifo(): { push(key: string): void; shift(): string | undefined; readonly size: number } {
  let items: string[] = [];
  let head = 0;
  return {
    push: (key) => {
      items.push(key);
    },
    shift() {
      if (head >= items.length) return undefined;
      const key = items[head++];
      if (head > 64 && head * 2 > items.length) {
        items = items.slice(head);
        head = 0;
      }
      return key;
    },
    get size() {
      return items.length - head;
    },
  };
}

/** Keys that are handed to `add` later, each with its earliest wait. */
function createDelays(clock: Clock, add: (key: string) => void) {
  const delayed = new Map<string, Delayed>();
  return {
    addAfter(key: string, milliseconds: number): void {
      if (milliseconds <= 0) {
        add(key);
        return;
      }
      const due = clock.now() + milliseconds;
      const pending = delayed.get(key);
      if (pending && pending.due <= due) return;
      pending?.timer.cancel();
      const timer = clock.after(milliseconds, () => {
        delayed.delete(key);
        add(key);
      });
      delayed.set(key, { due, timer });
    },
    clear(): void {
      for (const { timer } of delayed.values()) timer.cancel();
      delayed.clear();
    },
  };
}

/** Who waits for a key, in order of arrival. */
function createWaiters() {
  const waiters = new Set<(key: string | undefined) => void>();
  return {
    wait: (signal: AbortSignal | undefined): Promise<string | undefined> =>
      new Promise((resolve) => {
        const onAbort = (): void => {
          waiters.delete(waiter);
          resolve(undefined);
        };
        const waiter = (key: string | undefined): void => {
          signal?.removeEventListener('abort', onAbort);
          resolve(key);
        };
        waiters.add(waiter);
        signal?.addEventListener('abort', onAbort, { once: true });
      }),
    /** Gives the key that `take` returns to who waits longest; takes none when nobody waits. */
    wakeOne(take: () => string | undefined): void {
      const [waiter] = waiters;
      if (!waiter) return;
      waiters.delete(waiter);
      waiter(take());
    },
    dismissAll(): void {
      for (const waiter of waiters) waiter(undefined);
      waiters.clear();
    },
  };
}

/** Models k8s.io/client-go/util/workqueue: the typed rate-limiting queue with the per-item exponential limiter. */
export function createWorkQueue(options: WorkQueueOptions): WorkQueue {
  const { clock, baseDelay = 5, maxDelay = 1_000_000 } = options;
  const ready = createFifo();
  const dirty = new Set<string>();
  const processing = new Set<string>();
  const delays = createDelays(clock, (key) => queue.add(key));
  const failures = new Map<string, number>();
  const waiters = createWaiters();
  let shut = false;

  const take = (): string | undefined => {
    const key = ready.shift();
    if (key === undefined) return undefined;
    processing.add(key);
    dirty.delete(key);
    return key;
  };
  const offer = (key: string): void => {
    ready.push(key);
    waiters.wakeOne(take);
  };
  const queue: WorkQueue = {
    add(key) {
      if (shut || dirty.has(key)) return;
      dirty.add(key);
      if (!processing.has(key)) offer(key);
    },
    addAfter(key, milliseconds) {
      if (!shut) delays.addAfter(key, milliseconds);
    },
    addRateLimited(key) {
      if (shut) return;
      const before = failures.get(key) ?? 0;
      failures.set(key, before + 1);
      queue.addAfter(key, Math.min(baseDelay * 2 ** before, maxDelay));
    },
    forget(key) {
      failures.delete(key);
    },
    retries: (key) => failures.get(key) ?? 0,
    get(signal) {
      if (signal?.aborted) return Promise.resolve(undefined);
      if (ready.size > 0 || shut) return Promise.resolve(take());
      return waiters.wait(signal);
    },
    done(key) {
      if (!processing.delete(key)) return;
      if (dirty.has(key)) offer(key);
    },
    get length() {
      return ready.size;
    },
    shutDown() {
      if (shut) return;
      shut = true;
      delays.clear();
      failures.clear();
      waiters.dismissAll();
    },
  };
  return queue;
}
