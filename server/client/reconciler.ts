import { setMaxListeners } from 'node:events';
import { errorMessage, type Logger } from '#server/base';
import { isConflict } from '#server/kube';
import { ConnectionError } from './contract.ts';
import type { WorkQueue } from './work-queue.ts';

/** `requeueAfter`: milliseconds until the key is looked at again without anything having changed. */
export type ReconcileResult = { requeueAfter: number } | undefined | void;

export interface ReconcilerOptions {
  /** For the log. */
  name: string;
  /** Whose keys are worked on. The queue stays its creator's: shut it down yourself. */
  queue: WorkQueue;
  /** How many keys are worked on at once. Default 1. */
  workers?: number;
  /** Brings one object to its desired state, from whatever state. What it throws makes the key come back, later each time. */
  reconcile(key: string): Promise<ReconcileResult>;
  log: Logger;
  /** Sees every error of `reconcile`, after it was logged. */
  onError?(key: string, error: unknown): void;
}

export interface Reconciler {
  /** Takes no further key and resolves when the running calls of `reconcile` have settled. */
  stop(): Promise<void>;
}

/**
 * Starts the loop every controller runs: take a key, reconcile, and on an error put it back with a growing delay.
 * Models the worker loop of k8s.io/client-go controllers (processNextWorkItem).
 */
export function startReconciler(options: ReconcilerOptions): Reconciler {
  const { queue, workers = 1, log, name } = options;
  const stopping = new AbortController();
  // Every worker waits with this one signal: many listeners are no leak here.
  setMaxListeners(0, stopping.signal);

  const failed = (key: string, error: unknown): void => {
    // A stale read and an absent API server are part of life: the retry settles them.
    const expected = isConflict(error) || error instanceof ConnectionError;
    const fields = { controller: name, key, retries: queue.retries(key), error: errorMessage(error) };
    if (expected) log.debug(fields, 'reconcile will be retried');
    else log.warn(fields, 'reconcile failed, will be retried');
    queue.addRateLimited(key);
    options.onError?.(key, error);
  };
  const work = async (key: string): Promise<void> => {
    try {
      const result = await options.reconcile(key);
      queue.forget(key);
      if (result) queue.addAfter(key, result.requeueAfter);
    } catch (error) {
      failed(key, error);
    } finally {
      queue.done(key);
    }
  };
  const loop = async (): Promise<void> => {
    for (;;) {
      const key = await queue.get(stopping.signal);
      if (key === undefined) return;
      await work(key);
    }
  };
  const loops = Array.from({ length: workers }, loop);
  return {
    async stop() {
      stopping.abort();
      await Promise.all(loops);
    },
  };
}
