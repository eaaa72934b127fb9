import { describe, expect, it } from 'vitest';
import { createManualClock } from '#server/base';
import { createControllerQueue } from './controller-queue.ts';

async function retryTimes(failures: readonly string[]): Promise<number[]> {
  const clock = createManualClock(0);
  const queue = createControllerQueue({ clock });
  const times: number[] = [];
  for (const key of failures) queue.addRateLimited(key);
  for (let waited = 0; waited < 2000 && times.length < new Set(failures).size; waited++) {
    while (queue.length > 0) {
      const key = await queue.get();
      if (key !== undefined) queue.done(key);
      times.push(clock.now());
    }
    await clock.advance(1);
  }
  return times;
}

describe('the queue of a controller', () => {
  it('doubles the wait of one key from 5 ms, and begins anew when it is forgotten', async () => {
    const clock = createManualClock(0);
    const queue = createControllerQueue({ clock });
    const waits: number[] = [];
    for (let round = 0; round < 6; round++) {
      if (round === 5) queue.forget('a');
      const begin = clock.now();
      queue.addRateLimited('a');
      while (queue.length === 0) await clock.advance(1);
      waits.push(clock.now() - begin);
      expect(await queue.get()).toBe('a');
      queue.done('a');
    }
    expect(waits).toEqual([5, 10, 20, 40, 80, 5]);
    expect(queue.retries('a')).toBe(1);
  });

  it('lets 100 keys be retried at once and then ten a second', async () => {
    const times = await retryTimes(Array.from({ length: 104 }, (_, index) => `key-${index}`));
    expect(times.slice(0, 100).every((time) => time === 5)).toBe(true);
    expect(times.slice(100)).toEqual([100, 200, 300, 400]);
  });

  it('waits for nobody once it is shut down', async () => {
    const clock = createManualClock(0);
    const queue = createControllerQueue({ clock });
    queue.addRateLimited('a');
    queue.shutDown();
    queue.addRateLimited('b');
    expect(await queue.get()).toBeUndefined();
    expect(clock.pending).toBe(0);
  });
});
