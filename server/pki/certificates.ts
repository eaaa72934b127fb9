import 'reflect-metadata';
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, webcrypto } from 'node:crypto';
import { Name, Pkcs10CertificateRequest, SubjectAlternativeNameExtension } from '@peculiar/x509';
import { nameOf, signCertificate, subjectOf } from './certificate-der.ts';

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const DAY = 24 * 3600 * 1000;
/** Certificates are valid from a little before now, for clients whose clock is behind (kubeadm does the same). */
const BACKDATE = 5 * 60 * 1000;

/** PEM of a PKCS#8 private key and its SubjectPublicKeyInfo. */
export interface KeyPair {
  privateKeyPem: string;
  publicKeyPem: string;
}

/** A certificate authority: its certificate and its key, PEM. */
export interface Authority {
  certPem: string;
  keyPem: string;
}

export interface IssueOptions {
  authority: Authority;
  commonName: string;
  organizations?: readonly string[];
  usages: readonly ('client' | 'server')[];
  dnsNames?: readonly string[];
  ips?: readonly string[];
  /** Wall-clock, milliseconds. */
  now: number;
  /** Days of validity; default 365, as kubeadm's. */
  days?: number;
  /** Certify this key instead of making one. */
  publicKeyPem?: string;
}

/** What a PKCS#10 request asks for. */
export interface CertificateRequest {
  commonName: string;
  organizations: string[];
  dnsNames: string[];
  ips: string[];
  publicKeyPem: string;
}

/** The bytes are no certificate request. */
export class RequestFormatError extends Error {
  override readonly name = 'RequestFormatError';
}

/** A fresh P-256 key pair. */
export function createKeyPair(): KeyPair {
  const { privateKey, publicKey } = generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  });
  return { privateKeyPem: privateKey, publicKeyPem: publicKey };
}

/** The SubjectPublicKeyInfo PEM of a private key PEM. */
export function publicKeyFromPrivate(privateKeyPem: string): string {
  return createPublicKey(privateKeyPem).export({ type: 'spki', format: 'pem' }).toString();
}

/** SHA-256 of the SubjectPublicKeyInfo of a certificate, hex: what kubeadm calls the CA's public key pin. */
export function certificateFingerprint(certPem: string): string {
  const der = createPublicKey(certPem).export({ type: 'spki', format: 'der' });
  return createHash('sha256').update(der).digest('hex');
}

function subject(commonName: string, organizations: readonly string[] = []): string {
  return new Name([
    { CN: [commonName] },
    ...organizations.map((organization) => ({ O: [organization] })),
  ]).toString();
}

function signingKey(keyPem: string): Promise<webcrypto.CryptoKey> {
  const der = createPrivateKey(keyPem).export({ type: 'pkcs8', format: 'der' });
  return webcrypto.subtle.importKey('pkcs8', der, ALGORITHM, false, ['sign']);
}

function verifyingKey(publicKeyPem: string): Promise<webcrypto.CryptoKey> {
  const der = createPublicKey(publicKeyPem).export({ type: 'spki', format: 'der' });
  return webcrypto.subtle.importKey('spki', der, ALGORITHM, true, ['verify']);
}

/** A positive random serial number. */
function serialNumber(): Uint8Array {
  const bytes = webcrypto.getRandomValues(new Uint8Array(16));
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return bytes;
}

/** A self-signed authority, valid ten years from `now` (wall-clock, milliseconds). */
export function createAuthority(options: {
  commonName: string;
  now: number;
  keys?: KeyPair;
}): Promise<Authority> {
  const keys = options.keys ?? createKeyPair();
  const name = nameOf(options.commonName);
  const contents = {
    serial: serialNumber(),
    issuer: name,
    subject: name,
    notBefore: options.now - BACKDATE,
    notAfter: options.now + 3650 * DAY,
    publicKeyPem: keys.publicKeyPem,
    authority: true,
    usages: [],
    dnsNames: [],
    ips: [],
  };
  return new Promise((resolve) =>
    resolve({ certPem: signCertificate(contents, keys.privateKeyPem), keyPem: keys.privateKeyPem }),
  );
}

/** Certifies a key. Returns the certificate and, when the key was made here, its private half (else an empty string). */
export function issueCertificate(options: IssueOptions): Promise<{ certPem: string; keyPem: string }> {
  return new Promise((resolve) => resolve(issue(options)));
}

function issue(options: IssueOptions): { certPem: string; keyPem: string } {
  const keys = options.publicKeyPem ? undefined : createKeyPair();
  const certPem = signCertificate(
    {
      serial: serialNumber(),
      issuer: subjectOf(options.authority.certPem),
      subject: nameOf(options.commonName, options.organizations),
      notBefore: options.now - BACKDATE,
      notAfter: options.now + (options.days ?? 365) * DAY,
      publicKeyPem: options.publicKeyPem ?? keys?.publicKeyPem ?? '',
      authority: false,
      usages: options.usages,
      dnsNames: options.dnsNames ?? [],
      ips: options.ips ?? [],
    },
    options.authority.keyPem,
  );
  return { certPem, keyPem: keys?.privateKeyPem ?? '' };
}

/** Reads a PKCS#10 request (PEM) and checks its own signature. Throws RequestFormatError. */
export async function parseRequest(requestPem: string): Promise<CertificateRequest> {
  let request: Pkcs10CertificateRequest;
  try {
    request = new Pkcs10CertificateRequest(requestPem);
  } catch (error) {
    throw new RequestFormatError(
      `not a PKCS#10 request: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
  if (!(await request.verify(webcrypto)))
    throw new RequestFormatError('the signature of the request does not match its key');
  const names =
    request.extensions.find((extension) => extension instanceof SubjectAlternativeNameExtension)?.names
      .items ?? [];
  return {
    commonName: request.subjectName.getField('CN')[0] ?? '',
    organizations: request.subjectName.getField('O'),
    dnsNames: names.filter((name) => name.type === 'dns').map((name) => name.value),
    ips: names.filter((name) => name.type === 'ip').map((name) => name.value),
    publicKeyPem: request.publicKey.toString('pem'),
  };
}

/** Makes a PKCS#10 request for a key pair (PEM): what a kubelet sends. */
export async function signRequest(options: {
  keys: KeyPair;
  commonName: string;
  organizations?: readonly string[];
}): Promise<string> {
  const { Pkcs10CertificateRequestGenerator } = await import('@peculiar/x509');
  const request = await Pkcs10CertificateRequestGenerator.create(
    {
      name: subject(options.commonName, options.organizations),
      keys: {
        privateKey: await signingKey(options.keys.privateKeyPem),
        publicKey: await verifyingKey(options.keys.publicKeyPem),
      },
      signingAlgorithm: ALGORITHM,
    },
    webcrypto,
  );
  return request.toString('pem');
}
