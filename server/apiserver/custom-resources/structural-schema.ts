import type { FieldError } from '#server/kube';
import { forbiddenField, invalidValue, notSupported, required } from '../kinds/field-errors.ts';
import type { JsonSchema } from './json-schema.ts';
import { compilePattern, validateBySchema } from './validate-schema.ts';

type Level = 'root' | 'item' | 'field';

/** Schemas nested deeper are refused: they would only serve to exhaust the server. */
const DEEPEST = 100;
const TYPES = ['array', 'boolean', 'integer', 'number', 'object', 'string'];
const LIST_TYPES = ['atomic', 'map', 'set'];
const MAP_TYPES = ['atomic', 'granular'];
const NO_TYPE: Record<Level, string> = {
  root: 'must not be empty at the root',
  item: 'must not be empty for specified array items',
  field: 'must not be empty for specified object fields',
};

/**
 * What keeps a schema from being structural, at `path`. Models apiextensions-apiserver/pkg/apiserver/schema
 * (ValidateStructural) and the parts of ValidateCustomResourceDefinitionOpenAPISchema about types, lists and defaults.
 */
export function structuralErrors(schema: JsonSchema, path: string): FieldError[] {
  return check(schema, 'root', path, 0);
}

function check(schema: JsonSchema, level: Level, path: string, depth: number): FieldError[] {
  if (depth > DEEPEST) return [invalidValue(path, '', `must not be nested deeper than ${DEEPEST} levels`)];
  const errors = [
    ...typeErrors(schema, level, path),
    ...extensionErrors(schema, path),
    ...listErrors(schema, path),
    ...valueErrors(schema, path),
  ];
  const { items, properties, additionalProperties } = schema;
  if (schema.type === 'array' && !items) errors.push(required(`${path}.items`, 'must be specified'));
  if (items) errors.push(...check(items, 'item', `${path}.items`, depth + 1));
  for (const [name, property] of Object.entries(properties ?? {})) {
    const at = `${path}.properties[${name}]`;
    if (name === 'metadata' && level === 'root') errors.push(...rootMetadataErrors(property, at));
    else errors.push(...check(property, 'field', at, depth + 1));
  }
  if (additionalProperties !== undefined) {
    const at = `${path}.additionalProperties`;
    if (level === 'root') errors.push(forbiddenField(at, 'must not be used at the root'));
    if (properties && additionalProperties !== false)
      errors.push(forbiddenField(at, 'additionalProperties and properties are mutual exclusive'));
    if (typeof additionalProperties === 'object')
      errors.push(...check(additionalProperties, 'field', at, depth + 1));
  }
  for (const [name, nested] of combinations(schema))
    errors.push(...nestedErrors(nested, `${path}.${name}`, depth + 1));
  return errors;
}

function typeErrors(schema: JsonSchema, level: Level, path: string): FieldError[] {
  const at = `${path}.type`;
  const { type } = schema;
  if (schema['x-kubernetes-embedded-resource'] && type !== 'object') {
    const detail = 'must be object if x-kubernetes-embedded-resource is true';
    return [type ? invalidValue(at, type, detail) : required(at, detail)];
  }
  if (!type) {
    const free = schema['x-kubernetes-int-or-string'] || schema['x-kubernetes-preserve-unknown-fields'];
    return free ? [] : [required(at, NO_TYPE[level])];
  }
  if (!TYPES.includes(type)) return [notSupported(at, type, TYPES)];
  return level === 'root' && type !== 'object' ? [invalidValue(at, type, 'must be object at the root')] : [];
}

function extensionErrors(schema: JsonSchema, path: string): FieldError[] {
  if (!schema['x-kubernetes-int-or-string']) return [];
  return (['x-kubernetes-preserve-unknown-fields', 'x-kubernetes-embedded-resource'] as const).flatMap(
    (name) =>
      schema[name]
        ? [invalidValue(`${path}.${name}`, true, 'must be false if x-kubernetes-int-or-string is true')]
        : [],
  );
}

function listErrors(schema: JsonSchema, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const listType = schema['x-kubernetes-list-type'];
  const keys = schema['x-kubernetes-list-map-keys'] ?? [];
  const mapType = schema['x-kubernetes-map-type'];
  if (listType !== undefined && !LIST_TYPES.includes(listType))
    errors.push(notSupported(`${path}.x-kubernetes-list-type`, listType, LIST_TYPES));
  if (listType !== undefined && schema.type !== 'array') {
    errors.push(
      invalidValue(`${path}.type`, schema.type ?? '', 'must be array if x-kubernetes-list-type is specified'),
    );
  }
  if (mapType !== undefined && !MAP_TYPES.includes(mapType))
    errors.push(notSupported(`${path}.x-kubernetes-map-type`, mapType, MAP_TYPES));
  if (listType === 'map' && keys.length === 0) {
    errors.push(
      required(`${path}.x-kubernetes-list-map-keys`, 'must not be empty if x-kubernetes-list-type is map'),
    );
  }
  if (keys.length > 0 && listType !== 'map') {
    errors.push(
      invalidValue(
        `${path}.x-kubernetes-list-type`,
        listType ?? '',
        'must be map if x-kubernetes-list-map-keys is non-empty',
      ),
    );
  }
  if (listType !== 'map') return errors;
  keys.forEach((key, index) => {
    const property = schema.items?.properties?.[key];
    if (!property) {
      errors.push(
        invalidValue(
          `${path}.x-kubernetes-list-map-keys[${index}]`,
          key,
          'entries must all be names of item properties',
        ),
      );
    } else if (!schema.items?.required?.includes(key) && property.default === undefined) {
      errors.push(
        required(
          `${path}.items.properties[${key}].default`,
          'this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property',
        ),
      );
    }
  });
  return errors;
}

function valueErrors(schema: JsonSchema, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (schema.pattern && !compilePattern(schema.pattern)) {
    errors.push(invalidValue(`${path}.pattern`, schema.pattern, 'must be a valid regular expression'));
  }
  if (schema.uniqueItems)
    errors.push(
      forbiddenField(
        `${path}.uniqueItems`,
        'uniqueItems cannot be set to true since the runtime complexity becomes quadratic',
      ),
    );
  if (schema.additionalProperties === false)
    errors.push(
      forbiddenField(`${path}.additionalProperties`, 'additionalProperties cannot be set to false'),
    );
  if (schema.default !== undefined) {
    for (const error of validateBySchema(schema.default, schema))
      errors.push(
        invalidValue(`${path}.default`, schema.default, error.detail || 'is not valid by its own schema'),
      );
  }
  return errors;
}

/** Names of objects may be restricted; everything else about metadata is fixed. */
function rootMetadataErrors(schema: JsonSchema, path: string): FieldError[] {
  const errors =
    schema.type === 'object' ? [] : [invalidValue(`${path}.type`, schema.type ?? '', 'must be object')];
  const names = Object.keys(schema.properties ?? {});
  const others = Object.keys(schema).filter(
    (key) => !['type', 'properties', 'default', 'description'].includes(key),
  );
  if (
    names.some((name) => name !== 'name' && name !== 'generateName') ||
    others.length > 0 ||
    schema.description
  ) {
    errors.push(
      forbiddenField(
        path,
        'must not specify anything other than name and generateName, but metadata is implicitly specified',
      ),
    );
  }
  return errors;
}

function combinations(schema: JsonSchema): [string, JsonSchema][] {
  const of = (name: 'allOf' | 'anyOf' | 'oneOf'): [string, JsonSchema][] =>
    (schema[name] ?? []).map((nested, index) => [`${name}[${index}]`, nested]);
  const all: [string, JsonSchema][] = [...of('allOf'), ...of('anyOf'), ...of('oneOf')];
  if (schema.not) all.push(['not', schema.not]);
  return schema['x-kubernetes-int-or-string']
    ? all.filter(([, nested]) => !isIntOrStringPattern(nested))
    : all;
}

/** `anyOf: [{type: integer}, {type: string}]`, alone or as the first of allOf, is how x-kubernetes-int-or-string is spelt out. */
function isIntOrStringPattern(schema: JsonSchema): boolean {
  const plain = (one: JsonSchema): boolean =>
    Object.keys(one).length === 1 && (one.type === 'integer' || one.type === 'string');
  return plain(schema) || (schema.anyOf?.length === 2 && schema.anyOf.every(plain));
}

const FORBIDDEN_INSIDE: [keyof JsonSchema, string][] = [
  ['type', 'must be empty to be structural'],
  ['default', 'must be undefined to be structural'],
  ['title', 'must be empty to be structural'],
  ['description', 'must be empty to be structural'],
  ['nullable', 'must be false to be structural'],
  ['additionalProperties', 'must be undefined to be structural'],
  ['x-kubernetes-preserve-unknown-fields', 'must be false to be structural'],
  ['x-kubernetes-embedded-resource', 'must be false to be structural'],
  ['x-kubernetes-int-or-string', 'must be false to be structural'],
  ['x-kubernetes-list-map-keys', 'must be empty to be structural'],
  ['x-kubernetes-list-type', 'must be undefined to be structural'],
  ['x-kubernetes-map-type', 'must be undefined to be structural'],
];

/** Inside allOf, anyOf, oneOf and not, a schema may only say what values are good, not what the shape is. */
function nestedErrors(schema: JsonSchema, path: string, depth: number): FieldError[] {
  if (depth > DEEPEST) return [invalidValue(path, '', `must not be nested deeper than ${DEEPEST} levels`)];
  const errors = FORBIDDEN_INSIDE.flatMap(([name, detail]) =>
    schema[name] ? [forbiddenField(`${path}.${name}`, detail)] : [],
  );
  if (schema.pattern && !compilePattern(schema.pattern))
    errors.push(invalidValue(`${path}.pattern`, schema.pattern, 'must be a valid regular expression'));
  if (schema.items) errors.push(...nestedErrors(schema.items, `${path}.items`, depth + 1));
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const at = `${path}.properties[${name}]`;
    if (name === 'metadata') errors.push(forbiddenField(at, 'must not be specified in a nested context'));
    errors.push(...nestedErrors(property, at, depth + 1));
  }
  for (const [name, nested] of combinations(schema))
    errors.push(...nestedErrors(nested, `${path}.${name}`, depth + 1));
  return errors;
}
