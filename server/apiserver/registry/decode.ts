import { badRequest, formatApiVersion, type UnstructuredObject, unknownFields } from '#server/kube';
import { cloneJson, isRecord, setMember, shown } from '../json.ts';
import type { KindDefinition } from '../kind.ts';
import type { Operation, RegistryEnvironment } from './operation.ts';
import type { WriteOptions } from './options.ts';

/**
 * The body of a create or update as a private object of the kind: apiVersion and kind filled in and checked, unknown and
 * duplicate fields refused or warned of, defaults filled. Throws 400 in the words of upstream's decoder.
 * Models apiserver/pkg/endpoints/handlers/create.go (decode, transformDecodeError).
 */
export function decodeObject(
  env: RegistryEnvironment,
  op: Operation,
  options: Pick<WriteOptions, 'fieldValidation'>,
): UnstructuredObject {
  const object = shellOf(op.kind, op.body);
  checkFields(env, op, object, options);
  op.kind.strategy.defaults?.(object);
  return object;
}

/** A private copy, apiVersion, kind and metadata first. */
export function shellOf(kind: KindDefinition, body: unknown): UnstructuredObject {
  const apiVersion = formatApiVersion(kind.group, kind.version);
  if (!isRecord(body)) {
    throw badRequest(
      body === undefined
        ? `the object provided is unrecognized (must be of type ${kind.kind}): couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)`
        : `the object provided is unrecognized (must be of type ${kind.kind}): couldn't get version/kind; json parse error: json: cannot unmarshal ${Array.isArray(body) ? 'array' : typeof body} into Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }`,
    );
  }
  const gotVersion = body['apiVersion'] || apiVersion;
  const gotKind = body['kind'] || kind.kind;
  if (gotVersion !== apiVersion) {
    throw badRequest(
      `the API version in the data (${shown(gotVersion)}) does not match the expected API version (${apiVersion})`,
    );
  }
  if (gotKind !== kind.kind) {
    throw badRequest(
      `${shown(gotKind)} in version "${kind.version}" cannot be handled as a ${kind.kind}: converting (${kind.version}.${shown(gotKind)}) to (${kind.version}.${kind.kind}): unknown conversion`,
    );
  }
  const object: UnstructuredObject = {
    apiVersion,
    kind: kind.kind,
    metadata: metadataOf(kind, body['metadata']),
  };
  for (const key of Object.keys(body)) {
    if (key === 'apiVersion' || key === 'kind' || key === 'metadata' || body[key] === undefined) continue;
    setMember(object, key, cloneJson(body[key]));
  }
  return object;
}

function metadataOf(kind: KindDefinition, metadata: unknown): UnstructuredObject['metadata'] {
  if (metadata === undefined || metadata === null) return { name: '' };
  const refuse = (field: string, got: unknown, type: string): never => {
    const what = Array.isArray(got) ? 'array' : typeof got === 'boolean' ? 'bool' : typeof got;
    throw badRequest(
      `${kind.kind} in version "${kind.version}" cannot be handled as a ${kind.kind}: json: cannot unmarshal ${what} into Go struct field ${field} of type ${type}`,
    );
  };
  if (!isRecord(metadata)) return refuse(`${kind.kind}.metadata`, metadata, 'v1.ObjectMeta');
  const copy = cloneJson(metadata);
  for (const key of Object.keys(copy)) if (copy[key] === null) delete copy[key];
  for (const field of TEXT_FIELDS) {
    if (copy[field] !== undefined && typeof copy[field] !== 'string')
      refuse(`ObjectMeta.metadata.${field}`, copy[field], 'string');
  }
  for (const field of ['labels', 'annotations']) {
    const map = copy[field];
    if (map === undefined) continue;
    if (!isRecord(map)) return refuse(`ObjectMeta.metadata.${field}`, map, 'map[string]string');
    for (const key of Object.keys(map)) {
      if (map[key] === null) map[key] = '';
      else if (typeof map[key] !== 'string') refuse(`ObjectMeta.metadata.${field}`, map[key], 'string');
    }
  }
  const finalizers = copy['finalizers'];
  if (
    finalizers !== undefined &&
    !(Array.isArray(finalizers) && finalizers.every((f) => typeof f === 'string'))
  ) {
    refuse('ObjectMeta.metadata.finalizers', finalizers, '[]string');
  }
  for (const field of ['ownerReferences', 'managedFields']) {
    const list = copy[field];
    if (list !== undefined && !(Array.isArray(list) && list.every(isRecord)))
      refuse(`ObjectMeta.metadata.${field}`, list, '[]v1.OwnerReference');
  }
  const named = copy as UnstructuredObject['metadata'] & Record<string, unknown>;
  named.name ??= '';
  return named;
}

const TEXT_FIELDS = [
  'name',
  'generateName',
  'namespace',
  'uid',
  'resourceVersion',
  'creationTimestamp',
  'deletionTimestamp',
];

/** Unknown and duplicate fields by the directive: 400, warnings, or nothing. */
function checkFields(
  env: RegistryEnvironment,
  op: Operation,
  object: UnstructuredObject,
  options: Pick<WriteOptions, 'fieldValidation'>,
): void {
  if (options.fieldValidation === 'Ignore') return;
  const errors = [...op.duplicates, ...unknownFields(object, env.schemaOf(op.kind))];
  if (errors.length === 0) return;
  if (options.fieldValidation === 'Warn') {
    for (const error of errors) op.warn(error);
    return;
  }
  throw badRequest(
    `${op.kind.kind} in version "${op.kind.version}" cannot be handled as a ${op.kind.kind}: strict decoding error: ${errors.join(', ')}`,
  );
}

/** The namespace of the request holds; the object may repeat it. Models EnsureObjectNamespaceMatchesRequestNamespace. */
export function matchNamespace(op: Operation, object: UnstructuredObject): void {
  const { metadata } = object;
  if (!op.kind.namespaced || op.namespace === undefined) {
    if (metadata.namespace === '') delete metadata.namespace;
    return;
  }
  if (metadata.namespace && metadata.namespace !== op.namespace) {
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request');
  }
  metadata.namespace = op.namespace;
}

/** The name in the path holds. Models the check of update.go. */
export function matchName(op: Operation, object: UnstructuredObject): void {
  const name = op.name ?? '';
  if (!object.metadata.name) object.metadata.name = name;
  if (object.metadata.name !== name) {
    throw badRequest(
      `the name of the object (${object.metadata.name}) does not match the name on the URL (${name})`,
    );
  }
}
