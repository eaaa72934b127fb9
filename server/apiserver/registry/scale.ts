import {
  badRequest,
  builtinSchema,
  conflict,
  invalid,
  notFound,
  STALE_WRITE,
  type UnstructuredObject,
} from '#server/kube';
import { cloneJson, freezeJson, isRecord, shown } from '../json.ts';
import { shapeAsGo } from '../kinds/go-shape.ts';
import { objectStorageKey } from '../storage.ts';
import type { ObjectAnswer, Operation, RegistryEnvironment } from './operation.ts';
import { writeOptions } from './options.ts';
import { APPLY_PATCH, patchFunction, unsupportedPatch } from './patch.ts';
import { changeObject } from './update.ts';

/**
 * GET, PUT and PATCH of `/scale`: an autoscaling/v1 Scale made of the object, its replicas written back into it.
 * Models the ScaleREST of apps and of apiextensions' custom resources.
 */
export async function handleScale(env: RegistryEnvironment, op: Operation): Promise<ObjectAnswer> {
  const paths = op.kind.scale;
  const entry = env.storage.get(objectStorageKey(op.kind, op.namespace, op.name ?? ''));
  if (!paths || !entry) throw notFound(op.kind, op.name ?? '');
  if (op.verb === 'get') return { code: 200, object: freezeJson(scaleOf(op, env.storage.decode(entry))) };
  const options = writeOptions(op, op.verb === 'patch' ? 'PatchOptions' : 'UpdateOptions');
  if (op.contentType === APPLY_PATCH) throw unsupportedPatch(op);
  const patch =
    op.verb === 'patch'
      ? patchFunction(scaleEnvironment(env), {
          ...op,
          kind: { ...op.kind, schemaType: 'autoscaling/v1#Scale' },
        })
      : undefined;
  const revision =
    isRecord(op.body) && isRecord(op.body['metadata']) ? op.body['metadata']['resourceVersion'] : undefined;
  const answer = await changeObject(
    env,
    op,
    {
      part: 'scale',
      managed: false,
      retry: !revision,
      unconditional: true,
      next: (live) => {
        const scale = scaleOf(op, live);
        const wanted = checkScale(op, patch ? patch(scale) : op.body);
        const stale =
          wanted.metadata.resourceVersion &&
          wanted.metadata.resourceVersion !== live.metadata.resourceVersion;
        if (stale) throw conflict(op.kind, op.name ?? '', STALE_WRITE);
        const next = cloneJson(live);
        setPath(next, paths.specReplicas, replicasOf(wanted));
        return next;
      },
    },
    options,
  );
  return { code: answer.code, object: freezeJson(scaleOf(op, answer.object as UnstructuredObject)) };
}

function scaleEnvironment(env: RegistryEnvironment): RegistryEnvironment {
  return { ...env, schemaOf: () => builtinSchema('autoscaling/v1#Scale') };
}

function scaleOf(op: Operation, object: UnstructuredObject): UnstructuredObject {
  const paths = op.kind.scale;
  if (!paths) throw notFound(op.kind, op.name ?? '');
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  const selector = paths.selector ? getPath(object, paths.selector) : undefined;
  const replicas = getPath(object, paths.specReplicas);
  const current = getPath(object, paths.statusReplicas);
  const metadata: Record<string, unknown> = { name, namespace, uid, resourceVersion, creationTimestamp };
  return cloneJson({
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata,
    spec: typeof replicas === 'number' && replicas !== 0 ? { replicas } : {},
    status: {
      replicas: typeof current === 'number' ? current : 0,
      selector: selector === undefined || selector === '' ? undefined : selectorText(selector),
    },
  }) as unknown as UnstructuredObject;
}

/** `status.selector` is text; apps keep a LabelSelector, custom resources already a text. */
function selectorText(selector: unknown): string | undefined {
  if (typeof selector === 'string') return selector;
  if (!isRecord(selector)) return undefined;
  const terms: string[] = [];
  const labels = isRecord(selector['matchLabels']) ? selector['matchLabels'] : {};
  for (const key of Object.keys(labels).sort()) terms.push(`${key}=${String(labels[key])}`);
  const expressions = Array.isArray(selector['matchExpressions'])
    ? selector['matchExpressions'].filter(isRecord)
    : [];
  for (const { key, operator, values } of expressions) {
    const list = Array.isArray(values) ? values.map(String).sort().join(',') : '';
    if (operator === 'Exists') terms.push(String(key));
    else if (operator === 'DoesNotExist') terms.push(`!${String(key)}`);
    else terms.push(`${String(key)} ${operator === 'In' ? 'in' : 'notin'} (${list})`);
  }
  return terms.sort().join(',');
}

function checkScale(op: Operation, value: unknown): UnstructuredObject {
  if (!isRecord(value)) throw badRequest('the object provided is unrecognized (must be of type Scale)');
  if (value['kind'] && value['kind'] !== 'Scale') {
    throw badRequest(`${shown(value['kind'])} cannot be handled as a Scale`);
  }
  const scale = cloneJson({
    ...value,
    apiVersion: 'autoscaling/v1',
    kind: 'Scale',
  }) as unknown as UnstructuredObject;
  shapeAsGo(scale, builtinSchema('autoscaling/v1#Scale'));
  const replicas = replicasOf(scale);
  if (replicas < 0) {
    throw invalid({ group: 'autoscaling', kind: 'Scale' }, op.name ?? '', [
      {
        type: 'FieldValueInvalid',
        field: 'spec.replicas',
        value: replicas,
        detail: 'must be greater than or equal to 0',
      },
    ]);
  }
  return scale;
}

function replicasOf(scale: UnstructuredObject): number {
  const spec = scale['spec'];
  return isRecord(spec) && typeof spec['replicas'] === 'number' ? spec['replicas'] : 0;
}

function pathParts(path: string): string[] {
  return path.split('.').filter((part) => part !== '');
}

function getPath(object: unknown, path: string): unknown {
  let value = object;
  for (const part of pathParts(path)) value = isRecord(value) ? value[part] : undefined;
  return value;
}

function setPath(object: Record<string, unknown>, path: string, value: unknown): void {
  const parts = pathParts(path);
  const last = parts.pop();
  let target = object;
  for (const part of parts) {
    const child = target[part];
    if (isRecord(child)) target = child;
    else {
      const made: Record<string, unknown> = {};
      target[part] = made;
      target = made;
    }
  }
  if (last) target[last] = value;
}
