import type { ApiServer } from '#server/apiserver';
import type { Clock } from '#server/base';

/** A cluster this process knows: reachable while its API server runs, answered for with 503 while it does not. */
export interface ClusterEntry {
  /** `management`, or `<namespace>/<cluster>`. */
  readonly path: string;
  /** PEM of the authority that clients of this cluster trust, besides the listener's. */
  readonly caPem: string;
  /** The simulated address of the API server (`10.0.1.11:6443`); undefined for the management cluster. */
  readonly address: string | undefined;
  readonly server: ApiServer;
}

/** Which API servers run in this process, by path and by simulated address. */
export interface ClusterDirectory {
  register(entry: ClusterEntry): { dispose(): void };
  get(path: string): ClusterEntry | undefined;
  byAddress(address: string): ClusterEntry | undefined;
  /**
   * Resolves with what `find` finds, now or as soon as a registration makes it findable; with undefined after
   * `milliseconds`. So a client of a machine that is just booting connects the moment its API server listens.
   */
  waitFor(find: () => ClusterEntry | undefined, milliseconds: number): Promise<ClusterEntry | undefined>;
  /** A path that was served before: its machine is off, or booting. */
  known(path: string): boolean;
  forget(path: string): void;
  readonly size: number;
}

/** `known`: paths that were served by an earlier process. */
export function createClusterDirectory(options: {
  clock: Clock;
  known?: readonly string[];
}): ClusterDirectory {
  const waiting = new Set<() => void>();
  const byPath = new Map<string, ClusterEntry>();
  const addresses = new Map<string, ClusterEntry>();
  const seen = new Set<string>(options.known);
  return {
    register(entry) {
      byPath.set(entry.path, entry);
      if (entry.address) addresses.set(entry.address, entry);
      seen.add(entry.path);
      for (const look of [...waiting]) look();
      return {
        dispose() {
          if (byPath.get(entry.path) === entry) byPath.delete(entry.path);
          if (entry.address && addresses.get(entry.address) === entry) addresses.delete(entry.address);
        },
      };
    },
    get: (path) => byPath.get(path),
    byAddress: (address) => addresses.get(address),
    waitFor(find, milliseconds) {
      const found = find();
      if (found || milliseconds <= 0) return Promise.resolve(found);
      return new Promise((resolve) => {
        const settle = (entry: ClusterEntry | undefined): void => {
          waiting.delete(look);
          timer.cancel();
          resolve(entry);
        };
        const look = (): void => {
          const entry = find();
          if (entry) settle(entry);
        };
        const timer = options.clock.after(milliseconds, () => settle(undefined));
        waiting.add(look);
      });
    },
    known: (path) => seen.has(path),
    forget: (path) => void seen.delete(path),
    get size() {
      return byPath.size;
    },
  };
}
