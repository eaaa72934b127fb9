import 'reflect-metadata';
import { createHash, X509Certificate as NodeCertificate } from 'node:crypto';
import { ExtendedKeyUsageExtension, SubjectKeyIdentifierExtension, X509Certificate } from '@peculiar/x509';
import { describe, expect, it } from 'vitest';
import { certificateFingerprint, createAuthority, createKeyPair, issueCertificate } from './certificates.ts';

const NOW = Date.UTC(2030, 0, 2, 3, 4, 5);

describe('a certificate authority', () => {
  it('signs itself and may sign certificates', async () => {
    const { certPem, keyPem } = await createAuthority({ commonName: 'kubernetes', now: NOW });
    const certificate = new NodeCertificate(certPem);

    expect(certificate.subject).toBe('CN=kubernetes');
    expect(certificate.issuer).toBe('CN=kubernetes');
    expect(certificate.ca).toBe(true);
    expect(certificate.verify(certificate.publicKey)).toBe(true);
    expect(new Date(certificate.validFrom).toISOString()).toBe('2030-01-02T02:59:05.000Z');
    expect(new Date(certificate.validTo).toISOString()).toBe('2039-12-31T03:04:05.000Z');
    expect(keyPem).toContain('PRIVATE KEY');
    const spki = certificate.publicKey.export({ type: 'spki', format: 'der' });
    const identifier = new X509Certificate(certPem).getExtension(SubjectKeyIdentifierExtension)?.keyId;
    expect(identifier).toBe(createHash('sha1').update(spki.subarray(-65)).digest('hex'));
    expect(certificateFingerprint(certPem)).toBe(createHash('sha256').update(spki).digest('hex'));
  });

  it('issues certificates that name it, for people and for servers', async () => {
    const authority = await createAuthority({ commonName: 'Zürich 株式会社', now: NOW });
    const issuer = new NodeCertificate(authority.certPem);
    const { certPem, keyPem } = await issueCertificate({
      authority,
      commonName: 'system:node:worker-1',
      organizations: ['system:nodes', 'x'.repeat(200)],
      usages: ['client', 'server'],
      dnsNames: ['localhost', 'kubernetes.default.svc'],
      ips: ['127.0.0.1', '::1', '2001:db8::a:1', '::ffff:10.0.0.1'],
      now: NOW,
      days: 365 * 30,
    });
    const certificate = new NodeCertificate(certPem);

    expect(certificate.subject).toBe(`CN=system:node:worker-1\nO=system:nodes\nO=${'x'.repeat(200)}`);
    expect(certificate.checkIssued(issuer)).toBe(true);
    expect(certificate.verify(issuer.publicKey)).toBe(true);
    expect(certificate.ca).toBe(false);
    expect(
      ['localhost', 'kubernetes.default.svc', 'else'].map((name) => certificate.checkHost(name)),
    ).toEqual(['localhost', 'kubernetes.default.svc', undefined]);
    expect(['127.0.0.1', '::1', '2001:db8::a:1', '127.0.0.2'].map((ip) => certificate.checkIP(ip))).toEqual([
      '127.0.0.1',
      '::1',
      '2001:db8::a:1',
      undefined,
    ]);
    expect(new Date(certificate.validTo).getUTCFullYear()).toBe(2059);
    expect(new X509Certificate(certPem).getExtension(ExtendedKeyUsageExtension)?.usages).toEqual([
      '1.3.6.1.5.5.7.3.2',
      '1.3.6.1.5.5.7.3.1',
    ]);
    expect(keyPem).toContain('PRIVATE KEY');
  });

  it('certifies a key it is given, without its private half', async () => {
    const authority = await createAuthority({ commonName: 'ca', now: NOW });
    const { publicKeyPem } = createKeyPair();
    const { certPem, keyPem } = await issueCertificate({
      authority,
      commonName: 'a',
      usages: ['client'],
      publicKeyPem,
      now: NOW,
    });

    expect(new NodeCertificate(certPem).publicKey.export({ type: 'spki', format: 'pem' })).toBe(publicKeyPem);
    expect(keyPem).toBe('');
  });
});
