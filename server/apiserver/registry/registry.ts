import { methodNotAllowed, notFound, type UnstructuredObject } from '#server/kube';
import { cloneJson } from '../json.ts';
import { createObject } from './create.ts';
import { deleteObject } from './delete.ts';
import type { ObjectAnswer, Operation, RegistryEnvironment } from './operation.ts';
import type { Part } from './parts.ts';
import { patchObject } from './patch.ts';
import { bindPod, evictPod, requestToken } from './pods.ts';
import { getObject } from './read.ts';
import { handleScale } from './scale.ts';
import { updateObject } from './update.ts';

const PARTS: Readonly<Record<string, Part>> = {
  status: 'status',
  ephemeralcontainers: 'ephemeralcontainers',
  resize: 'resize',
  finalize: 'finalize',
  approval: 'approval',
};

/** Runs one authorized request for one object (everything but list, watch and deletecollection). */
export function handleObject(env: RegistryEnvironment, op: Operation): Promise<ObjectAnswer> | ObjectAnswer {
  if (op.subresource !== undefined) return handleSubresource(env, op, op.subresource);
  switch (op.verb) {
    case 'get':
      return getObject(env, op);
    case 'create':
      return op.kind.group === '' && op.kind.plural === 'bindings'
        ? bindPod(env, asPods(env, op))
        : createObject(env, op);
    case 'update':
      return updateObject(env, op);
    case 'patch':
      return patchObject(env, op);
    case 'delete':
      return deleteObject(env, op);
    case 'list':
    case 'watch':
    case 'deletecollection':
      throw methodNotAllowed(op.kind, op.verb);
  }
}

function handleSubresource(
  env: RegistryEnvironment,
  op: Operation,
  subresource: string,
): Promise<ObjectAnswer> | ObjectAnswer {
  if (subresource === 'scale') return handleScale(env, op);
  const part = PARTS[subresource];
  if (part !== undefined) {
    if (op.verb === 'get') return getObject(env, op);
    if (op.verb === 'update') return updateObject(env, op, part);
    if (op.verb === 'patch') return patchObject(env, op, part);
    throw methodNotAllowed(op.kind, op.verb);
  }
  if (op.verb !== 'create') throw methodNotAllowed(op.kind, op.verb);
  switch (`${op.kind.plural}/${subresource}`) {
    case 'pods/binding':
      return bindPod(env, op);
    case 'pods/eviction':
      return evictPod(env, op);
    case 'serviceaccounts/token':
      return requestToken(env, op);
    default:
      throw notFound(op.kind, op.name ?? '');
  }
}

/** POST …/bindings is about the pod that the Binding names. */
function asPods(env: RegistryEnvironment, op: Operation): Operation {
  const pods = env.kinds.find('', 'v1', 'pods');
  if (!pods) throw notFound(op.kind, '');
  const body = cloneJson(op.body) as Partial<UnstructuredObject> | undefined;
  return { ...op, kind: pods, name: body?.metadata?.name ?? '' };
}
