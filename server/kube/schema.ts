import { ATOMIC_TYPES, type FieldFacts, findType, isRootType, typeFacts, typeNameOf } from './api-facts.ts';
import { parseApiVersion } from './object.ts';
import type { FieldSchema, ScalarSchema, StructSchema, TypeSchema } from './type-schema.ts';

const STRING: ScalarSchema = { kind: 'scalar', scalar: 'string' };
const ANY: TypeSchema = { kind: 'any' };
const MAX_INLINE_DEPTH = 8;

const SCALARS: Readonly<Record<string, ScalarSchema['scalar']>> = {
  string: 'string',
  boolean: 'boolean',
  byte: 'byte',
  bytes: 'bytes',
  int32: 'int32',
  int64: 'int64',
  number: 'number',
  Time: 'Time',
  MicroTime: 'MicroTime',
  Duration: 'Duration',
  Quantity: 'Quantity',
  IntOrString: 'IntOrString',
};

const structs = new Map<string, StructSchema>();

/**
 * The schema of a built-in type, `core/v1#Pod` (`rbac/v1#Role`: groups by their first label). Always the same object for
 * the same name. Throws UnknownTypeError when there is no such type.
 */
export function builtinSchema(typeName: string): StructSchema {
  typeFacts(typeName);
  return structOf(typeName, ATOMIC_TYPES.has(typeName));
}

/** The schema of a built-in kind by its apiVersion, or undefined when it is not built in. */
export function builtinSchemaFor(apiVersion: string, kind: string): StructSchema | undefined {
  const { group, version } = parseApiVersion(apiVersion);
  const typeName = typeNameOf(group, version, kind);
  return findType(typeName) ? builtinSchema(typeName) : undefined;
}

function structOf(typeName: string, atomic: boolean): StructSchema {
  const key = atomic ? `${typeName} atomic` : typeName;
  const known = structs.get(key);
  if (known) return known;
  let fields: ReadonlyMap<string, FieldSchema> | undefined;
  const schema: StructSchema = {
    kind: 'struct',
    get fields() {
      fields ??= buildFields(typeName);
      return fields;
    },
    atomic,
    preserveUnknown: false,
    typeName,
  };
  structs.set(key, schema);
  return schema;
}

function buildFields(typeName: string): Map<string, FieldSchema> {
  const fields = new Map<string, FieldSchema>();
  if (isRootType(typeName))
    for (const name of ['apiVersion', 'kind']) fields.set(name, plainField(name, STRING));
  collectFields(typeName, fields, 0);
  return fields;
}

function plainField(name: string, type: TypeSchema): FieldSchema {
  return { name, type, required: false, omitEmpty: true, pointer: false };
}

function collectFields(typeName: string, fields: Map<string, FieldSchema>, depth: number): void {
  if (depth > MAX_INLINE_DEPTH) return;
  for (const [name, facts] of Object.entries(typeFacts(typeName))) {
    if (facts.i) collectFields(facts.t, fields, depth + 1);
    else fields.set(name, fieldOf(name, facts));
  }
}

function fieldOf(name: string, facts: FieldFacts): FieldSchema {
  return {
    name,
    type: typeOf(facts.t, facts),
    required: facts.r === 1,
    omitEmpty: facts.o === 1,
    pointer: facts.p === 1,
    ...(facts.d === undefined ? {} : { default: facts.d }),
    ...(facts.ps === undefined ? {} : { patchStrategy: facts.ps }),
    ...(facts.pk === undefined ? {} : { patchMergeKey: facts.pk }),
  };
}

/** A type notation as schema; `facts` are the markers of the field that holds it. */
function typeOf(notation: string, facts: FieldFacts | undefined): TypeSchema {
  if (notation.startsWith('[]')) {
    const marker = facts?.l;
    const listType = marker === 'set' || marker === 'map' ? marker : 'atomic';
    return { kind: 'list', items: typeOf(notation.slice(2), undefined), listType, mapKeys: facts?.k ?? [] };
  }
  if (notation.startsWith('{}')) {
    return { kind: 'map', values: typeOf(notation.slice(2), undefined), atomic: facts?.m === 'atomic' };
  }
  if (notation.includes('#')) {
    const atomic = facts?.s ? facts.s === 'atomic' : ATOMIC_TYPES.has(notation);
    return structOf(notation, atomic);
  }
  const scalar = Object.hasOwn(SCALARS, notation) ? SCALARS[notation] : undefined;
  if (!scalar) return ANY;
  return facts?.e ? { kind: 'scalar', scalar, enumValues: facts.e } : { kind: 'scalar', scalar };
}
