import 'reflect-metadata';
import { webcrypto, X509Certificate } from 'node:crypto';
import * as x509 from '@peculiar/x509';

// The package speaks of the browser's key types, which this project does not load.
x509.cryptoProvider.set(webcrypto as never);

const ECDSA = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/** An authority for tests. Times are milliseconds since the epoch. */
export interface TestAuthority {
  pem: string;
  issue(options: {
    subject: string;
    notBefore?: number;
    notAfter?: number;
    usages?: x509.ExtendedKeyUsage[];
    ca?: boolean;
  }): Promise<X509Certificate>;
}

const DAY = 86_400_000;
let serial = 1;

export async function createTestAuthority(
  name: string,
  now: number,
  validFor = 3650 * DAY,
): Promise<TestAuthority> {
  const keys = await webcrypto.subtle.generateKey(ECDSA, true, ['sign', 'verify']);
  const own = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: String(serial++).padStart(2, '0'),
    name,
    notBefore: new Date(now - DAY),
    notAfter: new Date(now + validFor),
    signingAlgorithm: ECDSA,
    keys: keys as never,
    extensions: [new x509.BasicConstraintsExtension(true, undefined, true)],
  });
  return {
    pem: own.toString('pem'),
    async issue({
      subject,
      notBefore = now - 1000,
      notAfter = now + DAY,
      usages = [x509.ExtendedKeyUsage.clientAuth],
      ca = false,
    }) {
      const subjectKeys = await webcrypto.subtle.generateKey(ECDSA, true, ['sign', 'verify']);
      const certificate = await x509.X509CertificateGenerator.create({
        serialNumber: String(serial++).padStart(4, '0'),
        subject,
        issuer: own.subject,
        notBefore: new Date(notBefore),
        notAfter: new Date(notAfter),
        signingAlgorithm: ECDSA,
        publicKey: subjectKeys.publicKey as never,
        signingKey: keys.privateKey as never,
        extensions: [
          new x509.BasicConstraintsExtension(ca, undefined, true),
          ...(usages.length ? [new x509.ExtendedKeyUsageExtension(usages)] : []),
        ],
      });
      return new X509Certificate(certificate.toString('pem'));
    },
  };
}

export const { ExtendedKeyUsage } = x509;
