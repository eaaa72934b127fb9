import { findType, isRootType, typeFacts, typeNameOf } from './api-facts.ts';
import { decodeUtf8, encodeBase64 } from './bytes.ts';
import { type JsonObject, setMember } from './json-value.ts';
import { parseApiVersion, type UnstructuredObject } from './object.ts';
import {
  BYTES,
  malformed,
  readBytes,
  readerOf,
  readFlat,
  readTag,
  readVarint,
  skipField,
  VARINT,
  type WireReader,
} from './protobuf-wire.ts';
import { failure } from './status-error.ts';

const MAX_BYTES = 8 * 1024 * 1024;
const MAX_DEPTH = 100;
const PREFIX_LENGTH = 4;
const EMPTY = new Uint8Array(0);

/** Whether a body starts as Kubernetes' protobuf bodies do: `k8s` and a zero byte. */
export function isProtobuf(bytes: Uint8Array): boolean {
  return bytes[0] === 0x6b && bytes[1] === 0x38 && bytes[2] === 0x73 && bytes[3] === 0;
}

/**
 * A protobuf body (`k8s\0`, then runtime.Unknown) as the JSON object it stands for: bytes in base64, zero values left out
 * where JSON would leave them out, empty times left out. Option types of meta/v1 are found under any apiVersion. `expected`
 * fills in an apiVersion and kind that the body does not give. Throws StatusError 400 when the body is malformed or of a
 * kind that is not built in, 413 above 8 MiB.
 * Models k8s.io/apimachinery/pkg/runtime/serializer/protobuf and the generated Unmarshal functions.
 */
export function decodeProtobuf(
  bytes: Uint8Array,
  expected?: { apiVersion: string; kind: string },
): UnstructuredObject {
  if (bytes.length > MAX_BYTES) {
    throw failure(413, 'RequestEntityTooLarge', `Request entity is too large: limit is ${MAX_BYTES}`);
  }
  if (bytes.length === 0) throw malformed('empty data');
  if (!isProtobuf(bytes)) {
    throw malformed('provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]');
  }
  if (bytes.length === PREFIX_LENGTH) throw malformed('empty body');
  const envelope = readFlat(bytes.subarray(PREFIX_LENGTH));
  const typeMeta = readFlat(bytesOf(envelope.get(1)));
  const apiVersion = decodeUtf8(bytesOf(typeMeta.get(1))) || expected?.apiVersion || '';
  const kind = decodeUtf8(bytesOf(typeMeta.get(2))) || expected?.kind || '';
  const shown = `runtime.TypeMeta{APIVersion:${JSON.stringify(apiVersion)}, Kind:${JSON.stringify(kind)}}`;
  if (!kind) throw malformed(`Object 'Kind' is missing in '${shown}'`);
  if (!apiVersion) throw malformed(`Object 'apiVersion' is missing in '${shown}'`);
  const message = decodeMessage(typeOf(apiVersion, kind), readerOf(bytesOf(envelope.get(2))), 0);
  return { apiVersion, kind, metadata: {}, ...message } as UnstructuredObject;
}

function typeOf(apiVersion: string, kind: string): string {
  const { group, version } = parseApiVersion(apiVersion);
  const typeName = [typeNameOf(group, version, kind), `meta/v1#${kind}`].find(
    (name) => findType(name) !== undefined && isRootType(name),
  );
  if (typeName) return typeName;
  throw malformed(
    `no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(apiVersion)} in scheme "k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30"`,
  );
}

function bytesOf(value: bigint | number | Uint8Array | undefined): Uint8Array {
  return value instanceof Uint8Array ? value : EMPTY;
}

/** How one field of a message is read and where it goes. */
interface WireField {
  readonly name: string;
  readonly type: string;
  readonly shape: 'one' | 'list' | 'map' | 'inline';
  /** Zero values are not written in JSON. */
  readonly dropsZero: boolean;
}

const messages = new Map<string, ReadonlyMap<number, WireField>>();

function fieldsOf(typeName: string): ReadonlyMap<number, WireField> {
  const known = messages.get(typeName);
  if (known) return known;
  const fields = new Map<number, WireField>();
  for (const [name, facts] of Object.entries(typeFacts(typeName))) {
    if (facts.n === undefined) continue;
    const shape = facts.i
      ? 'inline'
      : facts.t.startsWith('[]')
        ? 'list'
        : facts.t.startsWith('{}')
          ? 'map'
          : 'one';
    const type = shape === 'list' || shape === 'map' ? facts.t.slice(2) : facts.t;
    fields.set(facts.n, { name, type, shape, dropsZero: facts.o === 1 && facts.p !== 1 });
  }
  messages.set(typeName, fields);
  return fields;
}

function decodeMessage(typeName: string, reader: WireReader, depth: number): JsonObject {
  if (depth > MAX_DEPTH) throw malformed('proto: message is nested too deeply');
  const fields = fieldsOf(typeName);
  const message: JsonObject = {};
  while (reader.at < reader.end) {
    const { field: number, wire } = readTag(reader);
    const field = fields.get(number);
    if (!field) skipField(reader, wire);
    else decodeField(message, field, wire, reader, depth);
  }
  return message;
}

function decodeField(
  message: JsonObject,
  field: WireField,
  wire: number,
  reader: WireReader,
  depth: number,
): void {
  switch (field.shape) {
    case 'inline':
      Object.assign(
        message,
        decodeMessage(field.type, readerOf(expectBytes(field, wire, reader)), depth + 1),
      );
      return;
    case 'map': {
      const entry = expectBytes(field, wire, reader);
      const map = (message[field.name] ??= {}) as JsonObject;
      decodeEntry(map, field, entry, depth);
      return;
    }
    case 'list': {
      const list = (message[field.name] ??= []) as unknown[];
      if (wire === BYTES && isVarint(field.type)) {
        const packed = readerOf(readBytes(reader));
        while (packed.at < packed.end) list.push(scalarOf(field.type, readVarint(packed)));
      } else list.push(decodeValue(field, wire, reader, depth) ?? null);
      return;
    }
    case 'one': {
      const value = decodeValue(field, wire, reader, depth);
      const zero = value === '' || value === 0 || value === false;
      if (value === undefined || (zero && field.dropsZero)) delete message[field.name];
      else message[field.name] = value;
    }
  }
}

function decodeEntry(map: JsonObject, field: WireField, entry: Uint8Array, depth: number): void {
  const reader = readerOf(entry);
  let key = '';
  let value: unknown = isVarint(field.type) ? 0 : decodeBytes(field.type, EMPTY, depth);
  while (reader.at < reader.end) {
    const { field: number, wire } = readTag(reader);
    if (number === 1 && wire === BYTES) key = decodeUtf8(readBytes(reader));
    else if (number === 2) value = decodeValue(field, wire, reader, depth);
    else skipField(reader, wire);
  }
  setMember(map, key, value ?? null);
}

/** One value; undefined for an empty time. */
function decodeValue(field: WireField, wire: number, reader: WireReader, depth: number): unknown {
  if (isVarint(field.type)) {
    if (wire !== VARINT) throw wrongWire(field, wire);
    return scalarOf(field.type, readVarint(reader));
  }
  return decodeBytes(field.type, expectBytes(field, wire, reader), depth);
}

function expectBytes(field: WireField, wire: number, reader: WireReader): Uint8Array {
  if (wire !== BYTES) throw wrongWire(field, wire);
  return readBytes(reader);
}

function wrongWire(field: WireField, wire: number): Error {
  return malformed(
    `proto: wrong wireType = ${wire} for field ${field.name.charAt(0).toUpperCase()}${field.name.slice(1)}`,
  );
}

function isVarint(type: string): boolean {
  return type === 'int32' || type === 'int64' || type === 'boolean' || type === 'byte';
}

function scalarOf(type: string, value: bigint | number): number | boolean {
  if (type === 'boolean') return Number(value) !== 0;
  return type === 'int32' ? Number(BigInt.asIntN(32, BigInt(value))) : Number(value);
}

function decodeBytes(type: string, bytes: Uint8Array, depth: number): unknown {
  switch (type) {
    case 'string':
      return decodeUtf8(bytes);
    case 'bytes':
      return encodeBase64(bytes);
    case 'Time':
      return decodeTime(bytes, 0);
    case 'MicroTime':
      return decodeTime(bytes, 6);
    case 'Quantity':
      return decodeUtf8(bytesOf(readFlat(bytes).get(1)));
    case 'IntOrString':
      return decodeIntOrString(bytes);
    case 'RawExtension':
    case 'FieldsV1':
      return decodeRawJson(bytesOf(readFlat(bytes).get(1)));
    default:
      if (type.startsWith('[]')) return decodeItems(type.slice(2), bytes, depth);
      return decodeMessage(type, readerOf(bytes), depth + 1);
  }
}

/** A list that is the value of a map: a message of one repeated field. */
function decodeItems(type: string, bytes: Uint8Array, depth: number): unknown[] {
  const reader = readerOf(bytes);
  const items: unknown[] = [];
  while (reader.at < reader.end) {
    const { field, wire } = readTag(reader);
    if (field === 1 && wire === BYTES) items.push(decodeBytes(type, readBytes(reader), depth + 1));
    else skipField(reader, wire);
  }
  return items;
}

function decodeTime(bytes: Uint8Array, fraction: 0 | 6): string | undefined {
  if (bytes.length === 0) return undefined;
  const parts = readFlat(bytes);
  const seconds = Number(parts.get(1) ?? 0);
  const date = new Date(seconds * 1000);
  if (Number.isNaN(date.getTime()) || date.getUTCFullYear() < 0 || date.getUTCFullYear() > 9999) {
    throw malformed('proto: time is out of range');
  }
  const text = date.toISOString().slice(0, 19);
  if (fraction === 0) return `${text}Z`;
  const micros = Math.floor(Number(parts.get(2) ?? 0) / 1000);
  return `${text}.${String(micros).padStart(6, '0')}Z`;
}

function decodeIntOrString(bytes: Uint8Array): number | string {
  const parts = readFlat(bytes);
  if (Number(parts.get(1) ?? 0) === 1) return decodeUtf8(bytesOf(parts.get(3)));
  return Number(BigInt.asIntN(32, BigInt(Number(parts.get(2) ?? 0))));
}

function decodeRawJson(bytes: Uint8Array): unknown {
  if (bytes.length === 0) return null;
  try {
    return JSON.parse(decodeUtf8(bytes)) as unknown;
  } catch (error) {
    throw malformed(`invalid JSON in a raw field: ${error instanceof Error ? error.message : 'unreadable'}`);
  }
}
