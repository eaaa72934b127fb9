import {
  applyJsonPatch,
  applyMergePatch,
  applyStrategicMergePatch,
  badRequest,
  conflict,
  failure,
  formatTime,
  goFormat,
  invalid,
  isNotFound,
  type JsonPatchOperation,
  StatusError,
  serverSideApply,
  type UnstructuredObject,
  unknownFields,
} from '#server/kube';
import { cloneJson, isRecord, shown } from '../json.ts';
import { conversionError } from './conversion-error.ts';
import { storeNew } from './create.ts';
import { matchName, matchNamespace, shellOf } from './decode.ts';
import {
  isStructSchema,
  managerOf,
  type ObjectAnswer,
  type Operation,
  type RegistryEnvironment,
} from './operation.ts';
import { type WriteOptions, writeOptions } from './options.ts';
import { type Part, withoutUntouched } from './parts.ts';
import { changeObject } from './update.ts';

export const JSON_PATCH = 'application/json-patch+json';
export const MERGE_PATCH = 'application/merge-patch+json';
export const STRATEGIC_PATCH = 'application/strategic-merge-patch+json';
export const APPLY_PATCH = 'application/apply-patch+yaml';

/** The patch types a kind takes, as 415 lists them. */
function patchTypes(op: Operation): string[] {
  return op.kind.schemaType === undefined
    ? [JSON_PATCH, MERGE_PATCH, APPLY_PATCH, 'application/apply-patch+cbor']
    : [JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH];
}

/** 415 for a patch type nobody takes. Models negotiation.NewUnsupportedMediaTypeError. */
export function unsupportedPatch(op: Operation): Error {
  return failure(
    415,
    'UnsupportedMediaType',
    `the body of the request was in an unknown format - accepted media types include: ${patchTypes(op).join(', ')}`,
  );
}

/** PATCH of an object or one of its parts. Models apiserver/pkg/endpoints/handlers/patch.go. */
export async function patchObject(
  env: RegistryEnvironment,
  op: Operation,
  part: Part = 'main',
): Promise<ObjectAnswer> {
  const options = writeOptions(op, 'PatchOptions');
  if (op.contentType === APPLY_PATCH) return applyObject(env, op, part, options);
  const patch = patchFunction(env, op);
  return changeObject(
    env,
    op,
    {
      part,
      managed: false,
      retry: !namesRevision(op.body),
      unconditional: true,
      next: (live) => decodePatched(env, op, options, withoutUntouched(part, patch(live), live)),
    },
    options,
  );
}

/**
 * The function from a document (left as it is) to the patched document, which may share its parts, that the body stands
 * for. Throws 400 or 415.
 */
export function patchFunction(
  env: RegistryEnvironment,
  op: Operation,
): (document: UnstructuredObject) => unknown {
  const { body } = op;
  switch (op.contentType) {
    case JSON_PATCH: {
      if (!Array.isArray(body)) {
        throw badRequest(
          `error decoding patch: json: cannot unmarshal ${typeof body} into Go value of type jsonpatch.Patch`,
        );
      }
      return (document) => applyJsonPatch(document, body as JsonPatchOperation[]);
    }
    case MERGE_PATCH:
      if (!isRecord(body)) throw badRequest('error decoding patch: json: cannot unmarshal into a map');
      return (document) => applyMergePatch(document, body);
    case STRATEGIC_PATCH: {
      if (!isRecord(body)) throw badRequest('error decoding patch: json: cannot unmarshal into a map');
      const schema = env.schemaOf(op.kind);
      if (op.kind.schemaType === undefined || !isStructSchema(schema)) throw unsupportedPatch(op);
      return (document) => applyStrategicMergePatch(document, body, schema);
    }
    default:
      throw unsupportedPatch(op);
  }
}

function namesRevision(body: unknown): boolean {
  return isRecord(body) && isRecord(body['metadata']) && Boolean(body['metadata']['resourceVersion']);
}

function decodePatched(
  env: RegistryEnvironment,
  op: Operation,
  options: WriteOptions,
  patched: unknown,
): UnstructuredObject {
  const schema = env.schemaOf(op.kind);
  const refuse = (detail: string): StatusError => {
    const value = op.contentType === STRATEGIC_PATCH ? goFormat(op.body) : JSON.stringify(patched);
    return invalid({ group: '', kind: '' }, '', [
      { type: 'FieldValueInvalid', field: 'patch', value, detail },
    ]);
  };
  const object = shellOf(op.kind, patched);
  if (op.contentType === STRATEGIC_PATCH) {
    const error = conversionError(object, schema);
    if (error) throw refuse(error);
  }
  if (options.fieldValidation !== 'Ignore') {
    const errors = [...op.duplicates, ...unknownFields(object, schema)];
    if (errors.length > 0 && options.fieldValidation === 'Strict') {
      throw refuse(`strict decoding error: ${errors.join(', ')}`);
    }
    for (const error of errors) op.warn(error);
  }
  try {
    op.kind.strategy.defaults?.(object);
  } catch (error) {
    const decoding = error instanceof StatusError ? DECODING_ERROR.exec(error.message)?.[1] : undefined;
    throw decoding === undefined ? error : refuse(decoding);
  }
  return object;
}

/** What the decoder of whole objects says; of a patched object upstream tells only the second half. */
const DECODING_ERROR = /^\w+ in version "\w+" cannot be handled as a \w+: (.*)$/s;

/** Server-side apply. Models handlers.applyPatcher and structured-merge-diff through `serverSideApply`. */
async function applyObject(
  env: RegistryEnvironment,
  op: Operation,
  part: Part,
  options: WriteOptions,
): Promise<ObjectAnswer> {
  const applied = appliedObject(op);
  checkApplied(op, options);
  const merge = (live: UnstructuredObject | undefined): UnstructuredObject => {
    const merged = serverSideApply({
      live,
      applied: cloneJson(applied),
      manager: managerOf(op),
      force: options.force ?? false,
      time: formatTime(env.clock.now()),
      ...(op.subresource ? { subresource: op.subresource } : {}),
      schema: env.schemaOf(op.kind),
    });
    const object = shellOf(op.kind, merged);
    op.kind.strategy.defaults?.(object);
    return object;
  };
  try {
    return await changeObject(
      env,
      op,
      { part, managed: true, retry: !applied.metadata.resourceVersion, unconditional: true, next: merge },
      options,
    );
  } catch (error) {
    if (!isNotFound(error) || part !== 'main') throw error;
    if (applied.metadata.uid) {
      throw conflict(
        op.kind,
        op.name ?? '',
        `uid mismatch: the provided object specified uid ${applied.metadata.uid}, and no existing object was found`,
      );
    }
    const object = merge(undefined);
    matchNamespace(op, object);
    return storeNew(env, op, object, options, true);
  }
}

/** The applied configuration, checked as applyPatcher checks it. */
function appliedObject(op: Operation): UnstructuredObject {
  const { body } = op;
  if (!isRecord(body)) throw badRequest('error decoding YAML: the applied configuration must be an object');
  if (!body['apiVersion'] || !body['kind']) {
    throw badRequest(
      `invalid object type: ${JSON.stringify(shown(body['apiVersion']))}, Kind=${shown(body['kind'])}`,
    );
  }
  const object = shellOf(op.kind, body);
  if (object.metadata.managedFields && object.metadata.managedFields.length > 0) {
    throw badRequest('metadata.managedFields must be nil');
  }
  delete object.metadata.managedFields;
  matchNamespace(op, object);
  matchName(op, object);
  return object;
}

/** Members that come twice; what does not fit the type is found by the merge. */
function checkApplied(op: Operation, options: WriteOptions): void {
  if (options.fieldValidation === 'Ignore' || op.duplicates.length === 0) return;
  if (options.fieldValidation === 'Strict') {
    throw badRequest(`error strict decoding YAML: ${op.duplicates.join(', ')}`);
  }
  for (const error of op.duplicates) op.warn(error);
}
