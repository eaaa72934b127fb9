import type { X509Certificate } from 'node:crypto';
import type { UserInfo } from '#server/kube';
import type { ServerFacilities, TokenIssuer } from '../kind.ts';

/** What a request proves itself with. The certificate is the one TLS received, whether or not TLS trusted it. */
export interface Credentials {
  peerCertificate?: X509Certificate | undefined;
  bearerToken?: string | undefined;
}

/** Keys and issuer of service-account tokens; PEM, ECDSA P-256. */
export interface ServiceAccountKeys {
  issuer: string;
  signingKeyPem: string;
  verifyingKeysPem: readonly string[];
}

export interface AuthenticatorOptions {
  /** Certificates of the authorities whose client certificates this cluster accepts. */
  clientCaPem: readonly string[];
  serviceAccount: ServiceAccountKeys;
  facilities: Pick<ServerFacilities, 'now' | 'uid' | 'read' | 'list'>;
}

export interface Authenticator {
  /** Resolves to who the credentials prove (with system:authenticated), or undefined when they prove nobody. */
  authenticate(credentials: Credentials): Promise<UserInfo | undefined>;
  readonly tokens: TokenIssuer;
}

export function createAuthenticator(_options: AuthenticatorOptions): Authenticator {
  throw new Error('not yet');
}
