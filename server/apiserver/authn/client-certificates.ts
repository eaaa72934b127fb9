import { X509Certificate } from 'node:crypto';
import type { UserInfo } from '#server/kube';

/** Certificates whose verdict is remembered; the oldest is forgotten first. */
const MOST_REMEMBERED = 1024;
const CLIENT_AUTH = '1.3.6.1.5.5.7.3.2';
const ANY_PURPOSE = '2.5.29.37.0';
const CREDENTIAL_ID = 'authentication.kubernetes.io/credential-id';

interface Verdict {
  user: UserInfo;
  /** Milliseconds; of the certificate and of its issuer, whichever is narrower. */
  notBefore: number;
  notAfter: number;
}

/**
 * Tells whom a client certificate proves: common name → user, organizations → groups. The certificate must be signed by
 * one of `caPem`, be valid now (its issuer too), be meant for client authentication and be no authority itself.
 * Signatures are checked once per certificate; validity on every call. Undefined: it proves nobody here, which says
 * nothing about other clusters. Models k8s.io/apiserver/pkg/authentication/request/x509.
 */
export function createCertificateAuthenticator(options: { caPem: readonly string[]; now: () => number }): {
  authenticate(certificate: X509Certificate): UserInfo | undefined;
} {
  const authorities = options.caPem.flatMap(splitPem).map((pem) => new X509Certificate(pem));
  const verdicts = new Map<string, Verdict | undefined>();

  return {
    authenticate(certificate) {
      const fingerprint = certificate.fingerprint256;
      let verdict = verdicts.get(fingerprint);
      if (!verdict && !verdicts.has(fingerprint)) {
        verdict = judge(certificate, authorities);
        if (verdicts.size >= MOST_REMEMBERED) forgetOldest(verdicts);
        verdicts.set(fingerprint, verdict);
      }
      const now = options.now();
      return verdict && verdict.notBefore <= now && now <= verdict.notAfter ? verdict.user : undefined;
    },
  };
}

function forgetOldest(map: Map<string, unknown>): void {
  const oldest = map.keys().next();
  if (!oldest.done) map.delete(oldest.value);
}

/** A PEM file may hold several certificates. */
function splitPem(text: string): string[] {
  return text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
}

function judge(certificate: X509Certificate, authorities: readonly X509Certificate[]): Verdict | undefined {
  if (certificate.ca) return undefined;
  // Node names the extended key usages `keyUsage`.
  const purposes = certificate.keyUsage ?? [];
  if (!purposes.includes(CLIENT_AUTH) && !purposes.includes(ANY_PURPOSE)) return undefined;
  const issuer = authorities.find((authority) => isIssuedBy(certificate, authority));
  const user = issuer && identityOf(certificate);
  if (!user) return undefined;
  return {
    user,
    notBefore: Math.max(Date.parse(certificate.validFrom), Date.parse(issuer.validFrom)),
    notAfter: Math.min(Date.parse(certificate.validTo), Date.parse(issuer.validTo)),
  };
}

function isIssuedBy(certificate: X509Certificate, authority: X509Certificate): boolean {
  return authority.ca && certificate.checkIssued(authority) && certificate.verify(authority.publicKey);
}

function identityOf(certificate: X509Certificate): UserInfo | undefined {
  // The legacy form is the only one that gives values unescaped, repeated attributes as lists.
  const subject = certificate.toLegacyObject().subject as
    | Partial<Record<string, string | string[]>>
    | undefined;
  const name = [subject?.CN ?? []].flat().at(-1);
  if (!name) return undefined;
  const digest = certificate.fingerprint256.replaceAll(':', '').toLowerCase();
  return { name, groups: [subject?.O ?? []].flat(), extra: { [CREDENTIAL_ID]: [`X509SHA256=${digest}`] } };
}
