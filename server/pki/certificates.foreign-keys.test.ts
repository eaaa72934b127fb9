import 'reflect-metadata';
import { generateKeyPairSync, webcrypto, X509Certificate } from 'node:crypto';
import { Pkcs10CertificateRequestGenerator } from '@peculiar/x509';
import { expect, it } from 'vitest';
import { createAuthority, issueCertificate, parseRequest } from './index.ts';

const RSA = {
  name: 'RSASSA-PKCS1-v1_5',
  hash: 'SHA-256',
  modulusLength: 2048,
  publicExponent: new Uint8Array([1, 0, 1]),
};

it('certifies the RSA key of a request, as openssl makes them', async () => {
  const keys = await webcrypto.subtle.generateKey(RSA, true, ['sign', 'verify']);
  const made = await Pkcs10CertificateRequestGenerator.create(
    { name: 'CN=jane,O=devs', keys, signingAlgorithm: RSA },
    webcrypto,
  );
  const request = await parseRequest(made.toString('pem'));
  expect([request.commonName, request.organizations]).toEqual(['jane', ['devs']]);
  const authority = await createAuthority({ commonName: 'kubernetes', now: Date.now() });
  const issued = await issueCertificate({ authority, ...request, usages: ['client'], now: Date.now() });
  const certificate = new X509Certificate(issued.certPem);
  expect(certificate.publicKey.asymmetricKeyType).toBe('rsa');
  expect(certificate.verify(new X509Certificate(authority.certPem).publicKey)).toBe(true);
});

it.each(['P-256', 'P-384', 'P-521'])('certifies a key on %s', async (namedCurve) => {
  const { publicKey } = generateKeyPairSync('ec', { namedCurve });
  const authority = await createAuthority({ commonName: 'kubernetes', now: Date.now() });
  const { certPem } = await issueCertificate({
    authority,
    commonName: 'x',
    publicKeyPem: String(publicKey.export({ type: 'spki', format: 'pem' })),
    usages: ['client'],
    now: Date.now(),
  });
  expect(new X509Certificate(certPem).publicKey.equals(publicKey)).toBe(true);
});
