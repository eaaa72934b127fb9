import {
  conflict,
  deepEqual,
  formatTime,
  invalid,
  isNotFound,
  type ManagedFieldsEntry,
  notFound,
  recordUpdate,
  STALE_WRITE,
  type UnstructuredObject,
} from '#server/kube';
import { type Entry, RevisionMismatchError } from '#server/store';
import { cloneJson, freezeJson } from '../json.ts';
import { objectStorageKey } from '../storage.ts';
import { storeNew } from './create.ts';
import { decodeObject, matchName, matchNamespace } from './decode.ts';
import {
  countsGeneration,
  metadataErrors,
  metadataUpdateErrors,
  resourceVersionRequired,
} from './metadata.ts';
import {
  managerOf,
  type ObjectAnswer,
  type Operation,
  type RegistryEnvironment,
  requestContext,
} from './operation.ts';
import { type WriteOptions, writeOptions } from './options.ts';
import { carryOver, isHeld, type Part, splitParts, withoutUntouched } from './parts.ts';
import { asServed } from './read.ts';

/** How often a change that names no revision is applied again to a newer state. */
export const MAX_CONFLICT_TRIES = 5;

/** How one write turns the live state into the next. */
export interface Change {
  readonly part: Part;
  /** A private object made from the live one (frozen). Its managedFields are already right when `managed`. */
  next(live: UnstructuredObject): UnstructuredObject;
  readonly managed: boolean;
  /** Applied again to a newer state on conflict. */
  readonly retry: boolean;
  readonly unconditional: boolean;
}

/** PUT of an object or of one of its parts. Models apiserver/pkg/endpoints/handlers/update.go. */
export async function updateObject(
  env: RegistryEnvironment,
  op: Operation,
  part: Part = 'main',
): Promise<ObjectAnswer> {
  const options = writeOptions(op, 'UpdateOptions');
  const stored =
    part === 'status' ? env.storage.get(objectStorageKey(op.kind, op.namespace, op.name ?? '')) : undefined;
  const body = withoutUntouched(part, op.body, stored && env.storage.decode(stored));
  const object = decodeObject(env, { ...op, body }, options);
  matchNamespace(op, object);
  matchName(op, object);
  const change: Change = {
    part,
    next: () => cloneJson(object),
    managed: false,
    retry: !object.metadata.resourceVersion,
    unconditional: op.kind.strategy.allowUnconditionalUpdate === true || part !== 'main',
  };
  try {
    return await changeObject(env, op, change, options);
  } catch (error) {
    if (!isNotFound(error) || part !== 'main' || !op.kind.strategy.allowCreateOnUpdate) throw error;
    if (object.metadata.uid) throw preconditionFailed(op, object.metadata.uid, '');
    return storeNew(env, op, object, options);
  }
}

/** Reads, changes and writes one object; the one path of PUT, PATCH, apply and the subresources that change objects. */
export async function changeObject(
  env: RegistryEnvironment,
  op: Operation,
  change: Change,
  options: WriteOptions,
): Promise<ObjectAnswer> {
  const key = objectStorageKey(op.kind, op.namespace, op.name ?? '');
  let entry = env.storage.get(key);
  for (let attempt = 1; ; attempt++) {
    if (!entry) throw notFound(op.kind, op.name ?? '');
    try {
      return await changeEntry(env, op, change, options, entry);
    } catch (error) {
      if (!(error instanceof RevisionMismatchError)) throw error;
      if (!change.retry || attempt > MAX_CONFLICT_TRIES) throw conflict(op.kind, op.name ?? '', STALE_WRITE);
      entry = error.actual;
    }
  }
}

async function changeEntry(
  env: RegistryEnvironment,
  op: Operation,
  change: Change,
  options: WriteOptions,
  entry: Entry,
): Promise<ObjectAnswer> {
  const { kind } = op;
  const live = asServed(env, op, env.storage.decode(entry));
  const sent = change.next(live);
  matchNamespace(op, sent);
  matchName(op, sent);
  checkPreconditions(op, change, sent, live);
  const next = splitParts(op, change.part, sent, live);
  carryOver(next, live);
  if (!change.managed) setManagedFields(env, op, next, live);
  const context = requestContext(env, op, options.dryRun);
  // A binding was admitted as the create of a Binding.
  const admitted = change.part === 'binding' ? undefined : env.admission;
  await admitted?.admit({
    operation: 'UPDATE',
    kind,
    ...(op.subresource ? { subresource: op.subresource } : {}),
    namespace: op.namespace,
    name: live.metadata.name,
    object: next,
    old: live,
    user: op.user,
    dryRun: options.dryRun,
    server: env.facilities,
  });
  await kind.strategy.prepareForUpdate?.(next, live, context);
  try {
    carryOver(next, live);
    countGeneration(op, next, live);
    validateChange(op, change.part, next, live);
    if (isSame(next, live)) return { code: 200, object: live, stored: entry, kind };
    for (const warning of kind.strategy.warnings?.(next) ?? []) op.warn(warning);
    if (options.dryRun) {
      next.metadata.resourceVersion = String(entry.modRevision);
      kind.strategy.releaseDifference?.(next, live, context);
      return { code: 200, object: freezeJson(next), kind };
    }
    if (next.metadata.deletionTimestamp && !isHeld(op, next)) {
      await env.storage.remove(entry.key, next, entry.modRevision);
      kind.strategy.release?.(cloneJson(next), context);
      return { code: 200, object: next, kind };
    }
    const stored = await env.storage.put(entry.key, next, entry.modRevision);
    kind.strategy.releaseDifference?.(live, next, context);
    return { code: 200, object: next, stored, kind };
  } catch (error) {
    kind.strategy.releaseDifference?.(next, live, context);
    throw error;
  }
}

function checkPreconditions(
  op: Operation,
  change: Change,
  sent: UnstructuredObject,
  live: UnstructuredObject,
): void {
  const { uid, resourceVersion } = sent.metadata;
  if (uid && uid !== live.metadata.uid) throw preconditionFailed(op, uid, live.metadata.uid ?? '');
  if (!resourceVersion || resourceVersion === '0') {
    if (!change.unconditional) throw resourceVersionRequired(op.kind, op.name ?? '');
    return;
  }
  if (!/^\d+$/.test(resourceVersion)) {
    throw invalid(op.kind, op.name ?? '', [
      {
        type: 'FieldValueInvalid',
        field: 'metadata.resourceVersion',
        value: resourceVersion,
        detail: `strconv.ParseUint: parsing ${JSON.stringify(resourceVersion)}: invalid syntax`,
      },
    ]);
  }
  if (resourceVersion !== live.metadata.resourceVersion) throw conflict(op.kind, op.name ?? '', STALE_WRITE);
}

/** Models storage.Preconditions.Check as etcd3 words it. */
function preconditionFailed(op: Operation, wanted: string, actual: string): Error {
  const key = objectStorageKey(op.kind, op.namespace, op.name ?? '').replace(
    /^\/registry\/core\//,
    '/registry/',
  );
  return conflict(
    op.kind,
    op.name ?? '',
    `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: ${wanted}, UID in object meta: ${actual}`,
  );
}

function setManagedFields(
  env: RegistryEnvironment,
  op: Operation,
  next: UnstructuredObject,
  live: UnstructuredObject,
): void {
  const entries: ManagedFieldsEntry[] = recordUpdate({
    live,
    next,
    manager: managerOf(op),
    time: formatTime(env.clock.now()),
    ...(op.subresource ? { subresource: op.subresource } : {}),
    schema: env.schemaOf(op.kind),
  });
  if (entries.length > 0) next.metadata.managedFields = entries;
  else delete next.metadata.managedFields;
}

function countGeneration(op: Operation, next: UnstructuredObject, live: UnstructuredObject): void {
  if (!countsGeneration(op.kind) || live.metadata.generation === undefined) return;
  const raised = op.kind.strategy.raisesGeneration?.(next, live) ?? !sameBesideStatus(next, live);
  if (raised) next.metadata.generation = live.metadata.generation + 1;
}

function sameBesideStatus(a: UnstructuredObject, b: UnstructuredObject): boolean {
  return deepEqual(
    { ...a, metadata: undefined, status: undefined },
    { ...b, metadata: undefined, status: undefined },
  );
}

function validateChange(op: Operation, part: Part, next: UnstructuredObject, live: UnstructuredObject): void {
  const { strategy } = op.kind;
  const errors = [...metadataErrors(next, op.kind), ...metadataUpdateErrors(next, live)];
  if (part === 'status') errors.push(...(strategy.validateStatusUpdate?.(next, live) ?? []));
  // A binding sets what no update may; its own rules were checked. Finalizers of a namespace have no others.
  else if (part !== 'binding' && part !== 'finalize')
    errors.push(...(strategy.validateUpdate?.(next, live) ?? []));
  if (errors.length > 0) throw invalid(op.kind, live.metadata.name, errors);
}

/**
 * Nothing changed but, at most, the times in managedFields: nothing is written and those times stay.
 * Models fieldmanager.IgnoreManagedFieldsTimestampsTransformer and the no-op check of etcd3.GuaranteedUpdate.
 */
function isSame(next: UnstructuredObject, live: UnstructuredObject): boolean {
  const bare = (object: UnstructuredObject): unknown => ({
    ...object,
    metadata: { ...object.metadata, resourceVersion: undefined, managedFields: undefined },
  });
  if (!deepEqual(bare(next), bare(live))) return false;
  const untimed = (object: UnstructuredObject): unknown =>
    (object.metadata.managedFields ?? []).map((entry) => ({ ...entry, time: undefined }));
  return deepEqual(untimed(next), untimed(live));
}
