import {
  alreadyExists,
  formatTime,
  generateName,
  invalid,
  isAlreadyExists,
  type ManagedFieldsEntry,
  recordUpdate,
  type UnstructuredObject,
} from '#server/kube';
import { RevisionMismatchError } from '#server/store';
import { cloneJson, freezeJson } from '../json.ts';
import type { RequestContext } from '../kind.ts';
import { objectStorageKey } from '../storage.ts';
import { decodeObject, matchNamespace } from './decode.ts';
import { countsGeneration, metadataErrors } from './metadata.ts';
import {
  managerOf,
  type ObjectAnswer,
  type Operation,
  type RegistryEnvironment,
  requestContext,
} from './operation.ts';
import { type WriteOptions, writeOptions } from './options.ts';

const MAX_NAME_TRIES = 8;
const SUFFIX_LENGTH = 5;

/** POST to a collection. Models apiserver/pkg/endpoints/handlers/create.go and registry/rest.BeforeCreate. */
export async function createObject(env: RegistryEnvironment, op: Operation): Promise<ObjectAnswer> {
  const options = writeOptions(op, 'CreateOptions');
  const object = decodeObject(env, op, options);
  matchNamespace(op, object);
  if (op.kind.virtual) {
    const context = requestContext(env, op, options.dryRun);
    const answer = await op.kind.virtual(context, object);
    return { code: 201, object: freezeJson(answer), kind: op.kind };
  }
  return storeNew(env, op, object, options);
}

/**
 * The part of a create behind decoding; also of an update or apply that creates. With `managed` the object already
 * carries its managedFields.
 */
export async function storeNew(
  env: RegistryEnvironment,
  op: Operation,
  object: UnstructuredObject,
  options: WriteOptions,
  managed = false,
): Promise<ObjectAnswer> {
  const { kind } = op;
  const context = requestContext(env, op, options.dryRun);
  if (!managed) {
    const owned = ownedByCreator(env, op, object);
    if (owned.length > 0) object.metadata.managedFields = owned;
    else delete object.metadata.managedFields;
  }
  await env.admission.admit({
    operation: 'CREATE',
    kind,
    namespace: op.namespace,
    name: object.metadata.name,
    object,
    user: op.user,
    dryRun: options.dryRun,
    server: env.facilities,
  });
  fillSystemFields(env, object);
  const generated = !object.metadata.name && object.metadata.generateName;
  const template = generated ? cloneJson(object) : undefined;
  let candidate = object;
  for (let attempt = 1; ; attempt++) {
    if (generated) candidate.metadata.name = generateName(generated, env.facilities.suffix(SUFFIX_LENGTH));
    try {
      return await storeCandidate(env, op, candidate, context);
    } catch (error) {
      if (!template || attempt >= MAX_NAME_TRIES || !isAlreadyExists(error)) throw error;
      candidate = cloneJson(template);
    }
  }
}

async function storeCandidate(
  env: RegistryEnvironment,
  op: Operation,
  object: UnstructuredObject,
  context: RequestContext,
): Promise<ObjectAnswer> {
  const { kind } = op;
  const { strategy } = kind;
  const name = object.metadata.name;
  const key = objectStorageKey(kind, op.namespace, name);
  try {
    await strategy.prepareForCreate?.(object, context);
    if (countsGeneration(kind)) object.metadata.generation = 1;
    const errors = [...metadataErrors(object, kind), ...(strategy.validate?.(object) ?? [])];
    if (errors.length > 0) throw invalid(kind, name, errors);
    for (const warning of strategy.warnings?.(object) ?? []) op.warn(warning);
    if (context.dryRun) {
      if (env.storage.get(key)) throw alreadyExists(kind, name);
      strategy.release?.(cloneJson(object), context);
      return { code: 201, object: freezeJson(object), kind };
    }
    const stored = await env.storage.put(key, object, 'absent');
    return { code: 201, object, stored, kind };
  } catch (error) {
    strategy.release?.(cloneJson(object), context);
    throw error instanceof RevisionMismatchError ? alreadyExists(kind, name) : error;
  }
}

/** Who owns what after a create: all that was sent, but not what the kind resets (status). */
function ownedByCreator(
  env: RegistryEnvironment,
  op: Operation,
  object: UnstructuredObject,
): ManagedFieldsEntry[] {
  let sent = object;
  if (op.kind.hasStatus && object['status'] !== undefined) {
    sent = { ...object };
    delete sent['status'];
  }
  return recordUpdate({
    live: undefined,
    next: sent,
    manager: managerOf(op),
    time: formatTime(env.clock.now()),
    schema: env.schemaOf(op.kind),
  });
}

/** Models rest.FillObjectMetaSystemFields and the clearing of BeforeCreate. */
function fillSystemFields(env: RegistryEnvironment, object: UnstructuredObject): void {
  const { metadata } = object;
  delete metadata.resourceVersion;
  delete metadata.deletionTimestamp;
  delete metadata.deletionGracePeriodSeconds;
  delete metadata.generation;
  delete metadata.selfLink;
  metadata.uid = env.ids.uid();
  metadata.creationTimestamp = formatTime(env.clock.now());
}
