import type { Entry, StoreEvent } from './contract.ts';

/** One change of a batch, as planned: what a backend makes durable, and what becomes visible then. */
export interface Change {
  readonly cluster: string;
  readonly event: StoreEvent;
  /** The key's state after the change; undefined when it is removed. */
  readonly entry: Entry | undefined;
}

/** What is kept of a cluster while nobody has it open. */
export interface StoredCluster {
  readonly revision: number;
  readonly entries: Iterable<Entry>;
}

/**
 * Where an engine keeps what must outlive a store object. One caller; synchronous, so that a commit is one step of
 * the event loop. Everything may throw OperationalError.
 */
export interface Backend {
  /** The cluster's last revision and its entries; revision 0 and none when it was never written to. */
  load(cluster: string): StoredCluster;
  /**
   * Makes the changes durable, all or none of them (then it throws). Revisions of a cluster are ascending and the
   * order is that of the changes.
   */
  commit(changes: readonly Change[]): void;
  /** A store was closed in this state, all of which was committed. */
  release(cluster: string, state: StoredCluster): void;
  /** Clusters known to have a revision above 0; may leave out open ones. */
  clusters(): string[];
  destroy(cluster: string): void;
  close(): void;
}
