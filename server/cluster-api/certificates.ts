import 'reflect-metadata';
import { createHash, createPrivateKey, createPublicKey, KeyObject, webcrypto, X509Certificate as NodeCertificate } from 'node:crypto';
import {
  BasicConstraintsExtension, cryptoProvider, ExtendedKeyUsage, ExtendedKeyUsageExtension, KeyUsageFlags, KeyUsagesExtension, X509Certificate, X509CertificateGenerator,
} from '@peculiar/x509';

/** A certificate and its private key, or a public and its private key: what a Secret of kind `tls.crt` and `tls.key` holds. */
export interface KeyPair {
  certPem: string;
  keyPem: string;
}

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const DAY = 24 * 60 * 60 * 1000;
/** Clocks differ: certificates are valid a little earlier. */
const EARLIER = 5 * 60 * 1000;

/** Days certificate authorities and client certificates are valid: kubeadm's ten years and one. */
export const AUTHORITY_DAYS = 3650;
export const CLIENT_DAYS = 365;

cryptoProvider.set(webcrypto);

function privatePem(key: webcrypto.CryptoKey): string {
  return KeyObject.from(key).export({ type: 'sec1', format: 'pem' }).toString();
}

function serial(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes).toString('hex');
  // Positive, and no leading zero octet.
  return `4${hex.slice(1)}`;
}

async function keyPair(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
}

/**
 * Makes a self-signed certificate authority as kubeadm names it (`CN=kubernetes`). `now` is milliseconds, `random` 8 bytes for the
 * serial number. Models sigs.k8s.io/cluster-api/util/secret (certificates.go).
 */
export async function createAuthority(now: number, random: Uint8Array, days = AUTHORITY_DAYS): Promise<KeyPair> {
  const keys = await keyPair();
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: serial(random),
    name: 'CN=kubernetes',
    notBefore: new Date(now - EARLIER),
    notAfter: new Date(now + days * DAY),
    signingAlgorithm: ALGORITHM,
    keys,
    extensions: [
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature | KeyUsageFlags.keyEncipherment | KeyUsageFlags.keyCertSign, true),
      new BasicConstraintsExtension(true, undefined, true),
    ],
  });
  return { certPem: `${certificate.toString('pem')}\n`, keyPem: privatePem(keys.privateKey) };
}

/** A key pair for signing service account tokens: the public key stands where others have a certificate. */
export async function createServiceAccountKeys(): Promise<KeyPair> {
  const keys = await keyPair();
  return { certPem: KeyObject.from(keys.publicKey).export({ type: 'spki', format: 'pem' }).toString(), keyPem: privatePem(keys.privateKey) };
}

async function importKey(pem: string): Promise<webcrypto.CryptoKey> {
  const pkcs8 = createPrivateKey(pem).export({ type: 'pkcs8', format: 'der' });
  return webcrypto.subtle.importKey('pkcs8', pkcs8, ALGORITHM, false, ['sign']);
}

/** A client certificate of the authority. Fails when the authority's key is no P-256 key. */
export async function createClientCertificate(authority: KeyPair, subject: { commonName: string; organization: string }, now: number, random: Uint8Array): Promise<KeyPair> {
  const [keys, signingKey] = await Promise.all([keyPair(), importKey(authority.keyPem)]);
  const certificate = await X509CertificateGenerator.create({
    serialNumber: serial(random),
    subject: [{ O: [subject.organization] }, { CN: [subject.commonName] }],
    issuer: new X509Certificate(authority.certPem).subject,
    notBefore: new Date(now - EARLIER),
    notAfter: new Date(now + CLIENT_DAYS * DAY),
    signingAlgorithm: ALGORITHM,
    publicKey: keys.publicKey,
    signingKey,
    extensions: [
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature | KeyUsageFlags.keyEncipherment, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.clientAuth]),
    ],
  });
  return { certPem: `${certificate.toString('pem')}\n`, keyPem: privatePem(keys.privateKey) };
}

/** `sha256:<hex>` of the authority's public key, as kubeadm's discovery pins it. */
export function publicKeyHash(certPem: string): string {
  const spki = createPublicKey(certPem).export({ type: 'spki', format: 'der' });
  return `sha256:${createHash('sha256').update(spki).digest('hex')}`;
}

/** Is more than half of the certificate's year used? */
export function needsRotation(certPem: string, now: number): boolean {
  return Date.parse(new NodeCertificate(certPem).validTo) - now < (CLIENT_DAYS / 2) * DAY;
}
