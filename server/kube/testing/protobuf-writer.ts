/** What a protobuf field may be written from: numbers as varints, text, bytes, nested fields, or several of these. */
export type Wire = number | bigint | boolean | string | Uint8Array | WireMessage | readonly Wire[];

/** A message by field number. */
export interface WireMessage {
  readonly [field: number]: Wire;
}

const VARINT = 0;
const BYTES = 2;

function varint(value: bigint): number[] {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, value);
  while (rest >= 0x80n) {
    bytes.push(Number(rest & 0x7fn) | 0x80);
    rest >>= 7n;
  }
  return [...bytes, Number(rest)];
}

function field(number: number, value: Wire): number[] {
  if (Array.isArray(value)) return value.flatMap((item: Wire) => field(number, item));
  const tag = (wire: number): number[] => varint(BigInt(number * 8 + wire));
  if (typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean') {
    return [...tag(VARINT), ...varint(BigInt(value))];
  }
  const bytes =
    typeof value === 'string'
      ? new TextEncoder().encode(value)
      : value instanceof Uint8Array
        ? value
        : message(value);
  return [...tag(BYTES), ...varint(BigInt(bytes.length)), ...bytes];
}

/** The bytes of a message. */
export function message(fields: WireMessage): Uint8Array {
  return Uint8Array.from(
    Object.entries(fields).flatMap(([number, value]) => field(Number(number), value as Wire)),
  );
}

/** A body as Kubernetes clients send it: the prefix, then runtime.Unknown around the object. */
export function body(apiVersion: string, kind: string, object: WireMessage | Uint8Array): Uint8Array {
  const envelope = message({ 1: { 1: apiVersion, 2: kind }, 2: object, 3: '', 4: '' });
  return Uint8Array.from([0x6b, 0x38, 0x73, 0, ...envelope]);
}
