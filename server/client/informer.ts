import { type Clock, createRandomIds, errorMessage, type Ids, type Logger } from '#server/base';
import { type KubeObject, objectKey, type Resource, type WatchEvent } from '#server/kube';
import { createBackoff } from './backoff.ts';
import type { Client } from './contract.ts';
import { type Change, createInformerCache } from './informer-cache.ts';
import { type Reflector, startReflector } from './reflector.ts';

/** What `synced` rejects with when the informer is stopped before its first list arrived. */
export class InformerStoppedError extends Error {
  override readonly name = 'InformerStoppedError';
}

export interface InformerQuery {
  /** Left out: all namespaces. */
  namespace?: string;
  labelSelector?: string;
  fieldSelector?: string;
}

/**
 * What to call on a change. Called one after the other, in the order of the changes, with the cache already changed.
 * An object deleted and created anew between two lists is `deleted`, then `added`.
 */
export interface InformerHandlers<T> {
  added?(object: T): void;
  updated?(old: T, now: T): void;
  /** `object` is the last state there was, or the last one known. */
  deleted?(object: T): void;
}

/** A cache of one collection that follows the server, and tells of changes. Objects are frozen and shared. */
export interface Informer<T> {
  /** `key` as objectKey makes it. */
  get(key: string): T | undefined;
  /** All, or those of one namespace; in no particular order. */
  list(namespace?: string): T[];
  /** Fails with InternalError when the name is taken. May be called at any time. */
  addIndex(name: string, keysOf: (object: T) => string[]): void;
  /** Fails with InternalError when there is no index of that name. */
  byIndex(name: string, value: string): T[];
  /** Before it returns, `added` is called for what is cached already. A handler that throws is logged, nothing more. */
  on(handlers: InformerHandlers<T>): { stop(): void };
  /** The first list is in the cache and its handlers have been called. */
  readonly hasSynced: boolean;
  /** Resolves then; rejects with InformerStoppedError when stopped before. */
  readonly synced: Promise<void>;
}

/** Shares one informer among all who ask for the same collection. */
export interface InformerFactory {
  informer<T extends KubeObject>(resource: Resource<T>, query?: InformerQuery): Informer<T>;
  /** Starts those not started yet; to be called again after more were asked for. Does nothing once stopped. */
  start(): void;
  /** Resolves when all informers started so far have synced; rejects with InformerStoppedError when stopped before. */
  synced(): Promise<void>;
  /** Ends all watches; no handler is called any more. The caches stay readable. */
  stop(): void;
}

export interface InformerFactoryOptions {
  client: Client;
  clock: Clock;
  log: Logger;
  /** For the jitter of retries. Default: random ones. */
  ids?: Pick<Ids, 'random'>;
  /** Milliseconds before the first and at most before every further retry, before jitter. Default 50 and 30,000. */
  retryDelay?: { initial: number; max: number };
}

interface RunningInformer<T> extends Informer<T> {
  start(): void;
  stop(): void;
}

/** How many events may wait while a handler's own writes bring more; then the informer lists anew. */
const MAX_WAITING = 10_000;

interface Subscription<T> {
  handlers: InformerHandlers<T>;
  active: boolean;
}

function createSyncPoint(): {
  readonly reached: boolean;
  promise: Promise<void>;
  reach(): void;
  fail(): void;
} {
  const { promise, resolve, reject } = deferred();
  // Nobody has to wait for it: an informer stopped early is not an unhandled rejection.
  promise.catch(() => undefined);
  let reached = false;
  return {
    get reached() {
      return reached;
    },
    promise,
    reach() {
      reached = true;
      resolve();
    },
    fail: () => reject(new InformerStoppedError('the informer was stopped before it had synced')),
  };
}

function deferred(): { promise: Promise<void>; resolve: () => void; reject: (error: Error) => void } {
  let resolve: () => void = () => undefined;
  let reject: (error: Error) => void = () => undefined;
  const promise = new Promise<void>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

/** Calls the handlers of subscriptions, one change after the other; what a handler throws is logged. */
function createNotifier<T extends KubeObject>(resource: Resource<T>, log: Logger) {
  const subscriptions = new Set<Subscription<T>>();
  const guarded = (object: T, call: () => void): void => {
    try {
      call();
    } catch (error) {
      log.error(
        { resource: resource.plural, key: objectKey(object), error: errorMessage(error) },
        'an informer handler threw',
      );
    }
  };
  const tellOne = ({ handlers }: Subscription<T>, { before, now }: Change<T>): void => {
    if (before && now && before.metadata.uid === now.metadata.uid) {
      guarded(now, () => handlers.updated?.(before, now));
      return;
    }
    if (before) guarded(before, () => handlers.deleted?.(before));
    if (now) guarded(now, () => handlers.added?.(now));
  };
  return {
    subscriptions,
    tellOne,
    /** Nobody is told anything any more, not even the rest of what is being told. */
    mute(): void {
      for (const one of subscriptions) one.active = false;
      subscriptions.clear();
    },
    tell(changes: readonly Change<T>[]): void {
      // Who subscribes meanwhile is told of the cache as it is, which holds these changes already.
      const listeners = [...subscriptions];
      for (const change of changes) for (const one of listeners) if (one.active) tellOne(one, change);
    },
  };
}

/** Takes events one at a time: one that comes while another is being applied waits its turn. */
function createInbox<T>(apply: (item: T) => void, onOverflow: () => void) {
  const waiting: T[] = [];
  let busy = false;
  return {
    put(item: T): void {
      waiting.push(item);
      if (waiting.length > MAX_WAITING) {
        waiting.length = 0;
        onOverflow();
      }
      if (busy) return;
      busy = true;
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) apply(next);
      busy = false;
    },
    clear(): void {
      waiting.length = 0;
    },
  };
}

function createInformer<T extends KubeObject>(
  factory: InformerFactoryOptions,
  resource: Resource<T>,
  query: InformerQuery,
): RunningInformer<T> {
  const { client, clock, log, ids = createRandomIds() } = factory;
  const cache = createInformerCache<T>();
  const notifier = createNotifier(resource, log);
  const sync = createSyncPoint();
  let stopped = false;
  let reflector: Reflector | undefined;

  const apply = (event: WatchEvent<T>): void => {
    try {
      const change = event.type === 'DELETED' ? cache.remove(event.object) : cache.set(event.object);
      if (change) notifier.tell([change]);
    } catch (error) {
      // Handlers are guarded: this is an index function, and watch callbacks must not throw.
      const fields = { resource: resource.plural, key: objectKey(event.object), error: errorMessage(error) };
      log.error(fields, 'an informer index threw');
    }
  };
  // A handler that writes may bring the next event before it returns.
  const inbox = createInbox(apply, () => reflector?.relist());
  const onEvent = (event: WatchEvent<T>): void => {
    if (!stopped) inbox.put(event);
  };
  const onReplace = (objects: readonly T[]): void => {
    if (stopped) return;
    notifier.tell(cache.replace(objects));
    if (!stopped) sync.reach();
  };
  return {
    get: (key) => cache.get(key),
    list: (namespace) => cache.list(namespace),
    addIndex: (name, keysOf) => cache.addIndex(name, keysOf),
    byIndex: (name, value) => cache.byIndex(name, value),
    on(handlers) {
      const subscription: Subscription<T> = { handlers, active: true };
      notifier.subscriptions.add(subscription);
      for (const object of cache.list()) notifier.tellOne(subscription, { before: undefined, now: object });
      return {
        stop() {
          subscription.active = false;
          notifier.subscriptions.delete(subscription);
        },
      };
    },
    get hasSynced() {
      return sync.reached;
    },
    synced: sync.promise,
    start() {
      if (reflector || stopped) return;
      const backoff = createBackoff({ clock, ids, ...(factory.retryDelay ?? { initial: 50, max: 30_000 }) });
      reflector = startReflector({ client, resource, query, clock, backoff, log, onReplace, onEvent });
    },
    stop() {
      if (stopped) return;
      stopped = true;
      inbox.clear();
      notifier.mute();
      reflector?.stop();
      if (!sync.reached) sync.fail();
    },
  };
}

/** Models k8s.io/client-go/informers SharedInformerFactory and tools/cache/shared_informer.go (without resync). */
export function createInformerFactory(options: InformerFactoryOptions): InformerFactory {
  const informers = new Map<string, { shared: unknown; stop(): void }>();
  const started = new Set<Promise<void>>();
  let stopped = false;
  const starters: (() => void)[] = [];
  return {
    informer<T extends KubeObject>(resource: Resource<T>, query: InformerQuery = {}) {
      const { namespace = '', labelSelector = '', fieldSelector = '' } = query;
      const key = JSON.stringify([
        resource.group,
        resource.version,
        resource.plural,
        namespace,
        labelSelector,
        fieldSelector,
      ]);
      const known = informers.get(key);
      // The key names the resource, and a resource has one shape.
      if (known) return known.shared as Informer<T>;
      const informer = createInformer(options, resource, query);
      informers.set(key, { shared: informer, stop: () => informer.stop() });
      starters.push(() => {
        started.add(informer.synced);
        informer.start();
      });
      return informer;
    },
    start() {
      if (stopped) return;
      for (const start of starters.splice(0)) start();
    },
    async synced() {
      await Promise.all(started);
    },
    stop() {
      stopped = true;
      for (const informer of informers.values()) informer.stop();
    },
  };
}
