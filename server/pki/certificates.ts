import 'reflect-metadata';
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, webcrypto } from 'node:crypto';
import {
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  Name,
  Pkcs10CertificateRequest,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';

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
  return new Name([{ CN: [commonName] }, ...organizations.map((organization) => ({ O: [organization] }))]).toString();
}

/** Imported authorities: an import costs as much as a signature, and one authority signs many. Oldest dropped first. */
const IMPORTED_KEYS_LIMIT = 256;
const importedKeys = new Map<string, Promise<webcrypto.CryptoKey>>();

function signingKey(keyPem: string): Promise<webcrypto.CryptoKey> {
  const known = importedKeys.get(keyPem);
  if (known) return known;
  const der = createPrivateKey(keyPem).export({ type: 'pkcs8', format: 'der' });
  const key = webcrypto.subtle.importKey('pkcs8', der, ALGORITHM, false, ['sign']);
  importedKeys.set(keyPem, key);
  if (importedKeys.size > IMPORTED_KEYS_LIMIT) {
    const [oldest] = importedKeys.keys();
    if (oldest !== undefined) importedKeys.delete(oldest);
  }
  return key;
}

async function verifyingKey(publicKeyPem: string): Promise<webcrypto.CryptoKey> {
  const der = createPublicKey(publicKeyPem).export({ type: 'spki', format: 'der' });
  return webcrypto.subtle.importKey('spki', der, ALGORITHM, true, ['verify']);
}

/** A positive random serial number, hex. */
function serialNumber(): string {
  const bytes = webcrypto.getRandomValues(new Uint8Array(16));
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return Buffer.from(bytes).toString('hex');
}

/** A self-signed authority, valid ten years from `now` (wall-clock, milliseconds). */
export async function createAuthority(options: { commonName: string; now: number; keys?: KeyPair }): Promise<Authority> {
  const keys = options.keys ?? createKeyPair();
  const publicKey = await verifyingKey(keys.publicKeyPem);
  const certificate = await X509CertificateGenerator.create(
    {
      serialNumber: serialNumber(),
      subject: subject(options.commonName),
      issuer: subject(options.commonName),
      notBefore: new Date(options.now - BACKDATE),
      notAfter: new Date(options.now + 3650 * DAY),
      publicKey,
      signingKey: await signingKey(keys.privateKeyPem),
      signingAlgorithm: ALGORITHM,
      extensions: [
        new BasicConstraintsExtension(true, undefined, true),
        new KeyUsagesExtension(KeyUsageFlags.digitalSignature | KeyUsageFlags.keyEncipherment | KeyUsageFlags.keyCertSign, true),
        await SubjectKeyIdentifierExtension.create(publicKey, false, webcrypto),
      ],
    },
    webcrypto,
  );
  return { certPem: `${certificate.toString('pem')}\n`, keyPem: keys.privateKeyPem };
}

/** Certifies a key. Returns the certificate and, when the key was made here, its private half (else an empty string). */
export async function issueCertificate(options: IssueOptions): Promise<{ certPem: string; keyPem: string }> {
  const keys = options.publicKeyPem ? undefined : createKeyPair();
  const publicKeyPem = options.publicKeyPem ?? keys?.publicKeyPem ?? '';
  const issuer = new X509Certificate(options.authority.certPem);
  const names = [
    ...(options.dnsNames ?? []).map((value) => ({ type: 'dns' as const, value })),
    ...(options.ips ?? []).map((value) => ({ type: 'ip' as const, value })),
  ];
  const usages = options.usages.map((usage) => (usage === 'client' ? ExtendedKeyUsage.clientAuth : ExtendedKeyUsage.serverAuth));
  const certificate = await X509CertificateGenerator.create(
    {
      serialNumber: serialNumber(),
      subject: subject(options.commonName, options.organizations),
      issuer: issuer.subject,
      notBefore: new Date(options.now - BACKDATE),
      notAfter: new Date(options.now + (options.days ?? 365) * DAY),
      publicKey: await verifyingKey(publicKeyPem),
      signingKey: await signingKey(options.authority.keyPem),
      signingAlgorithm: ALGORITHM,
      extensions: [
        new KeyUsagesExtension(KeyUsageFlags.digitalSignature | KeyUsageFlags.keyEncipherment, true),
        new ExtendedKeyUsageExtension(usages, false),
        new BasicConstraintsExtension(false, undefined, true),
        ...(names.length > 0 ? [new SubjectAlternativeNameExtension(names)] : []),
      ],
    },
    webcrypto,
  );
  return { certPem: `${certificate.toString('pem')}\n`, keyPem: keys?.privateKeyPem ?? '' };
}

/** Reads a PKCS#10 request (PEM) and checks its own signature. Throws RequestFormatError. */
export async function parseRequest(requestPem: string): Promise<CertificateRequest> {
  let request: Pkcs10CertificateRequest;
  try {
    request = new Pkcs10CertificateRequest(requestPem);
  } catch (error) {
    throw new RequestFormatError(`not a PKCS#10 request: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (!(await request.verify(webcrypto))) throw new RequestFormatError('the signature of the request does not match its key');
  const names = request.extensions.find((extension) => extension instanceof SubjectAlternativeNameExtension)?.names.items ?? [];
  return {
    commonName: request.subjectName.getField('CN')[0] ?? '',
    organizations: request.subjectName.getField('O'),
    dnsNames: names.filter((name) => name.type === 'dns').map((name) => name.value),
    ips: names.filter((name) => name.type === 'ip').map((name) => name.value),
    publicKeyPem: request.publicKey.toString('pem'),
  };
}

/** Makes a PKCS#10 request for a key pair (PEM): what a kubelet sends. */
export async function signRequest(options: { keys: KeyPair; commonName: string; organizations?: readonly string[] }): Promise<string> {
  const { Pkcs10CertificateRequestGenerator } = await import('@peculiar/x509');
  const request = await Pkcs10CertificateRequestGenerator.create(
    {
      name: subject(options.commonName, options.organizations),
      keys: { privateKey: await signingKey(options.keys.privateKeyPem), publicKey: await verifyingKey(options.keys.publicKeyPem) },
      signingAlgorithm: ALGORITHM,
    },
    webcrypto,
  );
  return request.toString('pem');
}
