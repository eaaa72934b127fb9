import type { JsonSchema } from './resources.ts';
import { builtinSchema } from './schema.ts';
import type { FieldSchema, ScalarSchema, StructSchema, TypeSchema } from './type-schema.ts';

/** What x-kubernetes-preserve-unknown-fields admits: any value, its maps owned member by member. */
const DEDUCED: TypeSchema = { kind: 'any', deduced: true };
const STRING: ScalarSchema = { kind: 'scalar', scalar: 'string' };

const roots = new WeakMap<JsonSchema, TypeSchema>();

/**
 * The schema of a custom resource from the `openAPIV3Schema` of one of its versions: apiVersion, kind and metadata are
 * those of every object, whatever the JSON schema says of them. The same JSON schema object gives the same result; it
 * must not change afterwards. Models k8s.io/apiextensions-apiserver/pkg/apiserver/schema.
 */
export function customSchema(schema: JsonSchema): TypeSchema {
  const known = roots.get(schema);
  if (known) return known;
  const built = structOf({ type: 'object', ...schema }, true);
  roots.set(schema, built);
  return built;
}

function typeOf(schema: JsonSchema): TypeSchema {
  if (schema['x-kubernetes-int-or-string']) return { kind: 'scalar', scalar: 'IntOrString' };
  switch (schema.type) {
    case 'string':
      return stringOf(schema);
    case 'boolean':
      return { kind: 'scalar', scalar: 'boolean' };
    case 'integer':
      return { kind: 'scalar', scalar: schema.format === 'int32' ? 'int32' : 'int64' };
    case 'number':
      return { kind: 'scalar', scalar: 'number' };
    case 'array':
      return listOf(schema);
    default:
      return objectOf(schema);
  }
}

function stringOf(schema: JsonSchema): ScalarSchema {
  const values = schema.enum?.filter((value) => typeof value === 'string');
  return values?.length ? { kind: 'scalar', scalar: 'string', enumValues: values } : STRING;
}

function listOf(schema: JsonSchema): TypeSchema {
  const marker = schema['x-kubernetes-list-type'];
  return {
    kind: 'list',
    items: schema.items ? typeOf(schema.items) : DEDUCED,
    listType: marker === 'set' || marker === 'map' ? marker : 'atomic',
    mapKeys: schema['x-kubernetes-list-map-keys'] ?? [],
  };
}

function objectOf(schema: JsonSchema): TypeSchema {
  const embedded = schema['x-kubernetes-embedded-resource'] === true;
  if (schema.properties || embedded) return structOf(schema, embedded);
  const atomic = schema['x-kubernetes-map-type'] === 'atomic';
  if (schema['x-kubernetes-preserve-unknown-fields']) return atomic ? { kind: 'any' } : DEDUCED;
  const values = schema.additionalProperties;
  if (typeof values === 'object') return { kind: 'map', values: typeOf(values), atomic };
  if (values === true) return { kind: 'map', values: DEDUCED, atomic };
  return schema.type === 'object' ? structOf(schema, false) : DEDUCED;
}

function structOf(schema: JsonSchema, root: boolean): StructSchema {
  let fields: ReadonlyMap<string, FieldSchema> | undefined;
  return {
    kind: 'struct',
    get fields() {
      fields ??= fieldsOf(schema, root);
      return fields;
    },
    atomic: schema['x-kubernetes-map-type'] === 'atomic',
    preserveUnknown: schema['x-kubernetes-preserve-unknown-fields'] === true,
  };
}

function fieldsOf(schema: JsonSchema, root: boolean): Map<string, FieldSchema> {
  const fields = new Map<string, FieldSchema>();
  const add = (name: string, type: TypeSchema, defaultValue?: unknown): void => {
    const required = schema.required?.includes(name) ?? false;
    fields.set(name, {
      name,
      type,
      required,
      omitEmpty: !required,
      pointer: false,
      ...(defaultValue === undefined ? {} : { default: defaultValue }),
    });
  };
  if (root) {
    add('apiVersion', STRING);
    add('kind', STRING);
    add('metadata', builtinSchema('meta/v1#ObjectMeta'));
  }
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    if (!root || !fields.has(name)) add(name, typeOf(property), property.default);
  }
  return fields;
}
