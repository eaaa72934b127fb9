import { badRequest, type StatusError } from './status-error.ts';

/** A protobuf message being read: a window on bytes. */
export interface WireReader {
  readonly bytes: Uint8Array;
  at: number;
  readonly end: number;
}

export const VARINT = 0;
const FIXED64 = 1;
export const BYTES = 2;
const FIXED32 = 5;
const MAX_FIELD_NUMBER = 0x1fffffff;

export function readerOf(bytes: Uint8Array): WireReader {
  return { bytes, at: 0, end: bytes.length };
}

export function malformed(reason: string): StatusError {
  return badRequest(reason);
}

/** An unsigned varint as the signed 64-bit number it stands for. Throws StatusError 400 when cut short or too long. */
export function readVarint(reader: WireReader): bigint | number {
  let low = 0;
  for (let shift = 0; shift < 28; shift += 7) {
    const byte = nextByte(reader);
    low |= (byte & 0x7f) << shift;
    if (byte < 0x80) return low;
  }
  let value = BigInt(low);
  for (let shift = 28n; shift < 70n; shift += 7n) {
    const byte = nextByte(reader);
    value |= BigInt(byte & 0x7f) << shift;
    if (byte < 0x80) return BigInt.asIntN(64, value);
  }
  throw malformed('proto: integer overflow');
}

function nextByte(reader: WireReader): number {
  if (reader.at >= reader.end) throw malformed('unexpected EOF');
  return reader.bytes[reader.at++] ?? 0;
}

/** The number and wire type of the next field. */
export function readTag(reader: WireReader): { field: number; wire: number } {
  const tag = Number(readVarint(reader));
  const field = Math.floor(tag / 8);
  const wire = tag % 8;
  if (field <= 0 || field > MAX_FIELD_NUMBER)
    throw malformed(`proto: illegal tag ${field} (wire type ${wire})`);
  return { field, wire };
}

/** A length-delimited field, as a window on the same bytes. */
export function readBytes(reader: WireReader): Uint8Array {
  const length = Number(readVarint(reader));
  if (length < 0) throw malformed('proto: negative length found during unmarshaling');
  if (length > reader.end - reader.at) throw malformed('unexpected EOF');
  const start = reader.at;
  reader.at += length;
  return reader.bytes.subarray(start, reader.at);
}

/** Passes over a field that nobody asked for. */
export function skipField(reader: WireReader, wire: number): void {
  if (wire === VARINT) readVarint(reader);
  else if (wire === BYTES) readBytes(reader);
  else if (wire === FIXED64) skipBytes(reader, 8);
  else if (wire === FIXED32) skipBytes(reader, 4);
  else throw malformed(`proto: illegal wireType ${wire}`);
}

function skipBytes(reader: WireReader, count: number): void {
  if (count > reader.end - reader.at) throw malformed('unexpected EOF');
  reader.at += count;
}

/** A small message as a map from field number to its last value. */
export function readFlat(bytes: Uint8Array): Map<number, bigint | number | Uint8Array> {
  const reader = readerOf(bytes);
  const fields = new Map<number, bigint | number | Uint8Array>();
  while (reader.at < reader.end) {
    const { field, wire } = readTag(reader);
    if (wire === VARINT) fields.set(field, readVarint(reader));
    else if (wire === BYTES) fields.set(field, readBytes(reader));
    else skipField(reader, wire);
  }
  return fields;
}
