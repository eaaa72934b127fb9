import type { Backend, StoredCluster } from './backend.ts';
import type { Entry, StoreEngine } from './contract.ts';
import { createEngine, type EngineOptions } from './engine.ts';

/**
 * Stores that live as long as the engine: a store that is closed and opened again has its entries, a new engine has
 * none. Everything else is as with SQLite, the turns in which writes commit as well.
 */
export function createMemoryEngine(options: EngineOptions): StoreEngine {
  return createEngine(createMemoryBackend(), options);
}

function createMemoryBackend(): Backend {
  const released = new Map<string, { revision: number; entries: Entry[] }>();
  const empty: StoredCluster = { revision: 0, entries: [] };
  return {
    load: (cluster) => released.get(cluster) ?? empty,
    commit: () => undefined,
    release(cluster, { revision, entries }) {
      if (revision > 0) released.set(cluster, { revision, entries: [...entries] });
    },
    clusters: () => [...released.keys()],
    destroy: (cluster) => void released.delete(cluster),
    close: () => released.clear(),
  };
}
