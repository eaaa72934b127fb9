import { createHash, createPrivateKey, type KeyObject, sign } from 'node:crypto';
import { InternalError } from '#server/base';
import {
  addressBytes,
  bitString,
  boolean,
  contentsOf,
  elementsOf,
  explicit,
  implicit,
  integer,
  objectIdentifier,
  octetString,
  sequence,
  setOf,
  time,
  utf8String,
} from './der.ts';

/** What a certificate says. */
export interface CertificateContents {
  serial: Uint8Array;
  /** DER of names. */
  issuer: Buffer;
  subject: Buffer;
  /** Wall-clock, milliseconds. */
  notBefore: number;
  notAfter: number;
  publicKeyPem: string;
  authority: boolean;
  usages: readonly ('client' | 'server')[];
  dnsNames: readonly string[];
  ips: readonly string[];
}

const ECDSA_WITH_SHA256 = sequence(objectIdentifier('1.2.840.10045.4.3.2'));
const VERSION_3 = explicit(0, integer(Buffer.of(2)));
const COMMON_NAME = objectIdentifier('2.5.4.3');
const ORGANIZATION = objectIdentifier('2.5.4.10');
const CRITICAL = boolean(true);
const EXTENSION = {
  subjectKeyIdentifier: objectIdentifier('2.5.29.14'),
  keyUsage: objectIdentifier('2.5.29.15'),
  subjectAltName: objectIdentifier('2.5.29.17'),
  basicConstraints: objectIdentifier('2.5.29.19'),
  extendedKeyUsage: objectIdentifier('2.5.29.37'),
};
const PURPOSE = {
  server: objectIdentifier('1.3.6.1.5.5.7.3.1'),
  client: objectIdentifier('1.3.6.1.5.5.7.3.2'),
};
/** Digital signature and key encipherment; of an authority also signing certificates. */
const KEY_USAGE = bitString(Buffer.of(0b1010_0000), 5);
const AUTHORITY_KEY_USAGE = bitString(Buffer.of(0b1010_0100), 2);

/** The name of a subject, DER. */
export function nameOf(commonName: string, organizations: readonly string[] = []): Buffer {
  const part = (type: Buffer, value: string): Buffer => setOf(sequence(type, utf8String(value)));
  return sequence(part(COMMON_NAME, commonName), ...organizations.map((one) => part(ORGANIZATION, one)));
}

/** The subject of a certificate, as its own bytes: what those it issues must name. Throws RangeError on nonsense. */
export function subjectOf(certPem: string): Buffer {
  const [body] = elementsOf(contentsOf(bytesOfPem(certPem)));
  const fields = elementsOf(contentsOf(body ?? Buffer.alloc(0)));
  // version, serialNumber, signature, issuer, validity, subject
  const subject = fields[5];
  if (!subject) throw new RangeError('a certificate has no subject');
  return subject;
}

/** Signs with a P-256 key (PEM). Returns the certificate, PEM. */
export function signCertificate(contents: CertificateContents, keyPem: string): string {
  const publicKey = bytesOfPem(contents.publicKeyPem);
  const body = sequence(
    VERSION_3,
    integer(contents.serial),
    ECDSA_WITH_SHA256,
    contents.issuer,
    sequence(time(contents.notBefore), time(contents.notAfter)),
    contents.subject,
    publicKey,
    explicit(3, sequence(...extensionsOf(contents, publicKey))),
  );
  const signature = sign('sha256', body, signingKey(keyPem));
  return pemOf(sequence(body, ECDSA_WITH_SHA256, bitString(signature)));
}

function extensionsOf(contents: CertificateContents, publicKey: Buffer): Buffer[] {
  if (contents.authority) {
    return [
      extension(EXTENSION.basicConstraints, sequence(boolean(true)), true),
      extension(EXTENSION.keyUsage, AUTHORITY_KEY_USAGE, true),
      extension(EXTENSION.subjectKeyIdentifier, octetString(keyIdentifier(publicKey)), false),
    ];
  }
  const names = [
    ...contents.dnsNames.map((name) => implicit(2, Buffer.from(name, 'latin1'))),
    ...contents.ips.map((ip) => implicit(7, addressBytes(ip) ?? Buffer.alloc(0))),
  ];
  return [
    extension(EXTENSION.keyUsage, KEY_USAGE, true),
    extension(EXTENSION.extendedKeyUsage, sequence(...contents.usages.map((usage) => PURPOSE[usage])), false),
    extension(EXTENSION.basicConstraints, sequence(), true),
    ...(names.length > 0 ? [extension(EXTENSION.subjectAltName, sequence(...names), false)] : []),
  ];
}

function extension(type: Buffer, value: Buffer, critical: boolean): Buffer {
  return sequence(type, ...(critical ? [CRITICAL] : []), octetString(value));
}

/** SHA-1 of the key's bits without their frame (RFC 5280 §4.2.1.2). */
function keyIdentifier(publicKey: Buffer): Buffer {
  const bits = contentsOf(elementsOf(contentsOf(publicKey)).at(-1) ?? Buffer.alloc(0)).subarray(1);
  return createHash('sha1').update(bits).digest();
}

/** Keys of authorities: one signs many. Oldest dropped first. */
const SIGNING_KEYS_LIMIT = 256;
const signingKeys = new Map<string, KeyObject>();

function signingKey(keyPem: string): KeyObject {
  const known = signingKeys.get(keyPem);
  if (known) return known;
  const key = createPrivateKey(keyPem);
  if (key.asymmetricKeyDetails?.namedCurve !== 'prime256v1')
    throw new InternalError('an authority must have a P-256 key');
  signingKeys.set(keyPem, key);
  if (signingKeys.size > SIGNING_KEYS_LIMIT) {
    const [oldest] = signingKeys.keys();
    if (oldest !== undefined) signingKeys.delete(oldest);
  }
  return key;
}

function bytesOfPem(pem: string): Buffer {
  return Buffer.from(pem.replace(/-----[^-]+-----/g, ''), 'base64');
}

function pemOf(der: Buffer): string {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}
