import type { Client } from '#server/client';
import { deepEqual, isNotFound, type KubeObject, type Resource } from '#server/kube';
import { MANAGER } from './vocabulary.ts';

type Json = Record<string, unknown>;

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * The JSON merge patch that turns `before` into `after`; undefined when they are equal. Lists are replaced whole.
 * Models jsonpatch.CreateMergePatch.
 */
export function mergePatch(before: Json, after: Json): Json | undefined {
  const patch: Json = {};
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const old = before[key];
    const now = after[key];
    if (deepEqual(old, now)) continue;
    if (now === undefined) patch[key] = null;
    else if (isObject(old) && isObject(now)) patch[key] = mergePatch(old, now) ?? {};
    else patch[key] = now;
  }
  return Object.keys(patch).length > 0 ? patch : undefined;
}

function part(object: KubeObject, which: 'status' | 'rest'): Json {
  const all = Object.entries(object);
  return Object.fromEntries(all.filter(([key]) => (key === 'status') === (which === 'status')));
}

/** Lists in metadata that others write too: a patch of them must not undo what it has not seen. */
function sharedListsDiffer(before: KubeObject, after: KubeObject): boolean {
  return (
    !deepEqual(before.metadata.finalizers, after.metadata.finalizers) ||
    !deepEqual(before.metadata.ownerReferences, after.metadata.ownerReferences)
  );
}

/**
 * The status with its generations moved on: what a controller says of an object whose spec it has just changed itself
 * is said of the new generation.
 */
function movedOn(status: unknown, from: number | undefined, to: number | undefined): unknown {
  if (!isObject(status) || from === to || to === undefined) return status;
  const move = (part: Json): Json =>
    part['observedGeneration'] === from ? { ...part, observedGeneration: to } : part;
  const conditions = Array.isArray(status['conditions'])
    ? { conditions: status['conditions'].map((one: unknown) => (isObject(one) ? move(one) : one)) }
    : {};
  return { ...move(status), ...conditions };
}

/**
 * Writes what a controller changed: metadata and spec in one patch, status in another, each only when it differs.
 * The last finalizer goes last. Rejects with 409 when finalizers or owners were changed by somebody else meanwhile.
 * Returns the object as it is then. Models sigs.k8s.io/cluster-api/util/patch.
 */
export async function saveChanges<T extends KubeObject>(
  client: Client,
  resource: Resource<T>,
  before: T,
  after: T,
): Promise<T> {
  const main = mergePatch(part(before, 'rest'), part(after, 'rest'));
  const ref = { namespace: before.metadata.namespace, name: before.metadata.name };
  const lock = sharedListsDiffer(before, after) && before.metadata.resourceVersion !== undefined;
  const was = part(before, 'status');
  const writeMain = async (latest: T): Promise<T> =>
    main ? client.patch(resource, ref, { type: 'merge', body: locked(main, latest, lock) }, MANAGER) : latest;
  const writeStatus = async (latest: T): Promise<T> => {
    const now = part(after, 'status');
    const status = mergePatch(
      was,
      'status' in now
        ? { status: movedOn(now['status'], before.metadata.generation, latest.metadata.generation) }
        : now,
    );
    return status
      ? client.patch(resource, ref, { type: 'merge', body: status }, { ...MANAGER, subresource: 'status' })
      : latest;
  };
  const leaving =
    after.metadata.deletionTimestamp !== undefined &&
    (after.metadata.finalizers ?? []).length < (before.metadata.finalizers ?? []).length;
  return leaving ? writeMain(await writeStatus(before)) : writeStatus(await writeMain(before));
}

function locked(patch: Json, object: KubeObject, lock: boolean): Json {
  if (!lock) return patch;
  const metadata = isObject(patch['metadata']) ? patch['metadata'] : {};
  return { ...patch, metadata: { ...metadata, resourceVersion: object.metadata.resourceVersion } };
}

/** The object, or undefined when there is none. */
export async function find<T extends KubeObject>(
  client: Client,
  resource: Resource<T>,
  namespace: string | undefined,
  name: string,
): Promise<T | undefined> {
  try {
    return await client.get(resource, { namespace, name });
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/** Deletes an object that is there and not yet being deleted; absent is fine. */
export async function remove(client: Client, resource: Resource, object: KubeObject): Promise<void> {
  if (object.metadata.deletionTimestamp !== undefined) return;
  try {
    await client.delete(resource, { namespace: object.metadata.namespace, name: object.metadata.name });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}

/**
 * The object with the finalizer, written when it was missing: before anything is made that only this finalizer cleans
 * up. Returns the object as stored.
 */
export async function withFinalizer<T extends KubeObject>(
  client: Client,
  resource: Resource<T>,
  object: T,
  finalizer: string,
): Promise<T> {
  const finalizers = object.metadata.finalizers ?? [];
  if (finalizers.includes(finalizer)) return object;
  return saveChanges(client, resource, object, {
    ...object,
    metadata: { ...object.metadata, finalizers: [...finalizers, finalizer] },
  });
}

/** Takes a finalizer off, in place. */
export function dropFinalizer(object: KubeObject, finalizer: string): void {
  object.metadata.finalizers = (object.metadata.finalizers ?? []).filter((name) => name !== finalizer);
}
