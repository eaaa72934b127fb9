import { deepEqual, type FieldError } from '#server/kube';
import { isRecord } from '../json.ts';
import { isFormat } from './formats.ts';
import type { JsonSchema } from './json-schema.ts';

/** More findings than this are not collected: the answer is read by a person. */
const MOST_ERRORS = 100;
const DEEPEST = 200;

/**
 * What is wrong with a custom resource by its schema, worded as upstream words it
 * (`spec.replicas in body must be of type integer: "string"`). `root` is put before the paths of the errors (`status`
 * when only that part is looked at). Parts that did not change from `old` are let through whatever they are.
 * Models k8s.io/kube-openapi/pkg/validation and apiextensions-apiserver's ValidateCustomResourceUpdate (ratcheting).
 */
export function validateBySchema(
  value: unknown,
  schema: JsonSchema,
  options: { old?: unknown; root?: string } = {},
): FieldError[] {
  const found = check(value, schema, '', options.old, 0);
  const { root } = options;
  const errors = found.slice(0, MOST_ERRORS);
  return root
    ? errors.map((error) => ({ ...error, field: error.field === NOWHERE ? root : join(root, error.field) }))
    : errors;
}

/** Where upstream puts what it finds about combinations of schemas. */
const NOWHERE = '<nil>';

function join(parent: string, child: string): string {
  return parent && child ? `${parent}.${child}` : parent || child;
}

function finding(type: FieldError['type'], path: string, value: unknown, detail: string): FieldError {
  return { type, field: path, value, detail };
}

function invalid(path: string, value: unknown, what: string): FieldError {
  return finding('FieldValueInvalid', path, value, `${path} in body ${what}`);
}

/** `old` undefined: there was nothing before. */
function check(value: unknown, schema: JsonSchema, path: string, old: unknown, depth: number): FieldError[] {
  if (depth > DEEPEST || (old !== undefined && deepEqual(value, old))) return [];
  const errors = checkType(value, schema, path);
  // A value of the wrong type is also looked at as what it is.
  if (value !== null) errors.push(...checkCombinations(value, schema, path, old, depth));
  if (typeof value === 'string') errors.push(...checkString(value, schema, path));
  else if (typeof value === 'number') errors.push(...checkNumber(value, schema, path));
  else if (Array.isArray(value)) errors.push(...checkArray(value, schema, path, old, depth));
  else if (isRecord(value)) errors.push(...checkObject(value, schema, path, old, depth));
  return [...errors, ...checkEnum(value, schema, path)];
}

function jsonType(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number';
  return typeof value;
}

function checkType(value: unknown, schema: JsonSchema, path: string): FieldError[] {
  const types = schema['x-kubernetes-int-or-string']
    ? ['integer', 'string']
    : schema.type
      ? [schema.type]
      : [];
  if (types.length === 0 || (value === null && schema.nullable)) return [];
  const got = jsonType(value);
  if (types.includes(got) || (got === 'integer' && types.includes('number'))) return [];
  return [
    finding(
      'FieldValueTypeInvalid',
      path,
      got,
      `${path} in body must be of type ${types.join(',')}: ${JSON.stringify(got)}`,
    ),
  ];
}

function checkEnum(value: unknown, schema: JsonSchema, path: string): FieldError[] {
  if (!schema.enum || schema.enum.some((one) => deepEqual(one, value))) return [];
  const allowed = schema.enum.map((one) =>
    JSON.stringify(typeof one === 'string' ? one : JSON.stringify(one)),
  );
  return [finding('FieldValueNotSupported', path, value, `supported values: ${allowed.join(', ')}`)];
}

function checkString(value: string, schema: JsonSchema, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const { maxLength, minLength, pattern, format } = schema;
  const length = [...value].length;
  if (maxLength !== undefined && length > maxLength) {
    errors.push(finding('FieldValueTooLong', path, undefined, `may not be more than ${maxLength} bytes`));
  }
  if (minLength !== undefined && length < minLength)
    errors.push(invalid(path, value, `should be at least ${minLength} chars long`));
  if (pattern && !compilePattern(pattern)?.test(value))
    errors.push(invalid(path, value, `should match '${pattern}'`));
  if (format && !isFormat(format, value)) {
    errors.push(
      finding(
        'FieldValueTypeInvalid',
        path,
        value,
        `${path} in body must be of type ${format}: ${JSON.stringify(value)}`,
      ),
    );
  }
  return errors;
}

function checkNumber(value: number, schema: JsonSchema, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const { minimum, maximum, multipleOf } = schema;
  if (maximum !== undefined) {
    if (schema.exclusiveMaximum ? value >= maximum : value > maximum) {
      errors.push(
        invalid(
          path,
          value,
          `should be less than ${schema.exclusiveMaximum ? '' : 'or equal to '}${maximum}`,
        ),
      );
    }
  }
  if (minimum !== undefined) {
    if (schema.exclusiveMinimum ? value <= minimum : value < minimum) {
      errors.push(
        invalid(
          path,
          value,
          `should be greater than ${schema.exclusiveMinimum ? '' : 'or equal to '}${minimum}`,
        ),
      );
    }
  }
  if (multipleOf !== undefined && !Number.isInteger(value / multipleOf)) {
    errors.push(invalid(path, value, `should be a multiple of ${multipleOf}`));
  }
  return errors;
}

function checkArray(
  value: unknown[],
  schema: JsonSchema,
  path: string,
  old: unknown,
  depth: number,
): FieldError[] {
  const errors: FieldError[] = [];
  const { items, minItems, maxItems } = schema;
  if (items) {
    const before = correlatedItems(schema, old);
    value.forEach((item, index) =>
      errors.push(...check(item, items, `${path}[${index}]`, before(item, index), depth + 1)),
    );
  }
  if (minItems !== undefined && value.length < minItems) {
    errors.push(invalid(path, value.length, `should have at least ${minItems} items`));
  }
  if (maxItems !== undefined && value.length > maxItems) {
    errors.push(finding('FieldValueTooMany', path, value.length, `must have at most ${maxItems} items`));
  }
  if (
    schema.uniqueItems &&
    value.some((item, index) => value.slice(0, index).some((other) => deepEqual(item, other)))
  ) {
    errors.push(invalid(path, '', "shouldn't contain duplicates"));
  }
  return [...errors, ...duplicates(value, schema, path)];
}

/** Finds an item's former self: by its keys in a list of type map; elsewhere items cannot be told apart. */
function correlatedItems(schema: JsonSchema, old: unknown): (item: unknown, index: number) => unknown {
  const keys = schema['x-kubernetes-list-map-keys'];
  if (!Array.isArray(old) || schema['x-kubernetes-list-type'] !== 'map' || !keys) return () => undefined;
  const known = new Map(old.map((item) => [keyOf(item, schema), item as unknown]));
  return (item) => known.get(keyOf(item, schema));
}

function keyOf(item: unknown, schema: JsonSchema): string {
  const keys = schema['x-kubernetes-list-map-keys'] ?? [];
  return JSON.stringify(
    keys.map(
      (key) => (isRecord(item) ? item[key] : undefined) ?? schema.items?.properties?.[key]?.default ?? null,
    ),
  );
}

/** Lists of type set and map hold nothing twice. Models apiextensions-apiserver/pkg/apiserver/schema/listtype. */
function duplicates(value: unknown[], schema: JsonSchema, path: string): FieldError[] {
  const type = schema['x-kubernetes-list-type'];
  if (type !== 'set' && type !== 'map') return [];
  const seen = new Set<string>();
  return value.flatMap((item, index) => {
    const key = type === 'set' ? JSON.stringify(item) : keyOf(item, schema);
    if (!seen.has(key)) {
      seen.add(key);
      return [];
    }
    const keys = schema['x-kubernetes-list-map-keys'] ?? [];
    const shown =
      type === 'set' || !isRecord(item) ? item : Object.fromEntries(keys.map((name) => [name, item[name]]));
    return [finding('FieldValueDuplicate', `${path}[${index}]`, shown, '')];
  });
}

function checkObject(
  value: Record<string, unknown>,
  schema: JsonSchema,
  path: string,
  old: unknown,
  depth: number,
): FieldError[] {
  const errors: FieldError[] = [];
  const { properties = {}, additionalProperties, minProperties, maxProperties } = schema;
  const size = Object.keys(value).length;
  if (minProperties !== undefined && size < minProperties) {
    errors.push(invalid(path, size, `should have at least ${minProperties} properties`));
  }
  if (maxProperties !== undefined && size > maxProperties) {
    errors.push(finding('FieldValueTooMany', path, size, `must have at most ${maxProperties} items`));
  }
  for (const [key, member] of Object.entries(value)) {
    const before = isRecord(old) ? old[key] : undefined;
    const known = Object.hasOwn(properties, key) ? properties[key] : undefined;
    if (known) errors.push(...check(member, known, join(path, key), before, depth + 1));
    else if (additionalProperties === false) {
      errors.push(finding('FieldValueInvalid', path, key, `${path}.${key} in body is a forbidden property`));
    } else if (typeof additionalProperties === 'object') {
      errors.push(...check(member, additionalProperties, join(path, key), before, depth + 1));
    }
  }
  for (const name of schema.required ?? []) {
    if (!Object.hasOwn(value, name))
      errors.push(finding('FieldValueRequired', join(path, name), undefined, ''));
  }
  return errors;
}

function combinationFailed(what: string): FieldError {
  return finding('FieldValueInvalid', NOWHERE, '', what);
}

function checkCombinations(
  value: unknown,
  schema: JsonSchema,
  path: string,
  old: unknown,
  depth: number,
): FieldError[] {
  const { allOf, anyOf, oneOf, not } = schema;
  if (!allOf && !anyOf && !oneOf && !not) return [];
  const results = (schemas: readonly JsonSchema[]): FieldError[][] =>
    schemas.map((one) => check(value, one, path, old, depth + 1));
  const errors: FieldError[] = [];
  const name = JSON.stringify(path);
  if (anyOf?.length) {
    const each = results(anyOf);
    if (!each.some((one) => one.length === 0)) {
      errors.push(combinationFailed(`${name} must validate at least one schema (anyOf)`), ...(each[0] ?? []));
    }
  }
  if (oneOf?.length) {
    const each = results(oneOf);
    const valid = each.filter((one) => one.length === 0).length;
    const count = valid === 0 ? 'Found none valid' : `Found ${valid} valid alternatives`;
    if (valid !== 1) {
      errors.push(combinationFailed(`${name} must validate one and only one schema (oneOf). ${count}`));
      if (valid === 0) errors.push(...(each[0] ?? []));
    }
  }
  if (allOf?.length) {
    const each = results(allOf);
    errors.push(...each.flat());
    if (each.some((one) => one.length > 0)) {
      const none = each.every((one) => one.length > 0) ? '. None validated' : '';
      errors.push(combinationFailed(`${name} must validate all the schemas (allOf)${none}`));
    }
  }
  if (not && check(value, not, path, undefined, depth + 1).length === 0) {
    errors.push(combinationFailed(`${name} must not validate the schema (not)`));
  }
  return errors;
}

const patterns = new Map<string, RegExp | undefined>();
const MOST_PATTERNS = 1000;

/** Go's syntax and JavaScript's differ in corners; what only Go understands is refused when the definition is written. */
export function compilePattern(pattern: string): RegExp | undefined {
  if (patterns.has(pattern)) return patterns.get(pattern);
  if (patterns.size >= MOST_PATTERNS) patterns.clear();
  let compiled: RegExp | undefined;
  try {
    compiled = new RegExp(pattern.replace(/^\(\?i\)/, ''), pattern.startsWith('(?i)') ? 'i' : '');
  } catch {
    // Not a pattern: undefined says so.
    compiled = undefined;
  }
  patterns.set(pattern, compiled);
  return compiled;
}
