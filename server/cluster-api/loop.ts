import type { Clock, Logger } from '#server/base';
import { createWorkQueue, type ReconcileResult, startReconciler } from '#server/client';

/** One control loop: keys in, one reconcile at a time for each. */
export interface Loop {
  enqueue(key: string): void;
  /** For what only has to be summed up: a burst of changes is looked at once. */
  enqueueSoon(key: string): void;
  stop(): Promise<void>;
}

/** Upstream's default concurrency of each controller. */
const WORKERS = 10;

/** How long a burst may last, milliseconds. */
const BURST = 25;

/** Starts a loop whose workers wait until the caches are filled (`ready`). */
export function startLoop(options: {
  name: string;
  clock: Clock;
  log: Logger;
  ready(): Promise<void>;
  reconcile(key: string): Promise<ReconcileResult>;
}): Loop {
  const queue = createWorkQueue({ clock: options.clock });
  const loop = startReconciler({
    name: options.name,
    queue,
    workers: WORKERS,
    log: options.log,
    async reconcile(key) {
      await options.ready();
      return options.reconcile(key);
    },
  });
  return {
    enqueue: (key) => queue.add(key),
    enqueueSoon: (key) => queue.addAfter(key, BURST),
    async stop() {
      queue.shutDown();
      await loop.stop();
    },
  };
}
