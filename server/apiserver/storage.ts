import type { UnstructuredObject } from '#server/kube';
import type { Entry, Expected, Store } from '#server/store';
import { freezeJson } from './json.ts';

/** How many recently used objects stay decoded even when nobody holds them. */
const RECENT_OBJECTS = 64;
/** How many weak references are kept before dead ones are swept. */
const SWEEP_ABOVE = 1024;

interface Located {
  group: string;
  plural: string;
}

/** A stored state: its bytes, and the object when somebody needs it. */
export type StoredBytes = Pick<Entry, 'key' | 'value' | 'modRevision'>;

/**
 * Objects over the store: where they are kept, how they are encoded, and a small bounded cache of decoded ones. Decoded
 * objects are deep-frozen and shared: as long as anybody holds one, everybody gets the same.
 */
export interface ObjectStorage {
  readonly store: Store;
  /** The object of these bytes: frozen, shared. */
  decode(entry: StoredBytes): UnstructuredObject;
  get(key: string): Entry | undefined;
  /**
   * Writes `object` (which becomes frozen, with its new resourceVersion). Rejects with RevisionMismatchError.
   */
  put(key: string, object: UnstructuredObject, expected: Expected): Promise<Entry>;
  /** Writes what `make` returns for the revision: bytes and the same as an object (becomes frozen). */
  putMade(
    key: string,
    make: (revision: number) => { bytes: Uint8Array; object: UnstructuredObject },
    expected: Expected,
  ): Promise<Entry>;
  /** Removes; `last` (becomes frozen) is what the DELETED event shows. */
  remove(key: string, last: UnstructuredObject, expected: number): Promise<void>;
}

/** `/registry/<group or core>/<plural>/` */
export function resourcePrefix(resource: Located): string {
  return `/registry/${resource.group || 'core'}/${resource.plural}/`;
}

/** The prefix of one namespace's objects, or of all. */
export function scopePrefix(resource: Located, namespace: string | undefined): string {
  return namespace ? `${resourcePrefix(resource)}${namespace}/` : resourcePrefix(resource);
}

export function objectStorageKey(resource: Located, namespace: string | undefined, name: string): string {
  return `${scopePrefix(resource, namespace)}${name}`;
}

/** The bytes of an object at a revision. apiVersion and kind come first, so that readers can tell them without parsing. */
export function encodeObject(object: UnstructuredObject, revision: number): Buffer {
  object.metadata.resourceVersion = String(revision);
  const keys = Object.keys(object);
  if (keys[0] === 'apiVersion' && keys[1] === 'kind') return bytesOf(JSON.stringify(object));
  return bytesOf(JSON.stringify(Object.assign({ apiVersion: object.apiVersion, kind: object.kind }, object)));
}

/** Of exactly their size: these bytes are kept, and a slice of Node's pool would be copied for it. */
function bytesOf(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  bytes.write(text, 'utf8');
  return bytes;
}

export function createObjectStorage(store: Store): ObjectStorage {
  const cache = createDecodedCache();
  return {
    store,
    get: (key) => store.get(key),
    decode(entry) {
      const known = cache.get(entry.key, entry.modRevision);
      if (known) return known;
      const object = freezeJson(JSON.parse(textOf(entry.value)) as UnstructuredObject);
      cache.set(entry.key, entry.modRevision, object);
      return object;
    },
    put: (key, object, expected) =>
      store.put(
        key,
        (revision) => {
          const bytes = encodeObject(object, revision);
          cache.set(key, revision, freezeJson(object));
          return bytes;
        },
        expected,
      ),
    putMade: (key, make, expected) =>
      store.put(
        key,
        (revision) => {
          const { bytes, object } = make(revision);
          cache.set(key, revision, freezeJson(object));
          return bytes;
        },
        expected,
      ),
    async remove(key, last, expected) {
      await store.delete(key, {
        expected,
        encode: (revision) => {
          const bytes = encodeObject(last, revision);
          cache.set(key, revision, freezeJson(last));
          return bytes;
        },
      });
    },
  };
}

export function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
}

interface DecodedCache {
  get(key: string, revision: number): UnstructuredObject | undefined;
  set(key: string, revision: number, object: UnstructuredObject): void;
}

interface Decoded {
  revision: number;
  reference: WeakRef<UnstructuredObject>;
}

/**
 * The newest decoded state per key and the one before, which watches with a selector compare it with: held weakly by
 * all, the newest of the recently used strongly.
 */
function createDecodedCache(): DecodedCache {
  const known = new Map<string, Decoded & { before: Decoded | undefined }>();
  const recent = new Map<string, UnstructuredObject>();
  let sweepAt = SWEEP_ABOVE;

  const touch = (key: string, object: UnstructuredObject): void => {
    recent.delete(key);
    recent.set(key, object);
    if (recent.size > RECENT_OBJECTS) {
      const oldest = recent.keys().next();
      if (!oldest.done) recent.delete(oldest.value);
    }
  };
  const sweep = (): void => {
    for (const [key, entry] of known) if (!entry.reference.deref()) known.delete(key);
    sweepAt = Math.max(SWEEP_ABOVE, known.size * 2);
  };
  return {
    get(key, revision) {
      const entry = known.get(key);
      if (!entry) return undefined;
      if (entry.revision !== revision)
        return entry.before?.revision === revision ? entry.before.reference.deref() : undefined;
      const object = entry.reference.deref();
      if (object) touch(key, object);
      return object;
    },
    set(key, revision, object) {
      const entry = known.get(key);
      if (entry && entry.revision > revision) return;
      const before =
        entry && entry.revision < revision
          ? { revision: entry.revision, reference: entry.reference }
          : undefined;
      known.set(key, { revision, reference: new WeakRef(object), before });
      touch(key, object);
      if (known.size > sweepAt) sweep();
    },
  };
}
