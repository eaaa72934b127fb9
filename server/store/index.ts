// store: a revisioned key/value store with watch, one per cluster.
//
// etcd's promises as an API server needs them (contract.ts is the specification): one revision counter per cluster
// that never goes back, compare-and-swap writes, reads at a recent revision, watches by prefix that miss nothing.
// Two engines pass the same suite (testing/): memory, and one SQLite file for all clusters. Both answer every read
// from memory and commit all writes of one turn of the event loop together, so a durable write costs a fraction of a
// transaction and nobody sees it before it is durable.
//
// Left out: leases, transactions over several keys, history on disk (after opening, older revisions are compacted).
// Modelled after etcd's mvcc and k8s.io/apiserver/pkg/storage.
export {
  CompactedError,
  type Entry,
  type Expected,
  FutureRevisionError,
  type ListOptions,
  type ListResult,
  RevisionMismatchError,
  type Store,
  StoreClosedError,
  type StoreEngine,
  type StoreEvent,
  StoreOpenError,
  type StoreWatch,
  type WatchEnd,
} from './contract.ts';
export type { EngineOptions } from './engine.ts';
export { DEFAULT_HISTORY_LIMITS, type HistoryLimits } from './history.ts';
export { createMemoryEngine } from './memory-engine.ts';
export { createSqliteEngine, type SqliteEngineOptions } from './sqlite-engine.ts';
