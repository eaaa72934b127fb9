/**
 * A revisioned key/value store with watch, one per cluster: etcd's promises, as an API server needs them.
 *
 * - One revision counter per store; every change takes the next revision (a delete too). It never goes back, across
 *   restarts neither.
 * - Writes are applied in the order they were asked for. A write's promise resolves only once the change is as durable
 *   as the implementation promises; nobody (reader, watcher) sees it earlier.
 * - A watcher sees every change of its prefix after its start revision, once, in revision order, or an end that says
 *   why not.
 * - Values are bytes and are never copied into JavaScript objects by the store. They must not be modified.
 */
export interface Store {
  /** The revision of the newest visible change (0: nothing was ever written). */
  readonly revision: number;
  /** Changes at or below this revision are forgotten: reading or watching from before it is refused. */
  readonly compactedRevision: number;

  /** The entry now, or undefined. */
  get(key: string): Entry | undefined;

  /** Entries whose key starts with `prefix`, in key order, as of now or as of `options.revision`. */
  list(prefix: string, options?: ListOptions): ListResult;

  /** How many keys start with `prefix` now. */
  count(prefix: string): number;

  /**
   * Writes `key`. `encode` gets the revision this write takes and returns the bytes to keep; it is called once,
   * synchronously, just before the change is committed, and must not call the store. What it throws rejects the write.
   * Rejects with RevisionMismatchError when `expected` does not hold, with OperationalError when the change could not
   * be made durable: then it never was, and its revision goes to another write.
   */
  put(key: string, encode: (revision: number) => Uint8Array, expected?: Expected): Promise<Entry>;

  /**
   * Removes `key`; the event carries the bytes `encode` returns for the revision of the removal (the last state, as a
   * DELETED watch event shows it), or the previous bytes without it. Rejects with RevisionMismatchError when
   * `expected` does not hold; resolves to undefined when the key is absent and nothing was expected, else to the entry
   * as it went: `value` is the event's, `modRevision` the revision of the removal.
   */
  delete(
    key: string,
    options?: { expected?: Expected; encode?: (revision: number) => Uint8Array },
  ): Promise<Entry | undefined>;

  /**
   * Calls `onEvent` for each change of `prefix` after `fromRevision`; first synchronously for what already happened,
   * then as changes become visible. Throws CompactedError when `fromRevision` < compactedRevision.
   * The callback must be quick and must not throw; a reader that needs to wait keeps its own bounded queue.
   */
  watch(
    prefix: string,
    fromRevision: number,
    onEvent: (event: StoreEvent) => void,
    onEnd?: (why: WatchEnd) => void,
  ): StoreWatch;

  /** Forgets history at or below `revision`. Current entries stay. Throws FutureRevisionError when not reached yet. */
  compact(revision: number): void;

  /** Resolves when every write asked for so far is durable (or was rejected). */
  flush(): Promise<void>;

  /**
   * Flushes, ends all watches with `closed`; later writes reject with StoreClosedError, and once closed, reads and
   * watches throw it.
   */
  close(): Promise<void>;
}

/** One key's state. `value` is shared by all readers and must not be modified. */
export interface Entry {
  readonly key: string;
  readonly value: Uint8Array;
  readonly createRevision: number;
  readonly modRevision: number;
}

export interface ListOptions {
  /** Read as of this revision. Throws CompactedError when forgotten, FutureRevisionError when not reached yet. */
  revision?: number;
  /** Start at the first key strictly greater than this one. */
  after?: string;
  /** At most this many entries; `more` tells whether there are others. */
  limit?: number;
}

export interface ListResult {
  readonly entries: readonly Entry[];
  /** The revision this list shows. */
  readonly revision: number;
  readonly more: boolean;
  /** Entries of the prefix behind the last one returned. */
  readonly remaining: number;
}

/** `'absent'`: the key must not exist. A number: its modRevision must be exactly this. */
export type Expected = 'absent' | number;

export interface StoreEvent {
  readonly type: 'put' | 'delete';
  readonly key: string;
  readonly revision: number;
  /** After the change; of a delete, the bytes given for it. */
  readonly value: Uint8Array;
  /** Before the change; undefined when the key was created. */
  readonly previous: Entry | undefined;
}

/** `failed`: the watcher's own callback threw. */
export type WatchEnd = 'closed' | 'compacted' | 'failed';

export interface StoreWatch {
  /** Stops calling back, at once. Idempotent. */
  stop(): void;
}

/** `expected` did not hold. `actual` is the entry as it stands (undefined: absent). */
export class RevisionMismatchError extends Error {
  override readonly name = 'RevisionMismatchError';
  readonly actual: Entry | undefined;
  constructor(key: string, actual: Entry | undefined) {
    super(`${key} is at revision ${actual?.modRevision ?? 'none'}`);
    this.actual = actual;
  }
}

export class CompactedError extends Error {
  override readonly name = 'CompactedError';
  readonly compactedRevision: number;
  constructor(asked: number, compactedRevision: number) {
    super(`revision ${asked} is compacted; the oldest is ${compactedRevision}`);
    this.compactedRevision = compactedRevision;
  }
}

export class FutureRevisionError extends Error {
  override readonly name = 'FutureRevisionError';
  constructor(asked: number, current: number) {
    super(`revision ${asked} is in the future; the newest is ${current}`);
  }
}

export class StoreClosedError extends Error {
  override readonly name = 'StoreClosedError';
}

/** A cluster's data cannot be removed while its store is open. */
export class StoreOpenError extends Error {
  override readonly name = 'StoreOpenError';
}

/**
 * Where the stores of many clusters live. Both implementations (memory, SQLite) pass the suite in `testing/`.
 */
export interface StoreEngine {
  /**
   * The store of one cluster; created when absent. The same object while it is open.
   * `cluster` is any non-empty string. History is not kept while a store is closed: it opens with `compactedRevision`
   * = `revision`. Rejects with StoreClosedError when the engine is closed (as the other calls do).
   */
  open(cluster: string): Promise<Store>;
  /** Names of the clusters that were ever written to (and not destroyed), open or not, in order. */
  clusters(): Promise<string[]>;
  /** Removes a cluster's data for good. Rejects with StoreOpenError while it is open. */
  destroy(cluster: string): Promise<void>;
  /** Closes every open store and the engine. */
  close(): Promise<void>;
}
