import { OperationalError } from '#server/base';

/** The DNS record types this network speaks, by number (RFC 1035, 2782, 3596). */
export const RECORD_TYPES = { A: 1, NS: 2, CNAME: 5, SOA: 6, PTR: 12, TXT: 16, AAAA: 28, SRV: 33 } as const;
export const RESPONSE_CODES = {
  NOERROR: 0,
  FORMERR: 1,
  SERVFAIL: 2,
  NXDOMAIN: 3,
  NOTIMP: 4,
  REFUSED: 5,
} as const;
const CLASS_IN = 1;
const MAX_NAME_JUMPS = 32;
const MAX_RECORDS = 512;

export interface DnsQuestion {
  /** Lower case, no trailing dot. */
  readonly name: string;
  readonly type: number;
}

export interface DnsRecord {
  readonly name: string;
  readonly type: number;
  readonly ttl: number;
  /** A, AAAA: an address · CNAME, NS, PTR: a name · TXT: text · SRV: `priority weight port target` · SOA: `mname rname serial refresh retry expire minimum` */
  readonly data: string;
}

export interface DnsMessage {
  readonly id: number;
  readonly response: boolean;
  readonly authoritative: boolean;
  readonly recursionDesired: boolean;
  readonly recursionAvailable: boolean;
  readonly code: number;
  readonly questions: readonly DnsQuestion[];
  readonly answers: readonly DnsRecord[];
  readonly authorities: readonly DnsRecord[];
}

/** The bytes on the wire; names are not compressed. */
export function encodeDnsMessage(message: DnsMessage): Uint8Array {
  const head = Buffer.alloc(12);
  head.writeUInt16BE(message.id, 0);
  head.writeUInt16BE(
    (message.response ? 0x8000 : 0) |
      (message.authoritative ? 0x0400 : 0) |
      (message.recursionDesired ? 0x0100 : 0) |
      (message.recursionAvailable ? 0x0080 : 0) |
      message.code,
    2,
  );
  head.writeUInt16BE(message.questions.length, 4);
  head.writeUInt16BE(message.answers.length, 6);
  head.writeUInt16BE(message.authorities.length, 8);
  const parts: Buffer[] = [head];
  for (const question of message.questions) {
    const tail = Buffer.alloc(4);
    tail.writeUInt16BE(question.type, 0);
    tail.writeUInt16BE(CLASS_IN, 2);
    parts.push(encodeName(question.name), tail);
  }
  for (const record of [...message.answers, ...message.authorities]) {
    const data = encodeData(record);
    const middle = Buffer.alloc(10);
    middle.writeUInt16BE(record.type, 0);
    middle.writeUInt16BE(CLASS_IN, 2);
    middle.writeUInt32BE(record.ttl, 4);
    middle.writeUInt16BE(data.length, 8);
    parts.push(encodeName(record.name), middle, data);
  }
  return Buffer.concat(parts);
}

/** Throws OperationalError on bytes that are no DNS message. */
export function decodeDnsMessage(bytes: Uint8Array): DnsMessage {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  try {
    return decode(buffer);
  } catch (error) {
    if (error instanceof RangeError) throw new OperationalError('malformed DNS message', { cause: error });
    throw error;
  }
}

function decode(buffer: Buffer): DnsMessage {
  const flags = buffer.readUInt16BE(2);
  let at = 12;
  const questions: DnsQuestion[] = [];
  const counts = [4, 6, 8].map((offset) => buffer.readUInt16BE(offset));
  if (counts.some((count) => count > MAX_RECORDS))
    throw new OperationalError('too many records in a DNS message');
  for (let i = 0; i < (counts[0] ?? 0); i += 1) {
    const name = decodeName(buffer, at);
    questions.push({ name: name.name, type: buffer.readUInt16BE(name.end) });
    at = name.end + 4;
  }
  const records = (count: number): DnsRecord[] => {
    const list: DnsRecord[] = [];
    for (let i = 0; i < count; i += 1) {
      const name = decodeName(buffer, at);
      const type = buffer.readUInt16BE(name.end);
      const ttl = buffer.readUInt32BE(name.end + 4);
      const length = buffer.readUInt16BE(name.end + 8);
      const dataAt = name.end + 10;
      list.push({ name: name.name, type, ttl, data: decodeData(buffer, type, dataAt, length) });
      at = dataAt + length;
    }
    return list;
  };
  return {
    id: buffer.readUInt16BE(0),
    response: (flags & 0x8000) !== 0,
    authoritative: (flags & 0x0400) !== 0,
    recursionDesired: (flags & 0x0100) !== 0,
    recursionAvailable: (flags & 0x0080) !== 0,
    code: flags & 0xf,
    questions,
    answers: records(counts[1] ?? 0),
    authorities: records(counts[2] ?? 0),
  };
}

function encodeName(name: string): Buffer {
  const parts: Buffer[] = [];
  for (const label of name.split('.')) {
    if (label === '') continue;
    const bytes = Buffer.from(label.slice(0, 63));
    parts.push(Buffer.from([bytes.length]), bytes);
  }
  parts.push(Buffer.from([0]));
  return Buffer.concat(parts);
}

function decodeName(buffer: Buffer, start: number): { name: string; end: number } {
  const labels: string[] = [];
  let at = start;
  let end: number | undefined;
  for (let jumps = 0; ; ) {
    const length = buffer.readUInt8(at);
    if ((length & 0xc0) === 0xc0) {
      end ??= at + 2;
      at = buffer.readUInt16BE(at) & 0x3fff;
      jumps += 1;
      if (jumps > MAX_NAME_JUMPS) throw new OperationalError('a loop in a DNS name');
    } else if (length === 0) {
      return { name: labels.join('.').toLowerCase(), end: end ?? at + 1 };
    } else {
      labels.push(buffer.toString('latin1', at + 1, at + 1 + length));
      at += 1 + length;
    }
  }
}

function encodeData(record: DnsRecord): Buffer {
  switch (record.type) {
    case RECORD_TYPES.A:
      return Buffer.from(record.data.split('.').map(Number));
    case RECORD_TYPES.AAAA: {
      const out = Buffer.alloc(16);
      for (const [index, group] of expandV6(record.data).entries()) out.writeUInt16BE(group, index * 2);
      return out;
    }
    case RECORD_TYPES.SRV: {
      const [priority, weight, port, target] = record.data.split(' ');
      const head = Buffer.alloc(6);
      for (const [index, value] of [priority, weight, port].entries())
        head.writeUInt16BE(Number(value), index * 2);
      return Buffer.concat([head, encodeName(target ?? '')]);
    }
    case RECORD_TYPES.SOA: {
      const [mname = '', rname = '', ...numbers] = record.data.split(' ');
      const tail = Buffer.alloc(20);
      for (const [index, value] of numbers.slice(0, 5).entries())
        tail.writeUInt32BE(Number(value), index * 4);
      return Buffer.concat([encodeName(mname), encodeName(rname), tail]);
    }
    case RECORD_TYPES.TXT: {
      const bytes = Buffer.from(record.data).subarray(0, 255);
      return Buffer.concat([Buffer.from([bytes.length]), bytes]);
    }
    default:
      return encodeName(record.data);
  }
}

function decodeData(buffer: Buffer, type: number, at: number, length: number): string {
  switch (type) {
    case RECORD_TYPES.A:
      return [...buffer.subarray(at, at + 4)].join('.');
    case RECORD_TYPES.AAAA:
      return Array.from({ length: 8 }, (_, index) => buffer.readUInt16BE(at + index * 2).toString(16)).join(
        ':',
      );
    case RECORD_TYPES.SRV:
      return `${buffer.readUInt16BE(at)} ${buffer.readUInt16BE(at + 2)} ${buffer.readUInt16BE(at + 4)} ${decodeName(buffer, at + 6).name}`;
    case RECORD_TYPES.SOA: {
      const mname = decodeName(buffer, at);
      const rname = decodeName(buffer, mname.end);
      const numbers = Array.from({ length: 5 }, (_, index) => buffer.readUInt32BE(rname.end + index * 4));
      return [mname.name, rname.name, ...numbers].join(' ');
    }
    case RECORD_TYPES.TXT:
      return buffer.toString('utf8', at + 1, at + Math.max(1, length));
    default:
      return decodeName(buffer, at).name;
  }
}

function expandV6(text: string): number[] {
  const [head = '', tail] = text.split('::');
  const left = head ? head.split(':') : [];
  const right = tail ? tail.split(':') : [];
  const middle = tail === undefined ? [] : new Array<string>(8 - left.length - right.length).fill('0');
  return [...left, ...middle, ...right].map((group) => Number.parseInt(group, 16));
}
