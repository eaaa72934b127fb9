import {
  builtinSchema,
  conflict,
  type DeleteOptions,
  type FieldError,
  failure,
  formatTime,
  invalid,
  isNotFound,
  notFound,
  parseApiVersion,
  type Status,
  type UnstructuredObject,
} from '#server/kube';
import { type Entry, RevisionMismatchError } from '#server/store';
import { cloneJson, freezeJson, isRecord } from '../json.ts';
import { shapeAsGo } from '../kinds/go-shape.ts';
import { objectStorageKey } from '../storage.ts';
import { type ObjectAnswer, type Operation, type RegistryEnvironment, requestContext } from './operation.ts';
import { booleanOf, checkDryRun } from './options.ts';
import { isHeld, ownFinalizers } from './parts.ts';
import { asServed, isSelected } from './read.ts';
import { selectionOf } from './selection.ts';

const MAX_DELETE_TRIES = 20;
/** Deletes of a collection in flight at once. */
const COLLECTION_WORKERS = 32;

const ORPHAN = 'orphan';
const FOREGROUND = 'foregroundDeletion';

/** Kinds whose DELETE answers with the object. Models ReturnDeletedObject of upstream's stores. */
const ANSWERS_OBJECT = new Set([
  'core/pods',
  'core/serviceaccounts',
  'core/services',
  'core/persistentvolumes',
  'core/persistentvolumeclaims',
  'core/podtemplates',
  'core/resourcequotas',
  'storage.k8s.io/storageclasses',
  'storage.k8s.io/csidrivers',
  'storage.k8s.io/csinodes',
  'storage.k8s.io/volumeattachments',
  'policy/podsecuritypolicies',
]);

/** DELETE of one object. Models handlers.DeleteResource, rest.BeforeDelete and registry/generic Store.Delete. */
export async function deleteObject(env: RegistryEnvironment, op: Operation): Promise<ObjectAnswer> {
  const options = deleteOptions(op);
  return deleteNamed(env, op, op.name ?? '', options);
}

/** DELETE of a collection: every object selected, each as a delete of its own. Answers with the list of what was there. */
export async function deleteCollection(
  env: RegistryEnvironment,
  op: Operation,
): Promise<{ entries: readonly Entry[]; revision: number }> {
  const options = deleteOptions(op);
  const selection = selectionOf(op.kind, op.namespace, undefined, op.query);
  const list = env.storage.store.list(selection.prefix);
  const entries = list.entries.filter((entry) => isSelected(env, selection, entry));
  let next = 0;
  const work = async (): Promise<void> => {
    for (let entry = entries[next++]; entry; entry = entries[next++]) {
      const { namespace, name } = env.storage.decode(entry).metadata;
      try {
        await deleteNamed(env, { ...op, namespace: namespace ?? op.namespace, name }, name, options);
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(COLLECTION_WORKERS, entries.length) }, work));
  return { entries, revision: list.revision };
}

/**
 * Deletes by name, on behalf of `op`'s user; also what an eviction does. Tries again when the object changes meanwhile,
 * unless a precondition forbids.
 */
export async function deleteNamed(
  env: RegistryEnvironment,
  op: Operation,
  name: string,
  options: DeleteOptions & { dryRun?: string[] },
): Promise<ObjectAnswer> {
  const dryRun = (options.dryRun?.length ?? 0) > 0;
  const key = objectStorageKey(op.kind, op.namespace, name);
  let entry = env.storage.get(key);
  for (let attempt = 1; ; attempt++) {
    if (!entry) throw notFound(op.kind, name);
    const live = asServed(env, op, env.storage.decode(entry));
    checkPreconditions(op, live, options);
    await env.admission.admit({
      operation: 'DELETE',
      kind: op.kind,
      namespace: op.namespace,
      name,
      old: live,
      user: op.user,
      dryRun,
      server: env.facilities,
    });
    try {
      return await deleteEntry(env, op, entry, live, options, dryRun);
    } catch (error) {
      if (!(error instanceof RevisionMismatchError)) throw error;
      if (attempt >= MAX_DELETE_TRIES) throw conflict(op.kind, name, 'the object kept changing');
      entry = error.actual;
    }
  }
}

async function deleteEntry(
  env: RegistryEnvironment,
  op: Operation,
  entry: Entry,
  live: UnstructuredObject,
  options: DeleteOptions,
  dryRun: boolean,
): Promise<ObjectAnswer> {
  const now = env.clock.now();
  const next = cloneJson(live);
  delete next.metadata.resourceVersion;
  const graceful = setGrace(op, next, live, options, now);
  if (graceful === 'pending') return answerDelete(op, live, false, options);
  setPropagationFinalizers(next, options);
  if (!live.metadata.deletionTimestamp) addFinalizers(next, op.kind.strategy.finalizersOnDelete ?? []);
  const finalizersChanged =
    (next.metadata.finalizers ?? []).join() !== (live.metadata.finalizers ?? []).join();
  const finalizersHold = (next.metadata.finalizers?.length ?? 0) > 0 || ownFinalizers(op, next).length > 0;
  if (graceful === 'none' && (finalizersHold || finalizersChanged)) markDeleting(op, next, live, now);
  if (graceful !== 'none' || finalizersHold) {
    if (isNamespace(op)) markTerminating(next);
    op.kind.strategy.prepareForDelete?.(next, requestContext(env, op, dryRun));
  }
  if (isHeld(op, next)) {
    if (dryRun || sameDeletion(next, live))
      return answerDelete(op, dryRun ? freezeJson(next) : live, false, options);
    await env.storage.put(entry.key, next, entry.modRevision);
    return answerDelete(op, next, false, options);
  }
  if (dryRun) return answerDelete(op, live, true, options);
  await env.storage.remove(entry.key, next, entry.modRevision);
  op.kind.strategy.release?.(cloneJson(live), requestContext(env, op, false));
  return answerDelete(op, next, true, options);
}

type Grace = 'none' | 'set' | 'pending';

/** Models rest.BeforeDelete: the grace period of a first delete, or a shorter one of a later delete. */
function setGrace(
  op: Operation,
  next: UnstructuredObject,
  live: UnstructuredObject,
  options: DeleteOptions,
  now: number,
): Grace {
  const asked =
    options.gracePeriodSeconds !== undefined && options.gracePeriodSeconds < 0
      ? 1
      : options.gracePeriodSeconds;
  const { strategy } = op.kind;
  if (!strategy.gracePeriod) return 'none';
  if (live.metadata.deletionTimestamp) {
    const before = live.metadata.deletionGracePeriodSeconds ?? 0;
    if (before === 0) return 'none';
    if (asked === undefined || asked >= before) return 'pending';
    const due = Date.parse(live.metadata.deletionTimestamp) + (asked - before) * 1000;
    next.metadata.deletionTimestamp = formatTime(Math.max(due, now));
    next.metadata.deletionGracePeriodSeconds = due < now && asked !== 0 ? 1 : asked;
    return 'set';
  }
  const period = strategy.gracePeriod(cloneJson(live), asked);
  next.metadata.deletionTimestamp = formatTime(now + period * 1000);
  next.metadata.deletionGracePeriodSeconds = period;
  if (next.metadata.generation) next.metadata.generation++;
  return 'set';
}

/** Models markAsDeleting of registry/generic. */
function markDeleting(op: Operation, next: UnstructuredObject, live: UnstructuredObject, now: number): void {
  if (!live.metadata.deletionTimestamp) {
    next.metadata.deletionTimestamp = formatTime(now);
    if (next.metadata.generation) next.metadata.generation++;
  } else if (Date.parse(live.metadata.deletionTimestamp) > now)
    next.metadata.deletionTimestamp = formatTime(now);
  if (!isNamespace(op)) next.metadata.deletionGracePeriodSeconds = 0;
}

function isNamespace(op: Operation): boolean {
  return op.kind.group === '' && op.kind.plural === 'namespaces';
}

/** Models the namespace store's Delete. */
function markTerminating(next: UnstructuredObject): void {
  next['status'] = { ...(isRecord(next['status']) ? next['status'] : {}), phase: 'Terminating' };
}

/** Models deletionFinalizersForGarbageCollection. */
function setPropagationFinalizers(next: UnstructuredObject, options: DeleteOptions): void {
  const { propagationPolicy, orphanDependents } = options;
  if (propagationPolicy === undefined && orphanDependents === undefined) return;
  const orphan = propagationPolicy === 'Orphan' || orphanDependents === true;
  const foreground = propagationPolicy === 'Foreground';
  const finalizers = (next.metadata.finalizers ?? []).filter(
    (finalizer) => finalizer !== ORPHAN && finalizer !== FOREGROUND,
  );
  if (orphan) finalizers.push(ORPHAN);
  if (foreground) finalizers.push(FOREGROUND);
  if (finalizers.length > 0) next.metadata.finalizers = finalizers;
  else delete next.metadata.finalizers;
}

function addFinalizers(next: UnstructuredObject, added: readonly string[]): void {
  if (added.length > 0)
    next.metadata.finalizers = [...new Set([...(next.metadata.finalizers ?? []), ...added])];
}

function sameDeletion(next: UnstructuredObject, live: UnstructuredObject): boolean {
  return (
    live.metadata.deletionTimestamp !== undefined &&
    next.metadata.deletionTimestamp === live.metadata.deletionTimestamp &&
    next.metadata.deletionGracePeriodSeconds === live.metadata.deletionGracePeriodSeconds &&
    (next.metadata.finalizers ?? []).join() === (live.metadata.finalizers ?? []).join()
  );
}

/** The object when it still exists or its kind answers so; a Success Status otherwise. Models finalizeDelete. */
function answerDelete(
  op: Operation,
  object: UnstructuredObject,
  gone: boolean,
  options: DeleteOptions,
): ObjectAnswer {
  const accepted =
    !gone && (options.propagationPolicy === 'Foreground' || options.orphanDependents === false);
  const code = accepted ? 202 : 200;
  if (!gone || ANSWERS_OBJECT.has(`${op.kind.group || 'core'}/${op.kind.plural}`))
    return { code, object, kind: op.kind };
  const { name, uid } = object.metadata;
  const status = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Success',
    details: {
      name,
      ...(op.kind.group ? { group: op.kind.group } : {}),
      kind: op.kind.plural,
      ...(uid ? { uid } : {}),
    },
  };
  return { code, object: freezeJson(status) as unknown as Status };
}

function checkPreconditions(op: Operation, live: UnstructuredObject, options: DeleteOptions): void {
  const wanted = options.preconditions;
  if (!wanted) return;
  const resource = { group: op.kind.group, plural: op.kind.kind };
  const { name, uid, resourceVersion } = live.metadata;
  if (wanted.uid && wanted.uid !== uid) {
    throw conflict(
      resource,
      name,
      `the UID in the precondition (${wanted.uid}) does not match the UID in record (${uid}). The object might have been deleted and then recreated`,
    );
  }
  if (wanted.resourceVersion && wanted.resourceVersion !== resourceVersion) {
    throw conflict(
      resource,
      name,
      `the ResourceVersion in the precondition (${wanted.resourceVersion}) does not match the ResourceVersion in record (${resourceVersion}). The object might have been modified`,
    );
  }
}

/**
 * DeleteOptions of the body, or of the query when there is no body. Throws 400 and 422 in upstream's words.
 * Models handlers.DeleteResource and ValidateDeleteOptions.
 */
export function deleteOptions(op: Operation): DeleteOptions {
  const options = optionsOfBody(op) ?? optionsOfQuery(op);
  const errors: FieldError[] = [];
  const { propagationPolicy, orphanDependents } = options;
  if (propagationPolicy !== undefined && orphanDependents !== undefined) {
    errors.push({
      type: 'FieldValueInvalid',
      field: 'propagationPolicy',
      value: propagationPolicy,
      detail: 'orphanDependents and deletionPropagation cannot be both set',
    });
  } else if (
    propagationPolicy !== undefined &&
    !['Foreground', 'Background', 'Orphan'].includes(propagationPolicy)
  ) {
    errors.push({
      type: 'FieldValueNotSupported',
      field: 'propagationPolicy',
      value: propagationPolicy,
      detail: 'supported values: "Foreground", "Background", "Orphan", "nil"',
    });
  }
  const dryRun = options.dryRun ?? [];
  if (dryRun.length > 0) checkDryRun(dryRun.length === 1 ? dryRun[0] : dryRun.join(','), errors);
  if (errors.length > 0) throw invalid({ group: 'meta.k8s.io', kind: 'DeleteOptions' }, '', errors);
  return options;
}

function optionsOfBody(op: Operation): DeleteOptions | undefined {
  if (op.body === undefined) return undefined;
  const body = isRecord(op.body) ? cloneJson(op.body) : undefined;
  if (!body || (body['kind'] !== undefined && body['kind'] !== 'DeleteOptions')) {
    throw failure(400, 'BadRequest', 'the object provided is unrecognized (must be of type DeleteOptions)');
  }
  if (
    typeof body['apiVersion'] === 'string' &&
    !['v1', op.kind.version].includes(parseApiVersion(body['apiVersion']).version)
  ) {
    throw failure(400, 'BadRequest', `unexpected apiVersion ${body['apiVersion']} of DeleteOptions`);
  }
  const shaped = { apiVersion: 'v1', kind: 'DeleteOptions', ...body } as unknown as UnstructuredObject;
  shapeAsGo(shaped, builtinSchema('meta/v1#DeleteOptions'));
  return shaped as unknown as DeleteOptions;
}

function optionsOfQuery(op: Operation): DeleteOptions {
  const { query } = op;
  const options: DeleteOptions = {};
  if (query['propagationPolicy']) options.propagationPolicy = query['propagationPolicy'];
  if (query['gracePeriodSeconds'] !== undefined) {
    const seconds = Number(query['gracePeriodSeconds']);
    if (!Number.isSafeInteger(seconds)) {
      throw failure(
        400,
        'BadRequest',
        `strconv.ParseInt: parsing ${JSON.stringify(query['gracePeriodSeconds'])}: invalid syntax`,
      );
    }
    options.gracePeriodSeconds = seconds;
  }
  const orphan = booleanOf(query['orphanDependents']);
  if (orphan !== undefined) options.orphanDependents = orphan;
  if (query['dryRun']) options.dryRun = [query['dryRun']];
  return options;
}
