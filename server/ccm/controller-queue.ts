import type { Clock } from '#server/base';
import { createWorkQueue, type WorkQueue } from '#server/client';

export interface ControllerQueueOptions {
  clock: Clock;
  /** Milliseconds before the first retry of one key; doubles. Default 5. */
  baseDelay?: number;
  /** Milliseconds. Default 1,000,000. */
  maxDelay?: number;
  /** Retries a second over all keys, once `burst` are used up. Default 10. */
  perSecond?: number;
  /** Default 100. */
  burst?: number;
}

/**
 * A work queue whose retries are limited twice: each key by a delay that doubles, and all keys together by a token
 * bucket; the longer wait counts. Models client-go's workqueue.DefaultTypedControllerRateLimiter.
 */
export function createControllerQueue(options: ControllerQueueOptions): WorkQueue {
  const { clock, baseDelay = 5, maxDelay = 1_000_000, perSecond = 10, burst = 100 } = options;
  const queue = createWorkQueue({ clock });
  const failures = new Map<string, number>();
  const bucket = createTokenBucket(clock, perSecond, burst);
  let shut = false;
  return {
    add: (key) => queue.add(key),
    addAfter: (key, milliseconds) => queue.addAfter(key, milliseconds),
    addRateLimited(key) {
      if (shut) return;
      const before = failures.get(key) ?? 0;
      failures.set(key, before + 1);
      queue.addAfter(key, Math.max(Math.min(baseDelay * 2 ** before, maxDelay), bucket.reserve()));
    },
    forget: (key) => void failures.delete(key),
    retries: (key) => failures.get(key) ?? 0,
    get: (signal) => queue.get(signal),
    done: (key) => queue.done(key),
    get length() {
      return queue.length;
    },
    shutDown() {
      shut = true;
      failures.clear();
      queue.shutDown();
    },
  };
}

/** `reserve` takes a token, if need be one of the future, and says how many milliseconds away it is. */
function createTokenBucket(clock: Clock, perSecond: number, burst: number): { reserve(): number } {
  let tokens = burst;
  let at = clock.now();
  return {
    reserve() {
      const now = clock.now();
      tokens = Math.min(burst, tokens + (Math.max(0, now - at) * perSecond) / 1000);
      at = now;
      tokens -= 1;
      return tokens >= 0 ? 0 : (-tokens * 1000) / perSecond;
    },
  };
}
