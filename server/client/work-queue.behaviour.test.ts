import { describe, expect, it } from 'vitest';
import { createManualClock } from '#server/base';
import { createWorkQueue } from './work-queue.ts';

describe('work queue', () => {
  it('hands out each waiting key once, in order of arrival', async () => {
    const queue = createWorkQueue({ clock: createManualClock() });
    for (const key of ['a', 'b', 'a', 'c', 'b']) queue.add(key);
    expect(queue.length).toBe(3);
    expect([await queue.get(), await queue.get(), await queue.get()]).toEqual(['a', 'b', 'c']);
  });

  it('brings a key that was added while being processed back after done, once', async () => {
    const queue = createWorkQueue({ clock: createManualClock() });
    queue.add('a');
    await queue.get();
    queue.add('a');
    queue.add('a');
    expect(queue.length).toBe(0);
    queue.done('a');
    expect(queue.length).toBe(1);
    expect(await queue.get()).toBe('a');
    queue.done('a');
    expect(queue.length).toBe(0);
  });

  it('wakes one waiter per key, and lets a waiter give up', async () => {
    const queue = createWorkQueue({ clock: createManualClock() });
    const stop = new AbortController();
    const first = queue.get(stop.signal);
    const second = queue.get();
    stop.abort();
    queue.add('a');
    expect(await first).toBeUndefined();
    expect(await second).toBe('a');
    expect(await queue.get(stop.signal)).toBeUndefined();
  });

  it('keeps the earliest of several waits for one key', async () => {
    const clock = createManualClock();
    const queue = createWorkQueue({ clock });
    queue.addAfter('a', 100);
    queue.addAfter('a', 10);
    queue.addAfter('a', 500);
    expect(clock.pending).toBe(1);
    await clock.advance(9);
    expect(queue.length).toBe(0);
    await clock.advance(1);
    expect(queue.length).toBe(1);
    expect(clock.pending).toBe(0);
  });

  it('doubles the wait of a failing key up to the limit, and starts over once forgotten', async () => {
    const clock = createManualClock();
    const queue = createWorkQueue({ clock, baseDelay: 5, maxDelay: 30 });
    const waits: number[] = [];
    for (let i = 0; i < 5; i++) {
      const since = clock.now();
      queue.addRateLimited('a');
      while (queue.length === 0) await clock.advance(1);
      waits.push(clock.now() - since);
      await queue.get();
      queue.done('a');
    }
    expect(waits).toEqual([5, 10, 20, 30, 30]);
    expect(queue.retries('a')).toBe(5);
    queue.forget('a');
    expect(queue.retries('a')).toBe(0);
    queue.addRateLimited('a');
    await clock.advance(5);
    expect(queue.length).toBe(1);
  });

  it('shut down: takes nothing more, gives out what waits, then undefined, and leaves no timer', async () => {
    const clock = createManualClock();
    const queue = createWorkQueue({ clock });
    queue.add('a');
    queue.addAfter('b', 10);
    queue.shutDown();
    queue.add('c');
    queue.addAfter('d', 10);
    queue.addRateLimited('e');
    expect(clock.pending).toBe(0);
    expect([await queue.get(), await queue.get()]).toEqual(['a', undefined]);
  });

  it('wakes all waiters when shut down', async () => {
    const queue = createWorkQueue({ clock: createManualClock() });
    const waiters = Promise.all([queue.get(), queue.get()]);
    queue.shutDown();
    expect(await waiters).toEqual([undefined, undefined]);
  });

  it('stays in order over many keys', async () => {
    const queue = createWorkQueue({ clock: createManualClock() });
    const keys = Array.from({ length: 1000 }, (_, i) => `key-${i}`);
    const got: (string | undefined)[] = [];
    for (const key of keys) {
      queue.add(key);
      if (got.length % 3 === 0) got.push(await queue.get());
    }
    while (queue.length > 0) got.push(await queue.get());
    expect(got).toEqual(keys);
  });
});
