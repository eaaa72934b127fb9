import type { Clock, Logger } from '#server/base';
import { createWorkQueue, type ReconcileResult, startReconciler } from '#server/client';

/** One control loop: keys in, one reconcile at a time for each. */
export interface Loop {
  enqueue(key: string): void;
  /** Takes no further key; resolves when the running ones are done. */
  stop(): Promise<void>;
}

/**
 * Starts a loop whose workers wait until `ready` (the caches are filled): what is absent from a cache that is still
 * being filled must not be taken for gone.
 */
export function startLoop(options: {
  name: string;
  workers: number;
  clock: Clock;
  log: Logger;
  ready: () => Promise<void>;
  reconcile(key: string): Promise<ReconcileResult>;
}): Loop {
  const { name, workers, clock, log, ready } = options;
  const queue = createWorkQueue({ clock });
  const loop = startReconciler({
    name,
    queue,
    workers,
    log,
    async reconcile(key) {
      await ready();
      return options.reconcile(key);
    },
  });
  return {
    enqueue: (key) => queue.add(key),
    async stop() {
      queue.shutDown();
      await loop.stop();
    },
  };
}
