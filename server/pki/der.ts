import { Buffer } from 'node:buffer';
import { isIP } from 'node:net';

// DER, as far as certificates need it. Values are whole elements: tag, length, contents.

const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  objectIdentifier: 0x06,
  utf8String: 0x0c,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const;

function element(tag: number, contents: Uint8Array): Buffer {
  const { length } = contents;
  if (length < 0x80) return Buffer.concat([Buffer.of(tag, length), contents]);
  const bytes: number[] = [];
  for (let rest = length; rest > 0; rest >>= 8) bytes.unshift(rest & 0xff);
  return Buffer.concat([Buffer.of(tag, 0x80 | bytes.length, ...bytes), contents]);
}

export function sequence(...members: readonly Uint8Array[]): Buffer {
  return element(TAG.sequence, Buffer.concat(members));
}

export function setOf(member: Uint8Array): Buffer {
  return element(TAG.set, member);
}

/** `[number]` around whole elements (EXPLICIT). */
export function explicit(number: number, ...members: readonly Uint8Array[]): Buffer {
  return element(0xa0 | number, Buffer.concat(members));
}

/** `[number]` in place of a string's own tag (IMPLICIT). */
export function implicit(number: number, contents: Uint8Array): Buffer {
  return element(0x80 | number, contents);
}

/** A positive number, big-endian. */
export function integer(bytes: Uint8Array): Buffer {
  return element(TAG.integer, ((bytes[0] ?? 0) & 0x80) === 0 ? bytes : Buffer.concat([Buffer.of(0), bytes]));
}

export function boolean(value: boolean): Buffer {
  return element(TAG.boolean, Buffer.of(value ? 0xff : 0));
}

/** `unused`: how many bits of the last byte do not count. */
export function bitString(bytes: Uint8Array, unused = 0): Buffer {
  return element(TAG.bitString, Buffer.concat([Buffer.of(unused), bytes]));
}

export function octetString(bytes: Uint8Array): Buffer {
  return element(TAG.octetString, bytes);
}

export function utf8String(text: string): Buffer {
  return element(TAG.utf8String, Buffer.from(text, 'utf8'));
}

/** `1.2.840.10045.4.3.2` */
export function objectIdentifier(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  const bytes: number[] = [];
  for (const arc of [first * 40 + second, ...rest]) {
    const digits = [arc & 0x7f];
    for (let left = arc >>> 7; left > 0; left >>>= 7) digits.unshift((left & 0x7f) | 0x80);
    bytes.push(...digits);
  }
  return element(TAG.objectIdentifier, Buffer.from(bytes));
}

/** Seconds precision; UTCTime until 2049 and GeneralizedTime after, as RFC 5280 wants it. `milliseconds`: wall-clock. */
export function time(milliseconds: number): Buffer {
  const digits = new Date(milliseconds).toISOString().replace(/\.\d+Z$|[-:T]/g, '');
  return Number(digits.slice(0, 4)) < 2050
    ? element(TAG.utcTime, Buffer.from(`${digits.slice(2)}Z`, 'latin1'))
    : element(TAG.generalizedTime, Buffer.from(`${digits}Z`, 'latin1'));
}

/** The 4 or 16 bytes of an address. Undefined when the text is none. */
export function addressBytes(text: string): Buffer | undefined {
  if (isIP(text) === 4) return Buffer.from(text.split('.').map(Number));
  if (isIP(text) !== 6) return undefined;
  const plain = new URL(`http://[${text}]`).hostname.slice(1, -1);
  const [head = '', tail] = plain.split('::');
  const words = (part: string | undefined): number[] =>
    part ? part.split(':').map((word) => Number.parseInt(word, 16)) : [];
  const [left, right] = [words(head), words(tail)];
  const all = [...left, ...new Array<number>(8 - left.length - right.length).fill(0), ...right];
  return Buffer.from(all.flatMap((word) => [word >> 8, word & 0xff]));
}

/** The elements that lie one after the other in `contents`, whole. Throws RangeError when they do not fit. */
export function elementsOf(contents: Buffer): Buffer[] {
  const found: Buffer[] = [];
  for (let offset = 0; offset < contents.length; ) {
    const end = offset + sizeOf(contents.subarray(offset)).total;
    if (end > contents.length) throw new RangeError('a DER element is cut short');
    found.push(contents.subarray(offset, end));
    offset = end;
  }
  return found;
}

/** What an element holds. */
export function contentsOf(whole: Buffer): Buffer {
  const { header, total } = sizeOf(whole);
  return whole.subarray(header, total);
}

function sizeOf(bytes: Buffer): { header: number; total: number } {
  const first = bytes.readUInt8(1);
  if (first < 0x80) return { header: 2, total: 2 + first };
  const count = first & 0x7f;
  const length = bytes.readUIntBE(2, count);
  return { header: 2 + count, total: 2 + count + length };
}
