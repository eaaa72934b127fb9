import type { Logger } from '#server/base';
import type { Change, StoredCluster } from './backend.ts';
import {
  CompactedError,
  type Entry,
  FutureRevisionError,
  type ListOptions,
  type ListResult,
  type Store,
  StoreClosedError,
} from './contract.ts';
import { createHistory, type HistoryLimits } from './history.ts';
import { createSortedKeys } from './sorted-keys.ts';
import { createWatchers } from './watchers.ts';

type Reads = Pick<Store, 'revision' | 'compactedRevision' | 'get' | 'list' | 'count' | 'watch' | 'compact'>;

/** What is visible of one store: the current entries, the recent past and the watches. All in memory. */
export interface StoreState extends Reads {
  /** Shows a committed change, of the next revision, to readers. Watches are told by `announce`, afterwards. */
  apply(change: Change): void;
  announce(change: Change): void;
  /** Ends the watches and lets go of everything; reading throws StoreClosedError from now on. */
  close(): StoredCluster;
}

export interface StoreStateOptions {
  readonly cluster: string;
  readonly stored: StoredCluster;
  readonly limits: HistoryLimits;
  readonly log: Logger;
}

export function createStoreState(options: StoreStateOptions): StoreState {
  const { cluster } = options;
  let revision = options.stored.revision;
  let current = new Map<string, Entry>();
  for (const entry of options.stored.entries) current.set(entry.key, entry);
  let keys = createSortedKeys([...current.keys()].sort(byCodeUnits));
  let closed = false;
  const history = createHistory(options.limits, revision);
  const watchers = createWatchers(options.log);

  const checkOpen = (): void => {
    if (closed) throw new StoreClosedError(`the store of ${cluster} is closed`);
  };
  const checkNotForgotten = (asked: number): void => {
    if (asked < history.compactedRevision) throw new CompactedError(asked, history.compactedRevision);
  };
  const rankOf = (prefix: string): { from: number; to: number } => ({
    from: keys.rank((key) => key < prefix),
    to: keys.rank((key) => key < prefix || key.startsWith(prefix)),
  });
  const entriesOf = (found: readonly string[]): Entry[] => {
    const entries: Entry[] = [];
    for (const key of found) {
      const entry = current.get(key);
      if (entry) entries.push(entry);
    }
    return entries;
  };

  const listNow = (prefix: string, { after, limit }: ListOptions): ListResult => {
    const { from, to } = rankOf(prefix);
    const start =
      after === undefined
        ? from
        : Math.max(
            from,
            Math.min(
              to,
              keys.rank((key) => key <= after),
            ),
          );
    const end = limit === undefined ? to : Math.min(to, start + limit);
    return { entries: entriesOf(keys.slice(start, end)), revision, more: end < to, remaining: to - end };
  };
  /** The past costs as much as all entries of the prefix, however small the page: it is read rarely and not for long. */
  const listThen = (prefix: string, at: number, { after, limit }: ListOptions): ListResult => {
    const before = history.undo(prefix, at);
    const { from, to } = rankOf(prefix);
    const then = entriesOf(keys.slice(from, to)).filter((entry) => !before.has(entry.key));
    for (const entry of before.values()) if (entry) then.push(entry);
    const behind = then.filter((entry) => after === undefined || entry.key > after);
    behind.sort((a, b) => byCodeUnits(a.key, b.key));
    const entries = limit === undefined ? behind : behind.slice(0, limit);
    const remaining = behind.length - entries.length;
    return { entries, revision: at, more: remaining > 0, remaining };
  };

  return {
    get revision() {
      return revision;
    },
    get compactedRevision() {
      return history.compactedRevision;
    },
    get(key) {
      checkOpen();
      return current.get(key);
    },
    list(prefix, listOptions = {}) {
      checkOpen();
      const at = listOptions.revision ?? revision;
      if (at > revision) throw new FutureRevisionError(at, revision);
      checkNotForgotten(at);
      return at === revision ? listNow(prefix, listOptions) : listThen(prefix, at, listOptions);
    },
    count(prefix) {
      checkOpen();
      const { from, to } = rankOf(prefix);
      return to - from;
    },
    watch(prefix, fromRevision, onEvent, onEnd) {
      checkOpen();
      checkNotForgotten(fromRevision);
      return watchers.add({ prefix, seen: fromRevision, onEvent, onEnd }, history.after(fromRevision));
    },
    compact(upTo) {
      checkOpen();
      if (upTo > revision) throw new FutureRevisionError(upTo, revision);
      history.compact(upTo);
    },
    apply({ event, entry }) {
      if (!entry) {
        current.delete(event.key);
        keys.remove(event.key);
      } else {
        current.set(event.key, entry);
        if (!event.previous) keys.insert(event.key);
      }
      history.add(event);
      revision = event.revision;
    },
    announce(change) {
      watchers.dispatch(change.event);
    },
    close() {
      watchers.end('closed');
      const last: StoredCluster = { revision, entries: current.values() };
      closed = true;
      current = new Map();
      keys = createSortedKeys();
      history.compact(revision);
      return last;
    },
  };
}

function byCodeUnits(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
