import { randomBytes, randomUUID } from 'node:crypto';

/** Identity and chance. Tests pass a seeded one. */
export interface Ids {
  /** A random UUID (version 4). */
  uid(): string;
  /** `length` characters of the alphabet Kubernetes uses for generated names. */
  suffix(length: number): string;
  /** A number in [0, 1). */
  random(): number;
  /** `length` random bytes, fit for secrets when the ids are random ones. */
  bytes(length: number): Uint8Array;
}

/** Models k8s.io/apimachinery/pkg/util/rand: no vowels and no look-alikes, so no word is ever formed. */
const ALPHABET = 'bcdfghjklmnpqrstvwxz2456789';

function fromBytes(bytes: (length: number) => Uint8Array, uid: () => string): Ids {
  return {
    uid,
    bytes,
    suffix: (length) => Array.from(bytes(length), (byte) => ALPHABET[byte % ALPHABET.length]).join(''),
    random: () => {
      const b = bytes(4);
      return (((b[0] ?? 0) << 24) | ((b[1] ?? 0) << 16) | ((b[2] ?? 0) << 8) | (b[3] ?? 0)) / 2 ** 32 + 0.5;
    },
  };
}

export function createRandomIds(): Ids {
  return fromBytes((length) => randomBytes(length), randomUUID);
}

/** Reproducible ids for tests (mulberry32). */
export function createSeededIds(seed = 1): Ids {
  let state = seed >>> 0;
  const byte = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) & 255;
  };
  const bytes = (length: number): Uint8Array => Uint8Array.from({ length }, byte);
  const uid = (): string => {
    const hex = Array.from(bytes(16), (b) => b.toString(16).padStart(2, '0')).join('');
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`;
  };
  return fromBytes(bytes, uid);
}
