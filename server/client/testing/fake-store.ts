import {
  expired,
  type FieldRequirement,
  objectKey,
  parseFieldSelector,
  parseLabelSelector,
  type UnstructuredObject,
  type WatchEvent,
} from '#server/kube';
import type { ApiRequest } from '../contract.ts';
import { deepFreeze } from '../freeze.ts';

/** How many changes a watch may look back; older ones are compacted. */
const MAX_HISTORY = 10_000;

interface StoredChange {
  revision: number;
  collection: string;
  before: UnstructuredObject | undefined;
  now: UnstructuredObject | undefined;
}

interface Watcher {
  collection: string;
  bookmarks: boolean;
  tell(change: StoredChange): void;
  send(event: WatchEvent): void;
  end(error?: unknown): void;
}

/** Which objects of a collection a request means. */
export type Selection = (object: UnstructuredObject) => boolean;

/** Objects by collection, with one revision counter and a history to watch from. */
export interface FakeStore {
  readonly revision: number;
  get(collection: string, key: string): UnstructuredObject | undefined;
  list(collection: string, selects: Selection): UnstructuredObject[];
  /** Stores with the next resourceVersion and tells the watchers; returns what is stored, frozen. */
  put(collection: string, object: UnstructuredObject): UnstructuredObject;
  remove(collection: string, key: string): UnstructuredObject | undefined;
  watch(
    request: ApiRequest,
    onEvent: (event: WatchEvent) => void,
    onEnd: (error?: unknown) => void,
  ): { stop(): void };
  /** Forgets the history: watches from older versions answer 410 Expired. */
  compact(): void;
  endWatches(error?: unknown): void;
  sendBookmarks(): void;
  readonly watches: number;
}

export function collectionOf({ resource }: ApiRequest): string {
  return `${resource.group}/${resource.plural}`;
}

function fieldOf(object: UnstructuredObject, path: string): string {
  let value: unknown = object;
  for (const name of path.split('.')) value = (value as Record<string, unknown> | undefined)?.[name];
  if (value === undefined) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function matchesFields(object: UnstructuredObject, requirements: readonly FieldRequirement[]): boolean {
  return requirements.every(
    ({ field, operator, value }) => (fieldOf(object, field) === value) === (operator === '='),
  );
}

/** Throws StatusError 400 for a selector that cannot be read. */
export function selectionOf(request: ApiRequest): Selection {
  const matchesLabels = parseLabelSelector(request.query['labelSelector'] ?? '');
  const fields = parseFieldSelector(request.query['fieldSelector'] ?? '');
  return (object) =>
    (!request.namespace || object.metadata.namespace === request.namespace) &&
    matchesLabels(object.metadata.labels) &&
    matchesFields(object, fields);
}

function withVersion(object: UnstructuredObject, revision: number): UnstructuredObject {
  return deepFreeze({ ...object, metadata: { ...object.metadata, resourceVersion: String(revision) } });
}

/** What a watcher that selects some objects sees of a change. */
function seen({ before, now, revision }: StoredChange, selects: Selection): WatchEvent | undefined {
  const had = before !== undefined && selects(before);
  if (now !== undefined && selects(now)) return { type: had ? 'MODIFIED' : 'ADDED', object: now };
  return had ? { type: 'DELETED', object: withVersion(before, revision) } : undefined;
}

function bookmark(request: ApiRequest, revision: number, initialEnd: boolean): WatchEvent {
  const { group, version } = request.resource;
  const annotations = initialEnd ? { annotations: { 'k8s.io/initial-events-end': 'true' } } : {};
  return deepFreeze({
    type: 'BOOKMARK',
    object: {
      apiVersion: group ? `${group}/${version}` : version,
      kind: '',
      metadata: { name: '', resourceVersion: String(revision), ...annotations },
    },
  });
}

export function createFakeStore(): FakeStore {
  const collections = new Map<string, Map<string, UnstructuredObject>>();
  const watchers = new Map<Watcher, ApiRequest>();
  let history: StoredChange[] = [];
  let compacted = 0;
  let revision = 0;

  const objectsOf = (collection: string): Map<string, UnstructuredObject> => {
    const known = collections.get(collection);
    if (known) return known;
    const created = new Map<string, UnstructuredObject>();
    collections.set(collection, created);
    return created;
  };
  const compactTo = (count: number): void => {
    const gone = history.splice(0, history.length - count);
    compacted = gone.at(-1)?.revision ?? compacted;
  };
  const commit = (change: StoredChange): void => {
    history.push(change);
    if (history.length > MAX_HISTORY) compactTo(MAX_HISTORY);
    for (const watcher of [...watchers.keys()])
      if (watcher.collection === change.collection) watcher.tell(change);
  };
  const list = (collection: string, selects: Selection): UnstructuredObject[] =>
    [...objectsOf(collection).entries()]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([, object]) => object)
      .filter(selects);

  /** What comes before the live events. */
  const replay = (request: ApiRequest, watcher: Watcher, selects: Selection): void => {
    const from = request.query['resourceVersion'] ?? '';
    if (request.query['sendInitialEvents'] === 'true' || from === '' || from === '0') {
      for (const object of list(watcher.collection, selects)) watcher.send({ type: 'ADDED', object });
      if (request.query['sendInitialEvents'] === 'true') watcher.send(bookmark(request, revision, true));
      return;
    }
    for (const change of history) {
      if (change.revision > Number(from) && change.collection === watcher.collection) watcher.tell(change);
    }
  };
  return {
    get revision() {
      return revision;
    },
    get: (collection, key) => objectsOf(collection).get(key),
    list,
    put(collection, object) {
      revision += 1;
      const key = objectKey(object);
      const before = objectsOf(collection).get(key);
      const now = withVersion(object, revision);
      objectsOf(collection).set(key, now);
      commit({ revision, collection, before, now });
      return now;
    },
    remove(collection, key) {
      const before = objectsOf(collection).get(key);
      if (!before) return undefined;
      revision += 1;
      objectsOf(collection).delete(key);
      commit({ revision, collection, before, now: undefined });
      return withVersion(before, revision);
    },
    watch(request, onEvent, onEnd) {
      const selects = selectionOf(request);
      let over = false;
      const watcher: Watcher = {
        collection: collectionOf(request),
        bookmarks: request.query['allowWatchBookmarks'] === 'true',
        tell(change) {
          const event = seen(change, selects);
          if (event) watcher.send(event);
        },
        send(event) {
          if (!over) onEvent(event);
        },
        end(error) {
          if (over) return;
          over = true;
          watchers.delete(watcher);
          onEnd(error);
        },
      };
      const from = Number(request.query['resourceVersion'] || '0');
      if (from > 0 && from < compacted) {
        queueMicrotask(() => watcher.end(expired(`too old resource version: ${from} (${compacted})`)));
      } else {
        replay(request, watcher, selects);
        watchers.set(watcher, request);
      }
      return {
        stop() {
          over = true;
          watchers.delete(watcher);
        },
      };
    },
    compact() {
      compactTo(0);
      compacted = revision;
      history = [];
    },
    endWatches(error) {
      for (const watcher of [...watchers.keys()]) watcher.end(error);
    },
    sendBookmarks() {
      for (const [watcher, request] of [...watchers]) {
        if (watcher.bookmarks) watcher.send(bookmark(request, revision, false));
      }
    },
    get watches() {
      return watchers.size;
    },
  };
}
