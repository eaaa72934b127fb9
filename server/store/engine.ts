import { InternalError, type Logger } from '#server/base';
import type { Backend } from './backend.ts';
import { type Entry, type Store, StoreClosedError, type StoreEngine, StoreOpenError } from './contract.ts';
import { createGroupCommit, type GroupCommit } from './group-commit.ts';
import { DEFAULT_HISTORY_LIMITS, type HistoryLimits } from './history.ts';
import { createStoreState, type StoreState } from './state.ts';

/** What both engines take. */
export interface EngineOptions {
  readonly log: Logger;
  /** How much of the past a cluster's store keeps in memory (default DEFAULT_HISTORY_LIMITS). */
  readonly historyOf?: (cluster: string) => HistoryLimits;
}

interface OpenStore {
  readonly store: Store;
  /** Set once closing began; resolves when the name may be opened again. */
  closing: Promise<void> | undefined;
}

/** The life of stores over a backend: who is open, who is closing, who may be destroyed. */
export function createEngine(backend: Backend, options: EngineOptions): StoreEngine {
  const historyOf = options.historyOf ?? (() => DEFAULT_HISTORY_LIMITS);
  const commits = createGroupCommit(backend, options.log);
  const opened = new Map<string, OpenStore>();
  let closing: Promise<void> | undefined;

  const checkOpen = (): void => {
    if (closing) throw new StoreClosedError('the store engine is closed');
  };
  const openNow = (cluster: string): Store => {
    const state = createStoreState({
      cluster,
      stored: backend.load(cluster),
      limits: historyOf(cluster),
      log: options.log.child({ cluster }),
    });
    const close = (): Promise<void> => (entry.closing ??= closeNow());
    const closeNow = async (): Promise<void> => {
      await commits.settled();
      backend.release(cluster, state.close());
      opened.delete(cluster);
    };
    const isClosing = (): boolean => entry.closing !== undefined;
    const entry: OpenStore = {
      store: createStore({ cluster, state, commits, isClosing, close }),
      closing: undefined,
    };
    opened.set(cluster, entry);
    return entry.store;
  };

  return {
    async open(cluster) {
      if (cluster === '') throw new InternalError('a cluster needs a name');
      for (;;) {
        checkOpen();
        const entry = opened.get(cluster);
        if (!entry) return openNow(cluster);
        if (!entry.closing) return entry.store;
        await entry.closing;
      }
    },
    async clusters() {
      checkOpen();
      const names = new Set(backend.clusters());
      for (const [cluster, { store }] of opened) if (store.revision > 0) names.add(cluster);
      return [...names].sort();
    },
    async destroy(cluster) {
      checkOpen();
      if (opened.has(cluster)) throw new StoreOpenError(`the store of ${cluster} is open`);
      backend.destroy(cluster);
    },
    close() {
      closing ??= Promise.all([...opened.values()].map(({ store }) => store.close())).then(() =>
        backend.close(),
      );
      return closing;
    },
  };
}

interface StoreParts {
  readonly cluster: string;
  readonly state: StoreState;
  readonly commits: GroupCommit;
  readonly isClosing: () => boolean;
  readonly close: () => Promise<void>;
}

function createStore({ cluster, state, commits, isClosing, close }: StoreParts): Store {
  const closedError = (): StoreClosedError => new StoreClosedError(`the store of ${cluster} is closed`);
  return {
    get revision() {
      return state.revision;
    },
    get compactedRevision() {
      return state.compactedRevision;
    },
    get: state.get,
    list: state.list,
    count: state.count,
    watch: state.watch,
    compact: state.compact,
    put(key, encode, expected) {
      if (isClosing()) return Promise.reject(closedError());
      // A put always has an entry to show.
      return commits.write({ cluster, state, type: 'put', key, encode, expected }) as Promise<Entry>;
    },
    delete(key, { expected, encode } = {}) {
      if (isClosing()) return Promise.reject(closedError());
      return commits.write({ cluster, state, type: 'delete', key, encode, expected });
    },
    flush: () => commits.settled(),
    close,
  };
}
