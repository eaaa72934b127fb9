import type { Clock, Timer } from '#server/base';
import { expired, formatApiVersion, type StatusError, type UnstructuredObject } from '#server/kube';
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

/** One running watch: what it has sent, and what has to be undone at its end. */
interface Session {
  readonly over: boolean;
  /** The newest revision the reader knows of. */
  readonly sent: number;
  item(item: WatchItem | undefined): void;
  bookmark(object: UnstructuredObject, revision: number): void;
  /** Runs at the end; at once when that is past. */
  onEnd(cleanUp: () => void): void;
  end(error?: StatusError): void;
  stop(): void;
}

function createSession(reader: WatchReader): Session {
  const cleanUps: (() => void)[] = [];
  let over = false;
  let sent = 0;
  const stop = (): void => {
    if (over) return;
    over = true;
    for (const cleanUp of cleanUps) cleanUp();
  };
  return {
    get over() {
      return over;
    },
    get sent() {
      return sent;
    },
    item(item) {
      if (!item || over) return;
      sent = item.revision;
      reader.item(item);
    },
    bookmark(object, revision) {
      if (over) return;
      sent = revision;
      reader.bookmark(object);
    },
    onEnd(cleanUp) {
      if (over) cleanUp();
      else cleanUps.push(cleanUp);
    },
    end(error) {
      if (over) return;
      stop();
      reader.end(error);
    },
    stop,
  };
}

/**
 * Starts watches. The events of the initial state and of what already happened are delivered before `start` returns.
 * Throws StatusError for parameters that cannot be served; a compacted revision is told through `end`, as upstream does
 * (an ERROR event). Models apiserver/pkg/storage/cacher and pkg/endpoints/handlers/watch.go.
 */
export function createWatchDesk(env: RegistryEnvironment, hub: WatchHub, clock: Clock): WatchDesk {
  const sessions = new Set<Session>();
  const bookmarks = createBookmarker(env, clock);
  return {
    get count() {
      return sessions.size;
    },
    start(op, reader) {
      checkListOptions({ ...op.query, watch: 'true' });
      const selection = selectionOf(op.kind, op.namespace, op.name, op.query);
      const plan = planOf(env, op);
      const session = createSession(reader);
      sessions.add(session);
      session.onEnd(() => sessions.delete(session));
      if (plan.initial) plan.from = sendInitialState(env, op, selection, plan, session);
      follow(env, hub, op, selection, plan, session);
      if (plan.bookmarks && !session.over) bookmarks.add(session, op);
      const seconds = Number(op.query['timeoutSeconds'] ?? 0);
      if (seconds > 0 && !session.over) {
        const timeout = clock.after(seconds * 1000, () => session.end());
        session.onEnd(() => timeout.cancel());
      }
      return session;
    },
  };
}

/** Sends ADDED for everything selected; returns the revision this shows. */
function sendInitialState(
  env: RegistryEnvironment,
  op: Operation,
  selection: Selection,
  plan: WatchPlan,
  session: Session,
): number {
  const list = env.storage.store.list(selection.prefix);
  for (const entry of list.entries) {
    if (session.over) break;
    if (isSelected(env, selection, entry)) session.item(entryItem(env, op, entry));
  }
  if (plan.endOfInitial) session.bookmark(bookmarkObject(op, list.revision, true), list.revision);
  return list.revision;
}

function follow(
  env: RegistryEnvironment,
  hub: WatchHub,
  op: Operation,
  selection: Selection,
  plan: WatchPlan,
  session: Session,
): void {
  if (session.over) return;
  try {
    const followed = hub.follow(
      op.kind,
      selection.prefix,
      plan.from,
      (event) => session.item(itemOf(env, op, selection, event)),
      () => session.end(),
    );
    session.onEnd(() => followed.stop());
  } catch (error) {
    if (!(error instanceof CompactedError)) throw error;
    session.end(expired(`too old resource version: ${plan.from} (${error.compactedRevision})`));
  }
}

/** One timer for the bookmarks of all watches; a watch that already knows the newest revision is left in peace. */
function createBookmarker(
  env: RegistryEnvironment,
  clock: Clock,
): { add(session: Session, op: Operation): void } {
  const waiting = new Map<Session, Operation>();
  let timer: Timer | undefined;
  const arm = (): void => {
    if (!timer && waiting.size > 0) timer = clock.after(BOOKMARK_INTERVAL, tick);
  };
  const tick = (): void => {
    timer = undefined;
    const { revision } = env.storage.store;
    for (const [session, op] of waiting) {
      if (session.sent < revision) session.bookmark(bookmarkObject(op, revision, false), revision);
    }
    arm();
  };
  return {
    add(session, op) {
      waiting.set(session, op);
      session.onEnd(() => {
        waiting.delete(session);
        if (waiting.size > 0) return;
        timer?.cancel();
        timer = undefined;
      });
      arm();
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
