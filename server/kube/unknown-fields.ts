import { cloneJson, isJsonObject, type JsonObject } from './json-value.ts';
import type { TypeSchema } from './type-schema.ts';

const MAX_REPORTED = 100;
const MAX_DEPTH = 200;

/**
 * The fields of an object that its schema does not know, worded as upstream's strict decoder does
 * (`unknown field "spec.containers[0].foo"`), in document order, at most 100. Values of the wrong type are not looked into.
 * Models sigs.k8s.io/json strict decoding and the pruning of apiextensions-apiserver.
 */
export function unknownFields(object: unknown, schema: TypeSchema): string[] {
  const found: string[] = [];
  visit(object, schema, '', 0, (path) => {
    if (found.length < MAX_REPORTED) found.push(`unknown field "${path}"`);
    return false;
  });
  return found;
}

/** The object without the fields its schema does not know; the very same object when there are none. */
export function pruneUnknownFields<T>(object: T, schema: TypeSchema): T {
  let unknown = false;
  visit(object, schema, '', 0, () => {
    unknown = true;
    return false;
  });
  if (!unknown) return object;
  const copy = cloneJson(object);
  visit(copy, schema, '', 0, () => true);
  return copy;
}

/** Calls back for every unknown field; the answer true removes it. */
type OnUnknown = (path: string) => boolean;

function visit(value: unknown, schema: TypeSchema, path: string, depth: number, onUnknown: OnUnknown): void {
  if (depth > MAX_DEPTH || typeof value !== 'object' || value === null) return;
  if (schema.kind === 'list') {
    if (!Array.isArray(value) || schema.items.kind === 'scalar') return;
    value.forEach((item, index) => visit(item, schema.items, `${path}[${index}]`, depth + 1, onUnknown));
    return;
  }
  if (!isJsonObject(value)) return;
  if (schema.kind === 'map') {
    if (schema.values.kind === 'scalar') return;
    for (const key of Object.keys(value))
      visit(value[key], schema.values, join(path, key), depth + 1, onUnknown);
  } else if (schema.kind === 'struct') {
    visitMembers(value, schema, path, depth, onUnknown);
  }
}

function visitMembers(
  value: JsonObject,
  schema: TypeSchema & { kind: 'struct' },
  path: string,
  depth: number,
  onUnknown: OnUnknown,
): void {
  for (const key of Object.keys(value)) {
    const field = schema.fields.get(key);
    if (field) {
      const { type } = field;
      if (type.kind !== 'scalar' && type.kind !== 'any')
        visit(value[key], type, join(path, key), depth + 1, onUnknown);
    } else if (!schema.preserveUnknown && onUnknown(join(path, key))) {
      delete value[key];
    }
  }
}

function join(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`;
}
