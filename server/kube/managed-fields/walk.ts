import { getMember, isJsonObject, setMember } from '../json-value.ts';
import type { FieldSchema, ListSchema, StructSchema, TypeSchema } from '../type-schema.ts';

/** How a value is owned: whole, as a map member by member, or as a list item by item. */
export type Shape =
  | { readonly kind: 'leaf' }
  | {
      readonly kind: 'map';
      readonly memberType: (key: string) => TypeSchema;
      readonly struct: StructSchema | undefined;
    }
  | { readonly kind: 'list'; readonly list: ListSchema };

const WHOLE: Shape = { kind: 'leaf' };
const DEDUCED: TypeSchema = { kind: 'any', deduced: true };
const DEDUCED_MAP: Shape = { kind: 'map', memberType: () => DEDUCED, struct: undefined };

const shapes = new WeakMap<TypeSchema, Shape>();

/** The shape of values of a type; a value may be looked at where the type leaves it open. */
export function shapeOf(type: TypeSchema, value: unknown): Shape {
  if (type.kind === 'scalar') return WHOLE;
  if (type.kind === 'any') return type.deduced && isJsonObject(value) ? DEDUCED_MAP : WHOLE;
  const known = shapes.get(type);
  if (known) return known;
  const shape = buildShape(type);
  shapes.set(type, shape);
  return shape;
}

function buildShape(type: TypeSchema): Shape {
  if (type.kind === 'list') return type.listType === 'atomic' ? WHOLE : { kind: 'list', list: type };
  if (type.kind === 'map') {
    return type.atomic ? WHOLE : { kind: 'map', memberType: () => type.values, struct: undefined };
  }
  if (type.kind !== 'struct' || type.atomic) return WHOLE;
  return { kind: 'map', memberType: (key) => type.fields.get(key)?.type ?? DEDUCED, struct: type };
}

/**
 * A member of a built-in struct as the Go value has it, whatever the JSON says: empty ones that `omitempty` leaves out are
 * absent, and ones that are always written are there. Members of anything else are what they are.
 */
export function goValue(field: FieldSchema | undefined, value: unknown): unknown {
  if (!field) return value;
  if (field.pointer) return value ?? (field.omitEmpty ? undefined : null);
  switch (field.type.kind) {
    case 'struct':
      return value ?? EMPTY;
    case 'scalar':
      return goScalar(field, field.type.scalar, value);
    case 'any':
      return value ?? (field.omitEmpty ? undefined : null);
    default:
      if (value === undefined || value === null) return field.omitEmpty ? undefined : null;
      return field.omitEmpty && isEmptyContainer(value) ? undefined : value;
  }
}

const EMPTY = Object.freeze({});

function goScalar(field: FieldSchema, scalar: string, value: unknown): unknown {
  if (scalar === 'Time' || scalar === 'MicroTime') return value ?? null;
  if (scalar === 'Quantity') return value ?? '0';
  if (scalar === 'IntOrString') return value ?? 0;
  const zero = scalar === 'boolean' ? false : scalar === 'string' || scalar === 'bytes' ? '' : 0;
  if (field.omitEmpty) return value === zero || value === null ? undefined : value;
  return value ?? zero;
}

/** A value owned whole, as Go has it: members in it present by Go's rules, at every depth. */
export function goWhole(value: unknown, type: TypeSchema, depth = 0): unknown {
  if (depth > MAX_DEPTH || typeof value !== 'object' || value === null) return value;
  if (type.kind === 'list' && Array.isArray(value)) {
    return value.map((item) => goWhole(item, type.items, depth + 1));
  }
  if (!isJsonObject(value) || (type.kind !== 'struct' && type.kind !== 'map')) return value;
  const whole: Record<string, unknown> = {};
  if (type.kind === 'map' || type.typeName === undefined) {
    const typeOf = (key: string): TypeSchema =>
      type.kind === 'map' ? type.values : (type.fields.get(key)?.type ?? DEDUCED);
    for (const key of Object.keys(value)) setMember(whole, key, goWhole(value[key], typeOf(key), depth + 1));
    return whole;
  }
  for (const [name, field] of type.fields) {
    const member = goValue(field, getMember(value, name));
    if (member !== undefined) whole[name] = goWhole(member, field.type, depth + 1);
  }
  return whole;
}

const MAX_DEPTH = 200;

const alwaysWritten = new WeakMap<StructSchema, readonly string[]>();

/** The members of a built-in struct that its Go value always has. */
export function alwaysPresent(struct: StructSchema): readonly string[] {
  let names = alwaysWritten.get(struct);
  if (!names) {
    names = [...struct.fields.values()]
      .filter((field) => goValue(field, undefined) !== undefined && field.name !== 'creationTimestamp')
      .map(({ name }) => name);
    alwaysWritten.set(struct, names);
  }
  return names;
}

export function isEmptyContainer(value: unknown): boolean {
  if (value === undefined || value === null) return true;
  if (Array.isArray(value)) return value.length === 0;
  for (const key in value) if (Object.hasOwn(value, key)) return false;
  return true;
}

/** Whether members of the struct follow Go's rules of presence. */
export function isBuiltin(struct: StructSchema | undefined): struct is StructSchema {
  return struct?.typeName !== undefined;
}
