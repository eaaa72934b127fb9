import { goFormat } from '../go-format.ts';
import { isJsonObject, type JsonObject } from '../json-value.ts';
import { parseApiVersion, type UnstructuredObject } from '../object.ts';
import { StatusError } from '../status-error.ts';
import type { ListSchema, ScalarSchema, StructSchema, TypeSchema } from '../type-schema.ts';
import { formatElement, itemElement } from './path-element.ts';

const MAX_ERRORS = 100;
const MAX_DEPTH = 200;

/**
 * Throws StatusError 500, in upstream's words, when an applied object does not fit its type: unknown fields, values of the
 * wrong type, repeated items. Models ObjectToTyped of managedfields and structured-merge-diff/typed/validate.go.
 */
export function validateApplied(applied: UnstructuredObject, schema: TypeSchema): void {
  const errors: string[] = [];
  validate(applied, schema, '', errors, 0);
  if (errors.length === 0) return;
  const text =
    errors.length === 1 ? errors[0] : ['errors:', ...errors.map((error) => `  ${error}`)].join('\n');
  const { group, version } = parseApiVersion(applied.apiVersion);
  const kind = `${group}/${version}, Kind=${applied.kind}`;
  const { namespace = '', name } = applied.metadata;
  const message = `failed to create typed patch object (${namespace}/${name}; ${kind}): ${text}`;
  throw new StatusError({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    code: 500,
  });
}

function report(errors: string[], path: string, message: string): void {
  if (errors.length < MAX_ERRORS) errors.push(path ? `${path}: ${message}` : message);
}

function validate(value: unknown, type: TypeSchema, path: string, errors: string[], depth: number): void {
  if (value === null || value === undefined || type.kind === 'any' || depth > MAX_DEPTH) return;
  if (type.kind === 'scalar') validateScalar(value, type, path, errors);
  else if (type.kind === 'list') validateList(value, type, path, errors, depth);
  else if (!isJsonObject(value)) report(errors, path, `expected map, got &{${goFormat(value)}}`);
  else if (type.kind === 'map') {
    for (const key of Object.keys(value))
      validate(value[key], type.values, `${path}.${key}`, errors, depth + 1);
  } else validateStruct(value, type, path, errors, depth);
}

function validateStruct(
  value: JsonObject,
  type: StructSchema,
  path: string,
  errors: string[],
  depth: number,
): void {
  for (const key of Object.keys(value)) {
    const field = type.fields.get(key);
    if (field) validate(value[key], field.type, `${path}.${key}`, errors, depth + 1);
    else if (!type.preserveUnknown) report(errors, `${path}.${key}`, 'field not declared in schema');
  }
}

function validateList(value: unknown, type: ListSchema, path: string, errors: string[], depth: number): void {
  if (!Array.isArray(value)) {
    report(errors, path, `expected list, got &{${goFormat(value)}}`);
    return;
  }
  const seen = new Set<string>();
  value.forEach((item: unknown, at) => {
    let itemPath = `${path}[${at}]`;
    if (type.listType !== 'atomic') {
      const element = itemElement(type, item);
      if (element === undefined) {
        report(errors, path, `element ${at}: ${missingElement(type, item)}`);
        return;
      }
      if (seen.has(element)) report(errors, path, `duplicate entries for key ${formatElement(element)}`);
      seen.add(element);
      itemPath = path + formatElement(element);
    }
    validate(item, type.items, itemPath, errors, depth + 1);
  });
}

function missingElement(type: ListSchema, item: unknown): string {
  if (type.listType === 'set') {
    if (isJsonObject(item)) return "associative list without keys has an element that's a map type";
    return Array.isArray(item)
      ? 'not supported: associative list with lists as elements'
      : "associative list without keys has an element that's an explicit null";
  }
  if (item === null) return 'associative list with keys may not have a null element';
  if (!isJsonObject(item)) return 'associative list with keys may not have non-map elements';
  const keys = type.mapKeys.map((key) => JSON.stringify(key)).join(' ');
  return `associative list with keys has an element that omits all key fields [${keys}] (and doesn't have default values for any key fields)`;
}

function validateScalar(value: unknown, type: ScalarSchema, path: string, errors: string[]): void {
  switch (type.scalar) {
    case 'string':
    case 'bytes':
      if (typeof value !== 'string')
        report(errors, path, `expected string, got &value.valueUnstructured{Value:${goSyntax(value)}}`);
      return;
    case 'boolean':
      if (typeof value !== 'boolean') report(errors, path, `expected boolean, got &{${goFormat(value)}}`);
      return;
    case 'int32':
    case 'int64':
    case 'number':
    case 'byte':
      if (typeof value !== 'number')
        report(errors, path, `expected numeric (int or float), got ${goType(value)}`);
      return;
    default:
      if (typeof value === 'object') report(errors, path, `expected any scalar, got &{${goFormat(value)}}`);
  }
}

function goType(value: unknown): string {
  if (typeof value === 'string') return 'string';
  if (typeof value === 'boolean') return 'bool';
  return Array.isArray(value) ? '[]interface {}' : 'map[string]interface {}';
}

/** Go's `%#v` of a JSON value. */
function goSyntax(value: unknown): string {
  if (value === null || value === undefined) return 'interface {}(nil)';
  if (Array.isArray(value)) return `[]interface {}{${value.map(goSyntax).join(', ')}}`;
  if (!isJsonObject(value)) return JSON.stringify(value);
  const members = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${goSyntax(value[key])}`);
  return `map[string]interface {}{${members.join(', ')}}`;
}
