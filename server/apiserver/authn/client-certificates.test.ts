import { X509Certificate } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { createCertificateAuthenticator } from './client-certificates.ts';
import { createTestAuthority, ExtendedKeyUsage, type TestAuthority } from './testing/certificates.ts';

const NOW = Date.UTC(2026, 0, 15);
const HOUR = 3_600_000;

describe('client certificates', () => {
  let authority: TestAuthority;
  let other: TestAuthority;
  let now = NOW;

  beforeAll(async () => {
    authority = await createTestAuthority('CN=kubernetes', NOW);
    other = await createTestAuthority('CN=kubernetes', NOW);
  });
  const authenticator = (...ca: TestAuthority[]): ReturnType<typeof createCertificateAuthenticator> =>
    createCertificateAuthenticator({ caPem: ca.map((one) => one.pem), now: () => now });

  it('takes the user from the common name and the groups from the organizations', async () => {
    const certificate = await authority.issue({
      subject: 'CN=kubernetes-admin, O=kubeadm:cluster-admins, O=dev\\, ops',
    });
    expect(authenticator(authority).authenticate(certificate)).toEqual({
      name: 'kubernetes-admin',
      groups: ['kubeadm:cluster-admins', 'dev, ops'],
      extra: {
        'authentication.kubernetes.io/credential-id': [
          `X509SHA256=${certificate.fingerprint256.replaceAll(':', '').toLowerCase()}`,
        ],
      },
    });
  });

  it('reads organizations that share one relative name, as Go writes them', async () => {
    const certificate = await authority.issue({ subject: 'O=system:masters+O=second, CN=root' });
    const user = authenticator(authority).authenticate(certificate);
    expect([user?.name, [...(user?.groups ?? [])].sort()]).toEqual(['root', ['second', 'system:masters']]);
  });

  it('accepts any authority of a bundle', async () => {
    const bundle = createCertificateAuthenticator({
      caPem: [`${other.pem}\n${authority.pem}\n`],
      now: () => NOW,
    });
    expect(bundle.authenticate(await authority.issue({ subject: 'CN=x' }))?.name).toBe('x');
  });

  it('refuses a certificate of an authority of the same name with another key', async () => {
    expect(
      authenticator(authority).authenticate(await other.issue({ subject: 'CN=admin, O=system:masters' })),
    ).toBeUndefined();
  });

  it.each([
    ['without a purpose', { usages: [] }],
    ['for servers', { usages: [ExtendedKeyUsage.serverAuth] }],
    ['of an authority', { ca: true }],
    ['not valid yet', { notBefore: NOW + HOUR, notAfter: NOW + 2 * HOUR }],
    ['expired', { notBefore: NOW - 2 * HOUR, notAfter: NOW - HOUR }],
  ])('refuses a certificate %s', async (_, options) => {
    const certificate = await authority.issue({ subject: 'CN=admin, O=system:masters', ...options });
    expect(authenticator(authority).authenticate(certificate)).toBeUndefined();
  });

  it('refuses a certificate without a common name', async () => {
    expect(
      authenticator(authority).authenticate(await authority.issue({ subject: 'O=system:masters' })),
    ).toBeUndefined();
  });

  it('refuses the authority itself', () => {
    expect(authenticator(authority).authenticate(new X509Certificate(authority.pem))).toBeUndefined();
  });

  it('looks at the time again although the signature is remembered', async () => {
    const certificates = authenticator(authority);
    const certificate = await authority.issue({ subject: 'CN=x', notAfter: NOW + HOUR });
    now = NOW;
    expect(certificates.authenticate(certificate)?.name).toBe('x');
    now = NOW + 2 * HOUR;
    expect(certificates.authenticate(certificate)).toBeUndefined();
    now = NOW;
    expect(certificates.authenticate(certificate)?.name).toBe('x');
  });

  it('refuses what an expired authority signed', async () => {
    const brief = await createTestAuthority('CN=brief', NOW, HOUR);
    const certificate = await brief.issue({ subject: 'CN=x' });
    now = NOW + 2 * HOUR;
    expect(authenticator(brief).authenticate(certificate)).toBeUndefined();
    now = NOW;
  });

  it('keeps clusters apart: the same certificate proves nobody elsewhere', async () => {
    const certificate = await authority.issue({ subject: 'CN=x' });
    expect(authenticator(authority).authenticate(certificate)?.name).toBe('x');
    expect(authenticator(other).authenticate(certificate)).toBeUndefined();
  });
});
