import { InternalError } from '#server/base';
import { type KubeObject, objectKey } from '#server/kube';

/** What became of one object: `before` is absent for a new one, `now` for one that is gone. */
export interface Change<T> {
  before: T | undefined;
  now: T | undefined;
}

/** The objects an informer knows, by key, by namespace and by named indexes. */
export interface InformerCache<T extends KubeObject> {
  get(key: string): T | undefined;
  list(namespace?: string): T[];
  /** Fails with InternalError when the name is taken. */
  addIndex(name: string, keysOf: (object: T) => string[]): void;
  /** Fails with InternalError when there is no such index. */
  byIndex(name: string, value: string): T[];
  /** Stores the object; undefined when this very version was there. */
  set(object: T): Change<T> | undefined;
  /** Removes what has the object's key; undefined when nothing had. The change's `before` is the last state, as given. */
  remove(object: T): Change<T> | undefined;
  /** Puts `objects` in place of everything, at once; what changed comes back with the removals last. */
  replace(objects: readonly T[]): Change<T>[];
}

interface Index<T> {
  keysOf: (object: T) => string[];
  buckets: Map<string, Map<string, T>>;
}

function enter<T>(index: Index<T>, key: string, object: T): void {
  for (const value of index.keysOf(object)) {
    const bucket = index.buckets.get(value);
    if (bucket) bucket.set(key, object);
    else index.buckets.set(value, new Map([[key, object]]));
  }
}

function leave<T>(index: Index<T>, key: string, object: T): void {
  for (const value of index.keysOf(object)) {
    const bucket = index.buckets.get(value);
    if (!bucket?.delete(key)) continue;
    if (bucket.size === 0) index.buckets.delete(value);
  }
}

function sameVersion(a: KubeObject, b: KubeObject): boolean {
  return (
    a.metadata.resourceVersion !== undefined && a.metadata.resourceVersion === b.metadata.resourceVersion
  );
}

/** Models k8s.io/client-go/tools/cache thread_safe_store.go (Indexer). */
export function createInformerCache<T extends KubeObject>(): InformerCache<T> {
  let objects = new Map<string, T>();
  const byNamespace: Index<T> = {
    keysOf: (object) => (object.metadata.namespace ? [object.metadata.namespace] : []),
    buckets: new Map(),
  };
  const named = new Map<string, Index<T>>();
  const allIndexes = (): Index<T>[] => [byNamespace, ...named.values()];

  return {
    get: (key) => objects.get(key),
    list(namespace) {
      if (namespace === undefined) return [...objects.values()];
      return [...(byNamespace.buckets.get(namespace)?.values() ?? [])];
    },
    addIndex(name, keysOf) {
      if (named.has(name)) throw new InternalError(`an informer has two indexes called ${name}`);
      const index: Index<T> = { keysOf, buckets: new Map() };
      for (const [key, object] of objects) enter(index, key, object);
      named.set(name, index);
    },
    byIndex(name, value) {
      const index = named.get(name);
      if (!index) throw new InternalError(`an informer has no index called ${name}`);
      return [...(index.buckets.get(value)?.values() ?? [])];
    },
    set(object) {
      const key = objectKey(object);
      const before = objects.get(key);
      if (before && sameVersion(before, object)) return undefined;
      objects.set(key, object);
      for (const index of allIndexes()) {
        if (before) leave(index, key, before);
        enter(index, key, object);
      }
      return { before, now: object };
    },
    remove(object) {
      const key = objectKey(object);
      const before = objects.get(key);
      if (!before) return undefined;
      objects.delete(key);
      for (const index of allIndexes()) leave(index, key, before);
      return { before: object, now: undefined };
    },
    replace(list) {
      const old = objects;
      const next = new Map<string, T>();
      const changes: Change<T>[] = [];
      for (const object of list) {
        const key = objectKey(object);
        const before = old.get(key);
        const unchanged = before && sameVersion(before, object);
        next.set(key, unchanged ? before : object);
        if (!unchanged) changes.push({ before, now: object });
      }
      for (const [key, before] of old) if (!next.has(key)) changes.push({ before, now: undefined });
      objects = next;
      for (const index of allIndexes()) {
        index.buckets.clear();
        for (const [key, object] of next) enter(index, key, object);
      }
      return changes;
    },
  };
}
