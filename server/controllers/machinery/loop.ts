import { errorMessage } from '#server/base';
import {
  type Controller,
  type ControllerContext,
  createWorkQueue,
  type Informer,
  type InformerHandlers,
  InformerStoppedError,
  type ReconcileResult,
  type Reconciler,
  startReconciler,
  type WorkQueue,
} from '#server/client';
import type { KubeObject } from '#server/kube';

/** Subscribes to an informer for as long as the loop runs; work begins when all informers so named have synced. */
export type Arrange = <T extends KubeObject>(informer: Informer<T>, handlers: InformerHandlers<T>) => void;

export interface LoopOptions {
  /** For the log. */
  name: string;
  context: ControllerContext;
  /** How many keys are worked on at once. Default 1. */
  workers?: number;
  /** Subscribes to what makes keys appear in the queue. */
  watch(on: Arrange, queue: WorkQueue): void;
  /** Brings what the key names to its desired state; rejects to be called again later. */
  reconcile(key: string, queue: WorkQueue): Promise<ReconcileResult>;
  /** Called once everything has synced, before the first key is worked on. */
  onReady?(queue: WorkQueue): void;
  /** Called when the loop stops: ends what the controller started besides. */
  onStop?(): void;
}

/**
 * A controller made of one work queue: fed by informers, worked on once they have synced.
 * Models the Run method that the controllers of kubernetes/pkg/controller share.
 */
export function createLoop(options: LoopOptions): Controller {
  const { context, name } = options;
  const queue = createWorkQueue({ clock: context.clock });
  const subscriptions: { stop(): void }[] = [];
  let reconciler: Reconciler | undefined;
  let stopped = false;

  const work = async (synced: readonly Promise<void>[]): Promise<void> => {
    try {
      await Promise.all(synced);
    } catch (error) {
      if (!(error instanceof InformerStoppedError)) throw error;
      return;
    }
    if (stopped) return;
    options.onReady?.(queue);
    reconciler = startReconciler({
      name,
      queue,
      workers: options.workers ?? 1,
      reconcile: (key) => options.reconcile(key, queue),
      log: context.log,
    });
  };
  return {
    start() {
      const synced: Promise<void>[] = [];
      options.watch((informer, handlers) => {
        synced.push(informer.synced);
        subscriptions.push(informer.on(handlers));
      }, queue);
      void work(synced).catch((error: unknown) => {
        context.log.error({ controller: name, error: errorMessage(error) }, 'a controller could not start');
      });
    },
    async stop() {
      stopped = true;
      for (const subscription of subscriptions) subscription.stop();
      options.onStop?.();
      queue.shutDown();
      await reconciler?.stop();
    },
  };
}

const indexed = new WeakMap<object, Set<string>>();

/** Adds an index to a shared informer unless a neighbour has added one of that name, which must mean the same. */
export function ensureIndex<T extends KubeObject>(
  informer: Informer<T>,
  name: string,
  keysOf: (object: T) => string[],
): void {
  const names = indexed.get(informer) ?? new Set();
  indexed.set(informer, names);
  if (names.has(name)) return;
  names.add(name);
  informer.addIndex(name, keysOf);
}
