import { goFormat } from './go-format.ts';
import { cloneJson, getMember, isJsonObject, type JsonObject, setMember } from './json-value.ts';
import { badRequest, StatusError } from './status-error.ts';
import { deduplicate, extractSpecialElements, mergeInOrder, samePartition } from './strategic-merge-lists.ts';
import type { FieldSchema, StructSchema, TypeSchema } from './type-schema.ts';

const DIRECTIVE = '$patch';
const RETAIN_KEYS = '$retainKeys';
const SET_ORDER = '$setElementOrder/';
const DELETE_FROM_LIST = '$deleteFromPrimitiveList/';
const MAX_DEPTH = 200;

/**
 * Applies a strategic merge patch to a copy of the document: `$patch` (replace, delete), `$retainKeys`,
 * `$setElementOrder/<list>`, `$deleteFromPrimitiveList/<list>`, lists merged by the merge key of their field or, of
 * scalars, as sets. `schema` is the built-in kind's. Throws StatusError 400 for a malformed directive and 500 for a patch
 * that does not fit the document, in upstream's words.
 * Models k8s.io/apimachinery/pkg/util/strategicpatch.
 */
export function applyStrategicMergePatch(document: object, patch: object, schema: StructSchema): object {
  return mergeObjects(
    copyNamed(document as JsonObject, patch as JsonObject),
    cloneJson(patch as JsonObject),
    schema,
    0,
  );
}

/** A copy whose members that the patch does not name are the document's own; directives may reach any of them. */
function copyNamed(document: JsonObject, patch: JsonObject): JsonObject {
  if (Object.keys(patch).some((key) => key.startsWith('$'))) return cloneJson(document);
  const copy: JsonObject = {};
  for (const key of Object.keys(document)) {
    setMember(copy, key, Object.hasOwn(patch, key) ? cloneJson(document[key]) : document[key]);
  }
  return copy;
}

/** Merges `patch` into `original`; both are ours to change. */
function mergeObjects(
  original: JsonObject,
  patch: JsonObject,
  schema: TypeSchema | undefined,
  depth: number,
): JsonObject {
  if (depth > MAX_DEPTH) throw badRequest('invalid JSON document');
  if (Object.hasOwn(patch, DIRECTIVE)) return applyDirective(patch);
  applyRetainKeys(original, patch);
  applyElementOrders(original, patch, schema, depth);
  for (const key of Object.keys(patch)) {
    const value = patch[key];
    if (key.startsWith(DELETE_FROM_LIST))
      deleteFromList(original, listName(key, DELETE_FROM_LIST), value, schema);
    else if (value === null) delete original[key];
    else mergeMember(original, key, value, schema, depth);
  }
  return original;
}

function mergeMember(
  original: JsonObject,
  key: string,
  value: unknown,
  schema: TypeSchema | undefined,
  depth: number,
): void {
  const current = getMember(original, key);
  if (isJsonObject(current) && isJsonObject(value)) {
    const field = fieldOf(schema, key);
    const replaces = strategyOf(field) === 'replace';
    setMember(original, key, replaces ? value : mergeObjects(current, value, field.type, depth + 1));
  } else if (Array.isArray(current) && Array.isArray(value)) {
    const field = fieldOf(schema, key);
    const merges = strategyOf(field) === 'merge';
    original[key] = merges ? mergeLists(current, value, field, depth).merged : value;
  } else {
    discardNulls(value);
    const kept = withoutDirectives(value);
    if (kept === undefined) delete original[key];
    else setMember(original, key, kept);
  }
}

function applyDirective(patch: JsonObject): JsonObject {
  const directive = patch[DIRECTIVE];
  if (directive === 'delete') return {};
  if (directive !== 'replace')
    throw broken(`unknown patch type: ${goFormat(directive)} in map: ${goFormat(patch)}`);
  delete patch[DIRECTIVE];
  return patch;
}

function applyRetainKeys(original: JsonObject, patch: JsonObject): void {
  if (!Object.hasOwn(patch, RETAIN_KEYS)) return;
  const names = patch[RETAIN_KEYS];
  delete patch[RETAIN_KEYS];
  if (!Array.isArray(names)) throw badRequest('invalid patch format of retainKeys');
  const retained = new Set<unknown>(names);
  for (const key of Object.keys(patch)) {
    if (patch[key] === null || key.startsWith(DELETE_FROM_LIST) || key.startsWith(SET_ORDER)) continue;
    if (!retained.has(key)) throw badRequest('invalid patch format of retainKeys');
  }
  for (const key of Object.keys(original)) if (!retained.has(key)) delete original[key];
}

/** Merges the lists that come with an order, puts them in it, and takes both out of the patch. */
function applyElementOrders(
  original: JsonObject,
  patch: JsonObject,
  schema: TypeSchema | undefined,
  depth: number,
): void {
  for (const directive of Object.keys(patch)) {
    if (!directive.startsWith(SET_ORDER)) continue;
    const order = patch[directive];
    delete patch[directive];
    const key = listName(directive, SET_ORDER);
    const current = getMember(original, key);
    const change = getMember(patch, key);
    if (!Array.isArray(order)) throw wrongType('[]interface {}', order);
    if (current !== undefined && !Array.isArray(current)) throw wrongType('[]interface {}', current);
    if (change !== undefined && !Array.isArray(change)) throw wrongType('[]interface {}', change);
    const field = fieldOf(schema, key);
    checkOrder(change ?? [], order, field.patchMergeKey);
    if (!current && !change) continue;
    if (!current?.length && !change?.length) throw broken('no elements in any of the given slices');
    const { merged, live } = mergeOrdered(current, change, field, depth);
    original[key] = mergeInOrder(merged, order, live, field.patchMergeKey);
    delete patch[key];
  }
}

/**
 * The merged list, and the live list that its order is compared with. Where items were deleted, upstream compares with
 * what took their place in the same array.
 */
function mergeOrdered(
  current: unknown[] | undefined,
  change: unknown[] | undefined,
  field: FieldSchema,
  depth: number,
): { merged: unknown[]; live: unknown[] } {
  if (!change) return { merged: current ?? [], live: current ?? [] };
  if (!current) return { merged: withoutDirectives(change) as unknown[], live: [] };
  if (strategyOf(field) !== 'merge') return { merged: change, live: current };
  const { merged, unordered, keptCount } = mergeLists(current, change, field, depth);
  return { merged, live: keptCount < current.length ? unordered.slice(0, current.length) : current };
}

/** The items of a patch list must be part of the announced order, in that order. */
function checkOrder(list: readonly unknown[], order: readonly unknown[], mergeKey: string | undefined): void {
  if (list.length === 0 || order.length === 0) return;
  const wanted = list.filter((item) => !(isJsonObject(item) && Object.hasOwn(item, DIRECTIVE)));
  let next = 0;
  for (const item of order) {
    if (next >= wanted.length) return;
    if (samePartition(wanted[next], item, mergeKey)) next++;
  }
  if (next < wanted.length) {
    throw broken(
      `The order in patch list:\n${goFormat(list)}\n doesn't match $setElementOrder list:\n${goFormat(order)}\n`,
    );
  }
}

function deleteFromList(
  original: JsonObject,
  key: string,
  value: unknown,
  schema: TypeSchema | undefined,
): void {
  if (value === null) {
    delete original[key];
    return;
  }
  const current = getMember(original, key);
  if (!Array.isArray(current) || !Array.isArray(value)) return;
  fieldOf(schema, key);
  const gone = new Set<unknown>(value);
  original[key] = current.filter((item) => !gone.has(item));
}

interface MergedList {
  /** In order. */
  merged: unknown[];
  /** What is left of the live list, then what is new. */
  unordered: unknown[];
  keptCount: number;
}

function mergeLists(original: unknown[], patch: unknown[], field: FieldSchema, depth: number): MergedList {
  const keptCount = original.length;
  if (keptCount === 0 && patch.length === 0) return { merged: original, unordered: original, keptCount };
  if (elementType([...original, ...patch]) !== 'map') {
    const unordered = deduplicate([...original, ...patch]);
    return { merged: mergeInOrder(unordered, patch, original, undefined), unordered, keptCount };
  }
  const mergeKey = field.patchMergeKey;
  if (!mergeKey) throw broken('cannot merge lists without merge key for struct');
  const { kept, changes } = extractSpecialElements(original as JsonObject[], patch as JsonObject[], mergeKey);
  const unordered = [...kept];
  const items = field.type.kind === 'list' ? field.type.items : undefined;
  for (const change of changes) {
    if (!Object.hasOwn(change, mergeKey)) throw noMergeKey(change, mergeKey);
    const at = unordered.findIndex((item) => getMember(item, mergeKey) === change[mergeKey]);
    const found = unordered[at];
    if (found) unordered[at] = mergeObjects(found, change, items, depth + 1);
    else unordered.push(change);
  }
  for (const item of unordered) if (!Object.hasOwn(item, mergeKey)) throw noMergeKey(item, mergeKey);
  return { merged: mergeInOrder(unordered, changes, kept, mergeKey), unordered, keptCount: kept.length };
}

/** The one type of all elements, as upstream demands. */
function elementType(list: readonly unknown[]): 'map' | 'scalar' {
  const types = new Set(list.map((item) => (item === null ? 'null' : typeof item)));
  if (list.some((item) => Array.isArray(item))) {
    throw new StatusError({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      reason: 'Invalid',
      code: 422,
      details: {},
      message: 'the server rejected our request due to an error in our request',
    });
  }
  if (types.size > 1) throw broken(`list element types are not identical: ${goFormat(list)}`);
  return types.has('object') ? 'map' : 'scalar';
}

function fieldOf(schema: TypeSchema | undefined, key: string): FieldSchema {
  if (schema?.kind === 'map')
    return { name: key, type: schema.values, required: false, omitEmpty: true, pointer: false };
  const field = schema?.kind === 'struct' ? schema.fields.get(key) : undefined;
  if (field) return field;
  const typeName = schema?.kind === 'struct' ? schema.typeName?.split('#')[1] : undefined;
  throw broken(
    `unable to find api field in struct ${typeName ?? 'RawExtension'} for the json field ${JSON.stringify(key)}`,
  );
}

/** `merge`, `replace` or nothing; `retainKeys` only matters to those who make patches. */
function strategyOf(field: FieldSchema): string {
  return field.patchStrategy?.split(',').find((strategy) => strategy !== 'retainKeys') ?? '';
}

function listName(directive: string, prefix: string): string {
  return directive.slice(prefix.length);
}

function discardNulls(value: unknown): void {
  if (Array.isArray(value)) value.forEach(discardNulls);
  else if (isJsonObject(value)) {
    for (const key of Object.keys(value)) {
      if (value[key] === null) delete value[key];
      else discardNulls(value[key]);
    }
  }
}

/** The value without objects that hold a directive; undefined when it is one itself. */
function withoutDirectives(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutDirectives).filter((item) => item !== undefined);
  if (!isJsonObject(value)) return value;
  if (Object.hasOwn(value, DIRECTIVE)) return undefined;
  for (const key of Object.keys(value)) {
    const kept = withoutDirectives(value[key]);
    if (kept === undefined) delete value[key];
    else setMember(value, key, kept);
  }
  return value;
}

function noMergeKey(item: JsonObject, mergeKey: string): StatusError {
  return broken(`map: ${goFormat(item)} does not contain declared merge key: ${mergeKey}`);
}

function wrongType(expected: string, actual: unknown): StatusError {
  const name = isJsonObject(actual)
    ? 'map[string]interface {}'
    : actual === null
      ? '%!s(<nil>)'
      : typeof actual;
  return broken(`expected a ${expected}, but received a ${name}`);
}

/** An error the API server has no status for: it answers 500 with the bare text. */
function broken(message: string): StatusError {
  return new StatusError({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    code: 500,
  });
}
