import {
  badRequest,
  canonicalQuantity,
  type FieldSchema,
  isQuantity,
  parseApiVersion,
  type ScalarSchema,
  type StructSchema,
  type TypeSchema,
  type UnstructuredObject,
} from '#server/kube';

/** Deeper than any built-in type but the recursive JSON schemas; a body nested deeper is refused. */
const DEEPEST = 64;

const SECONDS = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/;
const MICROSECONDS = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;
const INT32_MAX = 2 ** 31 - 1;
const QUANTITY_TEXT =
  "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/** Constants that declared defaults name. */
const REFERENCED: Readonly<Record<string, string>> = {
  AzureDataDiskCachingReadWrite: 'ReadWrite',
  AzureSharedBlobDisk: 'Shared',
};

interface Position {
  root: UnstructuredObject;
  struct: string;
  path: string;
  depth: number;
}

/**
 * Changes `object` in place to what decoding it into upstream's Go struct and encoding it again gives (with the defaults
 * the types declare themselves, as `protocol: TCP`): members the type
 * does not know are gone, `null` is the zero value, `omitempty` members at their zero value are gone, and members Go
 * always writes are there (`resources: {}`, `status: {}`, `rules: null`, a zero int without omitempty …).
 * Quantities become canonical, times get their precision.
 * Throws 400 in the words of upstream's decoder when a value has the wrong type.
 * Models the JSON serializer of k8s.io/apimachinery over k8s.io/api's struct tags.
 */
export function shapeAsGo(object: UnstructuredObject, schema: StructSchema): void {
  shapeStruct(object, schema, { root: object, struct: '', path: '', depth: 0 });
}

function shapeStruct(value: Record<string, unknown>, schema: StructSchema, at: Position): void {
  if (at.depth > DEEPEST) throw badRequest('the object is nested too deeply');
  const struct = schema.typeName?.slice(schema.typeName.indexOf('#') + 1) ?? '';
  for (const key of Object.keys(value)) {
    const field = schema.fields.get(key);
    if (!field) {
      if (at.depth > 0 || (key !== 'apiVersion' && key !== 'kind')) delete value[key];
      continue;
    }
    const given = value[key];
    if (given === null || given === undefined) {
      delete value[key];
      continue;
    }
    const path = at.path ? `${at.path}.${key}` : key;
    const shaped = shape(given, field.type, { root: at.root, struct, path, depth: at.depth + 1 });
    if (isLeftOut(shaped, field)) delete value[key];
    else if (shaped !== given) value[key] = shaped;
  }
  for (const [name, zero] of alwaysWritten(schema)) if (!(name in value)) value[name] = zero();
}

/** A list or map without omitempty that holds nothing reads back as null: it was stored as absent. */
function isLeftOut(value: unknown, field: FieldSchema): boolean {
  if (field.pointer) return false;
  if (field.type.kind === 'list' || field.type.kind === 'map') return isEmpty(value);
  if (!field.omitEmpty || field.type.kind !== 'scalar') return false;
  return value === '' || value === 0 || value === false ? !isStructScalar(field.type) : false;
}

function isEmpty(value: unknown): boolean {
  return Array.isArray(value) ? value.length === 0 : Object.keys(value as object).length === 0;
}

/** Scalars of JSON that are structs in Go: omitempty never leaves them out. */
function isStructScalar(type: ScalarSchema): boolean {
  return (
    type.scalar === 'Time' ||
    type.scalar === 'MicroTime' ||
    type.scalar === 'Quantity' ||
    type.scalar === 'IntOrString' ||
    type.scalar === 'Duration'
  );
}

type Zero = () => unknown;

const zeros = new WeakMap<StructSchema, (readonly [string, Zero])[]>();

function alwaysWritten(schema: StructSchema): (readonly [string, Zero])[] {
  const known = zeros.get(schema);
  if (known) return known;
  const found: (readonly [string, Zero])[] = [];
  for (const field of schema.fields.values()) {
    const zero = declaredDefault(field) ?? zeroOf(field, schema);
    if (zero) found.push([field.name, zero]);
  }
  zeros.set(schema, found);
  return found;
}

/** A default the type itself declares (`+default`); an empty text shows only where Go has a pointer. */
function declaredDefault(field: FieldSchema): Zero | undefined {
  const value = field.default;
  if (value === undefined || (value === '' && !field.pointer)) return undefined;
  if (typeof value === 'string') {
    const reference = /^ref\((.*)\)$/.exec(value);
    return () => (reference ? REFERENCED[reference[1] ?? ''] : value);
  }
  return () => value;
}

function zeroOf(field: FieldSchema, owner: StructSchema): Zero | undefined {
  if (field.pointer || field.name === 'apiVersion' || field.name === 'kind') {
    return field.omitEmpty || field.pointer ? undefined : (): string => '';
  }
  const type = field.type;
  switch (type.kind) {
    case 'struct':
      return () => {
        const value: Record<string, unknown> = {};
        for (const [name, zero] of alwaysWritten(type)) value[name] = zero();
        return value;
      };
    case 'list':
    case 'map':
      return field.omitEmpty ? undefined : (): null => null;
    case 'any':
      return undefined;
    case 'scalar':
      // metadata.creationTimestamp is the one time with omitzero.
      if (owner.typeName === 'meta/v1#ObjectMeta' && field.name === 'creationTimestamp') return undefined;
      if (field.omitEmpty && !isStructScalar(type)) return undefined;
      return () => zeroScalar(type);
  }
}

function zeroScalar(type: ScalarSchema): unknown {
  switch (type.scalar) {
    case 'string':
      return '';
    case 'Quantity':
      return '0';
    case 'boolean':
      return false;
    case 'byte':
    case 'int32':
    case 'int64':
    case 'number':
    case 'IntOrString':
      return 0;
    case 'Duration':
      return '0s';
    case 'bytes':
    case 'Time':
    case 'MicroTime':
      return null;
  }
}

function shape(value: unknown, type: TypeSchema, at: Position): unknown {
  switch (type.kind) {
    case 'any':
      return value;
    case 'struct':
      if (typeof value !== 'object' || Array.isArray(value)) throw wrongType(value, goType(type), at);
      shapeStruct(value as Record<string, unknown>, type, at);
      return value;
    case 'list':
      if (!Array.isArray(value)) throw wrongType(value, goType(type), at);
      for (let i = 0; i < value.length; i++) {
        const item: unknown = value[i];
        const shaped = shapeItem(item, type.items, at);
        if (shaped !== item) value[i] = shaped;
      }
      return value;
    case 'map': {
      if (typeof value !== 'object' || value === null || Array.isArray(value))
        throw wrongType(value, goType(type), at);
      const map = value as Record<string, unknown>;
      for (const key of Object.keys(map)) {
        const shaped = shapeItem(map[key], type.values, at);
        if (shaped !== map[key]) map[key] = shaped;
      }
      return map;
    }
    case 'scalar':
      return shapeScalar(value, type, at);
  }
}

function shapeItem(item: unknown, type: TypeSchema, at: Position): unknown {
  return item === null || item === undefined ? zeroItem(type) : shape(item, type, at);
}

function zeroItem(type: TypeSchema): unknown {
  if (type.kind === 'scalar') return zeroScalar(type);
  if (type.kind !== 'struct') return null;
  const value: Record<string, unknown> = {};
  for (const [name, zero] of alwaysWritten(type)) value[name] = zero();
  return value;
}

function shapeScalar(value: unknown, type: ScalarSchema, at: Position): unknown {
  switch (type.scalar) {
    case 'string':
    case 'Duration':
      if (typeof value !== 'string') throw wrongType(value, goType(type), at);
      return value;
    case 'boolean':
      if (typeof value !== 'boolean') throw wrongType(value, 'bool', at);
      return value;
    case 'byte':
    case 'int32':
    case 'int64':
      return shapeInteger(value, type, at);
    case 'number':
      if (typeof value !== 'number') throw wrongType(value, 'float64', at);
      return value;
    case 'IntOrString':
      if (typeof value !== 'string' && typeof value !== 'number') throw wrongType(value, 'string', at);
      return value;
    case 'Quantity':
      return shapeQuantity(value, at);
    case 'bytes':
      return shapeBytes(value, at);
    case 'Time':
      return shapeTime(value, SECONDS, (iso) => `${iso.slice(0, 19)}Z`, at);
    case 'MicroTime':
      return shapeTime(value, MICROSECONDS, (iso) => `${iso.slice(0, 23)}000Z`, at);
  }
}

function shapeInteger(value: unknown, type: ScalarSchema, at: Position): number {
  if (typeof value !== 'number') throw wrongType(value, type.scalar, at);
  const fits = Number.isInteger(value) && (type.scalar !== 'int32' || Math.abs(value) <= INT32_MAX + 1);
  if (!fits)
    throw cannotDecode(
      `json: cannot unmarshal number ${value} into ${goField(at)} of type ${type.scalar}`,
      at,
    );
  return value;
}

function shapeQuantity(value: unknown, at: Position): string {
  const text = typeof value === 'number' ? String(value) : value;
  if (typeof text !== 'string') throw wrongType(value, 'string', at);
  if (!isQuantity(text)) throw cannotDecode(QUANTITY_TEXT, at);
  return canonicalQuantity(text);
}

function shapeBytes(value: unknown, at: Position): string {
  if (typeof value !== 'string') throw wrongType(value, '[]uint8', at);
  const text = value.replace(/[\r\n]/g, '');
  const bad = text.search(/[^A-Za-z0-9+/=]/);
  const padding = text.indexOf('=');
  if (bad >= 0) throw cannotDecode(`illegal base64 data at input byte ${bad}`, at);
  if (text.length % 4 !== 0) {
    throw cannotDecode(`illegal base64 data at input byte ${text.length - (text.length % 4)}`, at);
  }
  if (padding >= 0 && (padding < text.length - 2 || !text.endsWith('='))) {
    throw cannotDecode(`illegal base64 data at input byte ${padding}`, at);
  }
  return text;
}

function shapeTime(value: unknown, exact: RegExp, format: (iso: string) => string, at: Position): string {
  if (typeof value !== 'string') throw wrongType(value, 'string', at);
  if (exact.test(value)) return value;
  const time = /^\d{4}-\d\d-\d\d[Tt]/.test(value) ? Date.parse(value) : Number.NaN;
  if (Number.isNaN(time)) {
    throw cannotDecode(
      `parsing time ${JSON.stringify(value)} as "2006-01-02T15:04:05Z07:00": cannot parse ${JSON.stringify(value)} as "2006"`,
      at,
    );
  }
  return format(new Date(time).toISOString());
}

function wrongType(value: unknown, expected: string, at: Position): Error {
  const got = Array.isArray(value) ? 'array' : typeof value === 'boolean' ? 'bool' : typeof value;
  return cannotDecode(`json: cannot unmarshal ${got} into ${goField(at)} of type ${expected}`, at);
}

function goField(at: Position): string {
  return `Go struct field ${at.struct}.${at.path}`;
}

function cannotDecode(why: string, at: Position): Error {
  const { version } = parseApiVersion(at.root.apiVersion);
  const kind = at.root.kind;
  return badRequest(`${kind} in version ${JSON.stringify(version)} cannot be handled as a ${kind}: ${why}`);
}

function goType(type: TypeSchema): string {
  switch (type.kind) {
    case 'struct':
      return `v1.${type.typeName?.slice(type.typeName.indexOf('#') + 1) ?? ''}`;
    case 'list':
      return `[]${goType(type.items)}`;
    case 'map':
      return `map[string]${goType(type.values)}`;
    case 'scalar':
      return type.scalar === 'boolean' ? 'bool' : type.scalar === 'bytes' ? '[]uint8' : type.scalar;
    case 'any':
      return 'interface {}';
  }
}
