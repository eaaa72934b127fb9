import { describe, expect, it, vi } from 'vitest';
import { createManualClock, silentLogger } from '#server/base';
import { conflict, STALE_WRITE } from '#server/kube';
import { startReconciler } from './reconciler.ts';
import { retryOnConflict } from './retry.ts';
import { createWorkQueue } from './work-queue.ts';

const stale = () => conflict({ group: '', plural: 'pods' }, 'a', STALE_WRITE);

describe('reconciler', () => {
  it('retries a failing key with a growing wait and forgets its failures once it succeeds', async () => {
    const clock = createManualClock();
    const queue = createWorkQueue({ clock });
    const at: number[] = [];
    const errors: unknown[] = [];
    const start = clock.now();
    const reconciler = startReconciler({
      name: 'test',
      queue,
      log: silentLogger,
      onError: (key, error) => errors.push([key, error]),
      async reconcile() {
        at.push(clock.now() - start);
        if (at.length < 4) throw new TypeError('not yet');
      },
    });
    queue.add('a');
    await clock.advance(1000);
    expect(at).toEqual([0, 5, 15, 35]);
    expect(errors).toHaveLength(3);
    expect(errors[0]).toEqual(['a', new TypeError('not yet')]);
    expect(queue.retries('a')).toBe(0);
    await reconciler.stop();
    expect(clock.pending).toBe(0);
  });

  it('looks again after requeueAfter', async () => {
    const clock = createManualClock();
    const queue = createWorkQueue({ clock });
    let calls = 0;
    const reconciler = startReconciler({
      name: 'test',
      queue,
      log: silentLogger,
      reconcile: async () => (++calls < 3 ? { requeueAfter: 60_000 } : undefined),
    });
    queue.add('a');
    await clock.advance(59_999);
    expect(calls).toBe(1);
    await clock.advance(120_000);
    expect(calls).toBe(3);
    await reconciler.stop();
  });

  it('works on as many keys at once as it has workers, never twice on one key', async () => {
    const clock = createManualClock();
    const queue = createWorkQueue({ clock });
    const running = new Set<string>();
    let most = 0;
    const done: string[] = [];
    const reconciler = startReconciler({
      name: 'test',
      queue,
      workers: 3,
      log: silentLogger,
      async reconcile(key) {
        expect(running.has(key)).toBe(false);
        running.add(key);
        most = Math.max(most, running.size);
        queue.add(done.length < 3 ? key : 'x');
        await clock.sleep(10);
        running.delete(key);
        done.push(key);
      },
    });
    for (const key of ['a', 'b', 'c', 'd', 'e']) queue.add(key);
    await clock.advance(35);
    queue.shutDown();
    await clock.advance(100);
    expect(most).toBe(3);
    expect(new Set(done)).toEqual(new Set(['a', 'b', 'c', 'd', 'e', 'x']));
    await reconciler.stop();
  });

  it('stop waits for what is running and takes nothing more', async () => {
    const clock = createManualClock();
    const queue = createWorkQueue({ clock });
    const done: string[] = [];
    const reconciler = startReconciler({
      name: 'test',
      queue,
      log: silentLogger,
      async reconcile(key) {
        await clock.sleep(100);
        done.push(key);
      },
    });
    queue.add('a');
    queue.add('b');
    await clock.advance(1);
    let stopped = false;
    const stopping = reconciler.stop().then(() => {
      stopped = true;
    });
    await clock.advance(50);
    expect(stopped).toBe(false);
    await clock.advance(50);
    await stopping;
    await clock.advance(1000);
    expect(done).toEqual(['a']);
    expect(queue.length).toBe(1);
  });

  it('logs a stale write as part of life, anything else as a warning', async () => {
    const clock = createManualClock();
    const queue = createWorkQueue({ clock });
    const log = { ...silentLogger, warn: vi.fn(), debug: vi.fn() };
    const reconciler = startReconciler({
      name: 'test',
      queue,
      log,
      async reconcile(key) {
        if (queue.retries(key) > 0) return;
        throw key === 'stale' ? stale() : new TypeError('broken');
      },
    });
    queue.add('stale');
    queue.add('broken');
    await clock.advance(100);
    expect(log.debug).toHaveBeenCalledTimes(1);
    expect(log.warn.mock.calls).toEqual([
      [
        { controller: 'test', key: 'broken', retries: 0, error: 'broken' },
        'reconcile failed, will be retried',
      ],
    ]);
    await reconciler.stop();
  });
});

describe('retryOnConflict', () => {
  it('tries five times in all, then gives the conflict to the caller', async () => {
    const attempt = vi.fn(async () => {
      throw stale();
    });
    await expect(retryOnConflict(attempt)).rejects.toMatchObject({ reason: 'Conflict' });
    expect(attempt).toHaveBeenCalledTimes(5);
  });

  it('returns what the first attempt without a conflict returns; other errors are not retried', async () => {
    let calls = 0;
    const value = await retryOnConflict(async () => {
      if (++calls < 3) throw stale();
      return 'written';
    });
    expect([value, calls]).toEqual(['written', 3]);
    const broken = vi.fn(async () => {
      throw new TypeError('broken');
    });
    await expect(retryOnConflict(broken)).rejects.toThrow('broken');
    expect(broken).toHaveBeenCalledTimes(1);
  });
});
