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
class Fifo {
  #items: string[] = [];
  #head = 0;

  push(key: string): void {
    this.#items.push(key);
  }

  shift(): string | undefined {
    if (this.#head >= this.#items.length) return undefined;
    const key = this.#items[this.#head++];
    if (this.#head === this.#items.length) {
      this.#items = [];
      this.#head = 0;
    } else if (this.#head > 64 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return key;
  }

  get size(): number {
    return this.#items.length - this.#head;
  }
}

/** Who waits for a key, in order of arrival. */
class Waiters {
  readonly #waiters = new Set<(key: string | undefined) => void>();

  wait(signal: AbortSignal | undefined): Promise<string | undefined> {
    return new Promise((resolve) => {
      const onAbort = (): void => {
        this.#waiters.delete(waiter);
        resolve(undefined);
      };
      const waiter = (key: string | undefined): void => {
        signal?.removeEventListener('abort', onAbort);
        resolve(key);
      };
      this.#waiters.add(waiter);
      signal?.addEventListener('abort', onAbort, { once: true });
    });
  }

  get size(): number {
    return this.#waiters.size;
  }

  /** Gives the key to who waits longest. */
  wakeOne(key: string | undefined): void {
    const [waiter] = this.#waiters;
    if (!waiter) return;
    this.#waiters.delete(waiter);
    waiter(key);
  }

  dismissAll(): void {
    for (const waiter of this.#waiters) waiter(undefined);
    this.#waiters.clear();
  }
}

/** A class, with what is seldom needed made when it is: a tenant has some thirty queues, most of them idle. */
class KeyQueue implements WorkQueue {
  readonly #clock: Clock;
  readonly #baseDelay: number;
  readonly #maxDelay: number;
  readonly #ready = new Fifo();
  readonly #dirty = new Set<string>();
  readonly #processing = new Set<string>();
  readonly #waiters = new Waiters();
  #delayed: Map<string, Delayed> | undefined;
  #failures: Map<string, number> | undefined;
  #waking = false;
  #shut = false;

  constructor({ clock, baseDelay = 5, maxDelay = 1_000_000 }: WorkQueueOptions) {
    this.#clock = clock;
    this.#baseDelay = baseDelay;
    this.#maxDelay = maxDelay;
  }

  add(key: string): void {
    if (this.#shut || this.#dirty.has(key)) return;
    this.#dirty.add(key);
    if (!this.#processing.has(key)) this.#offer(key);
  }

  addAfter(key: string, milliseconds: number): void {
    if (this.#shut) return;
    if (milliseconds <= 0) {
      this.add(key);
      return;
    }
    const delayed = (this.#delayed ??= new Map<string, Delayed>());
    const due = this.#clock.now() + milliseconds;
    const pending = delayed.get(key);
    if (pending && pending.due <= due) return;
    pending?.timer.cancel();
    const timer = this.#clock.after(milliseconds, () => {
      delayed.delete(key);
      this.add(key);
    });
    delayed.set(key, { due, timer });
  }

  addRateLimited(key: string): void {
    if (this.#shut) return;
    const failures = (this.#failures ??= new Map<string, number>());
    const before = failures.get(key) ?? 0;
    failures.set(key, before + 1);
    this.addAfter(key, Math.min(this.#baseDelay * 2 ** before, this.#maxDelay));
  }

  forget(key: string): void {
    this.#failures?.delete(key);
  }

  retries(key: string): number {
    return this.#failures?.get(key) ?? 0;
  }

  get(signal?: AbortSignal): Promise<string | undefined> {
    if (signal?.aborted) return Promise.resolve(undefined);
    if (this.#ready.size > 0 || this.#shut) return Promise.resolve(this.#take());
    return this.#waiters.wait(signal);
  }

  done(key: string): void {
    if (!this.#processing.delete(key)) return;
    if (this.#dirty.has(key)) this.#offer(key);
  }

  get length(): number {
    return this.#ready.size;
  }

  shutDown(): void {
    if (this.#shut) return;
    this.#shut = true;
    for (const { timer } of this.#delayed?.values() ?? []) timer.cancel();
    this.#delayed = undefined;
    this.#failures = undefined;
    this.#waiters.dismissAll();
  }

  #take(): string | undefined {
    const key = this.#ready.shift();
    if (key === undefined) return undefined;
    this.#processing.add(key);
    this.#dirty.delete(key);
    return key;
  }

  /** Who waits is woken a turn of the event loop later: what one commit brings for a key is worked on at once. */
  #offer(key: string): void {
    this.#ready.push(key);
    if (this.#waking || this.#waiters.size === 0) return;
    this.#waking = true;
    setImmediate(() => {
      this.#waking = false;
      while (this.#ready.size > 0 && this.#waiters.size > 0) this.#waiters.wakeOne(this.#take());
    });
  }
}

/** Models k8s.io/client-go/util/workqueue: the typed rate-limiting queue with the per-item exponential limiter. */
export function createWorkQueue(options: WorkQueueOptions): WorkQueue {
  return new KeyQueue(options);
}
