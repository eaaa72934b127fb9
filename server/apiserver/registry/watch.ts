import type { Clock, Timer } from '#server/base';
import { expired, failure, formatApiVersion, type StatusError, type UnstructuredObject } from '#server/kube';
import { CompactedError, type Entry } from '#server/store';
import { textOf } from '../storage.ts';
import type { SharedEvent, WatchHub } from './hub.ts';
import type { Operation, RegistryEnvironment } from './operation.ts';
import { booleanOf, revisionOf, tooLargeResourceVersion } from './options.ts';
import { asServed, checkListOptions, isSelected } from './read.ts';
import { type Selection, selectionOf } from './selection.ts';

export const BOOKMARK_INTERVAL = 60_000;

/** One event as readers take it. */
export interface WatchItem {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly revision: number;
  /** Frozen. */
  object(): UnstructuredObject;
  /** The object's JSON. */
  bytes(): Uint8Array;
  /** What `make` returned first for this representation of the item, shared by all readers. */
  once<T>(representation: string, make: () => T): T;
}

export interface WatchReader {
  item(item: WatchItem): void;
  bookmark(object: UnstructuredObject): void;
  /** Called once, unless stopped first. An error is the last thing the client hears. */
  end(error?: StatusError): void;
}

export interface RunningWatch {
  stop(): void;
}

/** Watches of one server: starts them, and sends the periodic bookmarks. */
export interface WatchDesk {
  start(op: Operation, reader: WatchReader): RunningWatch;
  readonly count: number;
}

interface Bookmarked {
  sent: number;
  send(revision: number): void;
}

/**
 * Starts watches. The events of the initial state and of what already happened are delivered before `start` returns.
 * Throws StatusError for parameters that cannot be served; a compacted revision is told through `end`, as upstream does
 * (an ERROR event). Models apiserver/pkg/storage/cacher and pkg/endpoints/handlers/watch.go.
 */
export function createWatchDesk(env: RegistryEnvironment, hub: WatchHub, clock: Clock): WatchDesk {
  const bookmarked = new Set<Bookmarked>();
  let running = 0;
  let timer: Timer | undefined;
  const tick = (): void => {
    timer = undefined;
    const { revision } = env.storage.store;
    for (const watch of bookmarked) if (watch.sent < revision) watch.send(revision);
    arm();
  };
  const arm = (): void => {
    if (!timer && bookmarked.size > 0) timer = clock.after(BOOKMARK_INTERVAL, tick);
  };
  const disarm = (): void => {
    if (bookmarked.size > 0) return;
    timer?.cancel();
    timer = undefined;
  };

  return {
    get count() {
      return running;
    },
    start(op, reader) {
      checkListOptions({ ...op.query, watch: 'true' });
      const selection = selectionOf(op.kind, op.namespace, op.name, op.query);
      const plan = planOf(env, op);
      let over = false;
      let last = 0;
      const cleanUps: (() => void)[] = [];
      const stop = (): void => {
        if (over) return;
        over = true;
        running--;
        for (const cleanUp of cleanUps) cleanUp();
      };
      const end = (error?: StatusError): void => {
        if (over) return;
        stop();
        reader.end(error);
      };
      running++;
      const pass = (item: WatchItem | undefined): void => {
        if (!item || over) return;
        last = item.revision;
        reader.item(item);
      };
      if (plan.initial) {
        const list = env.storage.store.list(selection.prefix);
        for (const entry of list.entries) {
          if (over) break;
          if (isSelected(env, selection, entry)) pass(entryItem(env, op, entry));
        }
        plan.from = list.revision;
        if (plan.endOfInitial && !over) reader.bookmark(bookmarkObject(op, list.revision, true));
      }
      if (over) return { stop };
      try {
        const follow = hub.follow(
          op.kind,
          selection.prefix,
          plan.from,
          (event) => pass(itemOf(env, op, selection, event)),
          () => end(),
        );
        cleanUps.push(() => follow.stop());
        if (over) follow.stop();
      } catch (error) {
        if (!(error instanceof CompactedError)) throw error;
        end(expired(`too old resource version: ${plan.from} (${error.compactedRevision})`));
        return { stop };
      }
      if (plan.bookmarks && !over) {
        const entry: Bookmarked = {
          get sent() {
            return last;
          },
          send(revision) {
            last = revision;
            reader.bookmark(bookmarkObject(op, revision, false));
          },
        };
        bookmarked.add(entry);
        arm();
        cleanUps.push(() => {
          bookmarked.delete(entry);
          disarm();
        });
      }
      const seconds = Number(op.query['timeoutSeconds'] ?? 0);
      if (seconds > 0 && !over) {
        const timeout = clock.after(seconds * 1000, () => end());
        cleanUps.push(() => timeout.cancel());
      }
      return { stop };
    },
  };
}

interface WatchPlan {
  from: number;
  initial: boolean;
  endOfInitial: boolean;
  bookmarks: boolean;
}

function planOf(env: RegistryEnvironment, op: Operation): WatchPlan {
  const asked = revisionOf(op.query['resourceVersion']) ?? 0;
  const current = env.storage.store.revision;
  const bookmarks = booleanOf(op.query['allowWatchBookmarks']) ?? false;
  const sendInitial = booleanOf(op.query['sendInitialEvents']);
  const initial = sendInitial ?? asked === 0;
  if (sendInitial && asked > current) throw tooLargeResourceVersion(asked, current);
  return {
    from: asked > 0 && !initial ? asked : current,
    initial,
    endOfInitial: sendInitial === true && bookmarks,
    bookmarks,
  };
}

function bookmarkObject(op: Operation, revision: number, endOfInitial: boolean): UnstructuredObject {
  return Object.freeze({
    kind: op.kind.kind,
    apiVersion: formatApiVersion(op.kind.group, op.kind.version),
    metadata: Object.freeze({
      name: '',
      resourceVersion: String(revision),
      ...(endOfInitial ? { annotations: Object.freeze({ 'k8s.io/initial-events-end': 'true' }) } : {}),
    }),
  });
}

function entryItem(env: RegistryEnvironment, op: Operation, entry: Entry): WatchItem {
  return {
    type: 'ADDED',
    revision: entry.modRevision,
    object: () => asServed(env, op, env.storage.decode(entry)),
    bytes: () => servedBytes(env, op, entry.value),
    once: (_representation, make) => make(),
  };
}

/** Bytes in the version asked for. */
export function servedBytes(
  env: RegistryEnvironment,
  op: Pick<Operation, 'kind'>,
  value: Uint8Array,
): Uint8Array {
  if (!env.kinds.isMultiVersion(op.kind.group, op.kind.plural)) return value;
  const apiVersion = formatApiVersion(op.kind.group, op.kind.version);
  const object = JSON.parse(textOf(value)) as UnstructuredObject;
  return object.apiVersion === apiVersion ? value : Buffer.from(JSON.stringify({ ...object, apiVersion }));
}

/** What a change means to a reader with this selection; undefined: nothing. */
function itemOf(
  env: RegistryEnvironment,
  op: Operation,
  selection: Selection,
  event: SharedEvent,
): WatchItem | undefined {
  if (selection.matchesKey && !selection.matchesKey(event.key)) return undefined;
  const matches = selection.matchesObject;
  if (!matches) {
    // Everybody who selects nothing gets the same item.
    const type = event.type === 'delete' ? 'DELETED' : event.created ? 'ADDED' : 'MODIFIED';
    return event.once(op.kind.version, () => sharedItem(env, op, type, event));
  }
  const before = !event.created && matches(event.previous() as UnstructuredObject);
  const now = event.type === 'put' && matches(event.object());
  if (!before && !now) return undefined;
  if (before && !now)
    return event.type === 'delete' ? sharedItem(env, op, 'DELETED', event) : leftItem(env, op, event);
  return sharedItem(env, op, before ? 'MODIFIED' : 'ADDED', event);
}

function sharedItem(
  env: RegistryEnvironment,
  op: Operation,
  type: WatchItem['type'],
  event: SharedEvent,
): WatchItem {
  return {
    type,
    revision: event.revision,
    object: () => asServed(env, op, event.object()),
    bytes: () => servedBytes(env, op, event.value),
    once: (representation, make) => event.once(`${op.kind.version} ${type} ${representation}`, make),
  };
}

/** The object no longer matches: DELETED, showing its last matching state at the revision of the change. */
function leftItem(env: RegistryEnvironment, op: Operation, event: SharedEvent): WatchItem {
  const object = (): UnstructuredObject =>
    event.once('left', () => {
      const previous = event.previous() as UnstructuredObject;
      const metadata = Object.freeze({ ...previous.metadata, resourceVersion: String(event.revision) });
      return Object.freeze({ ...previous, metadata });
    });
  return {
    type: 'DELETED',
    revision: event.revision,
    object: () => asServed(env, op, object()),
    bytes: () =>
      event.once(`left ${op.kind.version}`, () => Buffer.from(JSON.stringify(asServed(env, op, object())))),
    once: (representation, make) => event.once(`${op.kind.version} left ${representation}`, make),
  };
}

/** The reader took too long. */
export function slowReader(): StatusError {
  return failure(429, 'TooManyRequests', 'the watch was read too slowly');
}
