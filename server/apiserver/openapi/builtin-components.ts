import {
  builtinSchema,
  type FieldSchema,
  type ScalarSchema,
  type StructSchema,
  type TypeSchema,
} from '#server/kube';
import { describeType, type TypeDescription } from './descriptions.ts';
import { refTo, type SchemaObject } from './schema-object.ts';

const APIMACHINERY = 'io.k8s.apimachinery.pkg';

/** Components that are no structs, by name. */
const SPECIAL: Readonly<Record<string, SchemaObject>> = {
  [`${APIMACHINERY}.apis.meta.v1.Time`]: {
    type: 'string',
    format: 'date-time',
    description: 'A time, with seconds.',
  },
  [`${APIMACHINERY}.apis.meta.v1.MicroTime`]: {
    type: 'string',
    format: 'date-time',
    description: 'A time, with microseconds.',
  },
  [`${APIMACHINERY}.apis.meta.v1.Duration`]: {
    type: 'string',
    description: 'A length of time, such as 1h30m.',
  },
  [`${APIMACHINERY}.apis.meta.v1.FieldsV1`]: {
    type: 'object',
    description: 'A set of fields, as a tree of their names.',
  },
  [`${APIMACHINERY}.runtime.RawExtension`]: { type: 'object', description: 'Any object.' },
  [`${APIMACHINERY}.api.resource.Quantity`]: {
    oneOf: [{ type: 'string' }, { type: 'number' }],
    description: 'A fixed-point number with an optional unit: 100m, 1.5, 64Mi, 2G, 1e3.',
  },
  [`${APIMACHINERY}.util.intstr.IntOrString`]: {
    oneOf: [{ type: 'integer' }, { type: 'string' }],
    format: 'int-or-string',
    description: 'A whole number, or a text such as a percentage or a name.',
  },
};

const SCALAR_COMPONENT: Partial<Record<ScalarSchema['scalar'], string>> = {
  Time: `${APIMACHINERY}.apis.meta.v1.Time`,
  MicroTime: `${APIMACHINERY}.apis.meta.v1.MicroTime`,
  Duration: `${APIMACHINERY}.apis.meta.v1.Duration`,
  Quantity: `${APIMACHINERY}.api.resource.Quantity`,
  IntOrString: `${APIMACHINERY}.util.intstr.IntOrString`,
};

const SCALAR_SCHEMA: Partial<Record<ScalarSchema['scalar'], SchemaObject>> = {
  string: { type: 'string' },
  boolean: { type: 'boolean' },
  byte: { type: 'integer', format: 'byte' },
  bytes: { type: 'string', format: 'byte' },
  int32: { type: 'integer', format: 'int32' },
  int64: { type: 'integer', format: 'int64' },
  number: { type: 'number', format: 'double' },
};

/** `core/v1#Pod` → `io.k8s.api.core.v1.Pod`. */
export function componentName(typeName: string): string {
  const [packageName = '', name = ''] = typeName.split('#');
  const path = packageName.replace('/', '.');
  return packageName.startsWith('meta/')
    ? `${APIMACHINERY}.apis.${path}.${name}`
    : `io.k8s.api.${path}.${name}`;
}

/** Adds the schema of a built-in type, and of all it refers to, to `components`. */
export function addBuiltinComponents(typeName: string, components: Record<string, SchemaObject>): void {
  const todo = [typeName];
  const known = new Map<string, TypeDescription>();
  const describe: Describe = (type) => {
    const found = known.get(type) ?? describeType(type);
    known.set(type, found);
    return found;
  };
  for (let next = todo.pop(); next !== undefined; next = todo.pop()) {
    const name = componentName(next);
    if (components[name]) continue;
    const refer: Refer = (referred) => {
      if (referred.typeName) todo.push(referred.typeName);
      return componentName(referred.typeName ?? '');
    };
    components[name] = structObject(builtinSchema(next), describe, refer, components);
  }
}

type Refer = (struct: StructSchema) => string;
type Describe = (typeName: string) => TypeDescription;

function structObject(
  struct: StructSchema,
  describe: Describe,
  refer: Refer,
  components: Record<string, SchemaObject>,
): SchemaObject {
  const properties: Record<string, SchemaObject> = {};
  const required: string[] = [];
  const description = describe(struct.typeName ?? '');
  for (const field of struct.fields.values()) {
    const text = description.fields.get(field.name) ?? ofItsType(field, describe);
    properties[field.name] = fieldObject(field, text, refer, components);
    if (field.required) required.push(field.name);
  }
  return {
    ...(description.text ? { description: description.text } : {}),
    type: 'object',
    properties,
    ...(required.length ? { required } : {}),
    ...(struct.atomic ? { 'x-kubernetes-map-type': 'atomic' } : {}),
  };
}

const GENERAL: Readonly<Record<string, string>> = {
  metadata: 'Standard object metadata: name, labels, annotations and so on.',
  spec: 'The desired state.',
  status: 'The observed state, written by the system.',
};

/** The declarations have no comment where a field is a struct: then its type speaks for it. */
function ofItsType({ name, type }: FieldSchema, describe: Describe): string | undefined {
  if (type.kind !== 'struct' || !type.typeName) return undefined;
  return GENERAL[name] ?? /^.*?\.(?=\s|$)/.exec(describe(type.typeName).text)?.[0];
}

function fieldObject(
  field: FieldSchema,
  description: string | undefined,
  refer: Refer,
  components: Record<string, SchemaObject>,
): SchemaObject {
  const schema = typeObject(field.type, field.name, refer, components);
  const described = description ? { description } : {};
  const fallback = field.default ?? zeroValue(field);
  const common: SchemaObject = {
    ...described,
    ...(fallback === undefined ? {} : { default: fallback }),
    ...(field.patchMergeKey ? { 'x-kubernetes-patch-merge-key': field.patchMergeKey } : {}),
    ...(field.patchStrategy ? { 'x-kubernetes-patch-strategy': field.patchStrategy } : {}),
  };
  return schema.$ref ? { ...common, allOf: [schema] } : { ...schema, ...common };
}

/** What upstream's generator writes for values that are always there. */
function zeroValue({ type, pointer, omitEmpty }: FieldSchema): unknown {
  if (pointer) return undefined;
  if (type.kind === 'struct') return {};
  if (type.kind !== 'scalar' || omitEmpty) return undefined;
  if (type.scalar === 'string') return '';
  if (type.scalar === 'boolean') return false;
  return type.scalar === 'int32' || type.scalar === 'int64' ? 0 : undefined;
}

function typeObject(
  type: TypeSchema,
  name: string,
  refer: Refer,
  components: Record<string, SchemaObject>,
): SchemaObject {
  switch (type.kind) {
    case 'scalar': {
      const component = SCALAR_COMPONENT[type.scalar];
      if (component) return special(component, components);
      return {
        ...SCALAR_SCHEMA[type.scalar],
        ...(type.enumValues ? { enum: [...type.enumValues].sort() } : {}),
      };
    }
    case 'any':
      return special(
        name === 'fieldsV1'
          ? `${APIMACHINERY}.apis.meta.v1.FieldsV1`
          : `${APIMACHINERY}.runtime.RawExtension`,
        components,
      );
    case 'map': {
      const values = itemObject(type.values, name, refer, components);
      return {
        type: 'object',
        additionalProperties: values,
        ...(type.atomic ? { 'x-kubernetes-map-type': 'atomic' } : {}),
      };
    }
    case 'list':
      return {
        type: 'array',
        items: itemObject(type.items, name, refer, components),
        'x-kubernetes-list-type': type.listType,
        ...(type.mapKeys.length ? { 'x-kubernetes-list-map-keys': type.mapKeys } : {}),
      };
    case 'struct':
      return refTo(refer(type));
  }
}

function itemObject(
  type: TypeSchema,
  name: string,
  refer: Refer,
  components: Record<string, SchemaObject>,
): SchemaObject {
  const schema = typeObject(type, name, refer, components);
  if (!schema.$ref)
    return type.kind === 'scalar' && type.scalar === 'string' ? { ...schema, default: '' } : schema;
  return type.kind === 'struct' ? { allOf: [schema], default: {} } : schema;
}

function special(component: string, components: Record<string, SchemaObject>): SchemaObject {
  const schema = SPECIAL[component];
  if (schema) components[component] ??= schema;
  return refTo(component);
}
