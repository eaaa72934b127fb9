import type { X509Certificate } from 'node:crypto';
import type { UserInfo } from '#server/kube';
import type { ServerFacilities, TokenIssuer } from '../kind.ts';
import { authenticateBootstrapToken } from './bootstrap-tokens.ts';
import { createCertificateAuthenticator } from './client-certificates.ts';
import { createServiceAccountTokens, type ServiceAccountKeys } from './service-account-tokens.ts';

export type { ServiceAccountKeys };

/** What a request proves itself with. The certificate is the one TLS received, whether or not TLS trusted it. */
export interface Credentials {
  peerCertificate?: X509Certificate | undefined;
  bearerToken?: string | undefined;
}

export interface AuthenticatorOptions {
  /** Certificates of the authorities whose client certificates this cluster accepts. */
  clientCaPem: readonly string[];
  serviceAccount: ServiceAccountKeys;
  facilities: Pick<ServerFacilities, 'now' | 'uid' | 'read'>;
}

export interface Authenticator {
  /**
   * Resolves to who the credentials prove in this cluster, system:authenticated among the groups; undefined when they
   * prove nobody (no credentials at all: the caller decides on anonymity). A good certificate wins over a token.
   */
  authenticate(credentials: Credentials): Promise<UserInfo | undefined>;
  readonly tokens: TokenIssuer;
}

const AUTHENTICATED = 'system:authenticated';

/**
 * Client certificates, service-account tokens and bootstrap tokens of one cluster. What is remembered belongs to this
 * instance, never to a connection: one connection may address several clusters.
 * Models kubernetes/pkg/kubeapiserver/authenticator. Throws on a PEM that cannot be read.
 */
export function createAuthenticator(options: AuthenticatorOptions): Authenticator {
  const { facilities, serviceAccount } = options;
  const certificates = createCertificateAuthenticator({
    caPem: options.clientCaPem,
    now: () => facilities.now(),
  });
  const serviceAccounts = createServiceAccountTokens(serviceAccount, facilities);
  const defaultAudiences = [serviceAccount.issuer];

  const review = async (token: string, audiences?: readonly string[]): Promise<UserInfo | undefined> => {
    const wanted = audiences?.length ? audiences : defaultAudiences;
    const user =
      (await serviceAccounts.authenticate(token, wanted)) ??
      // Bootstrap tokens know no audience: they are meant for the API server.
      (wanted.some((audience) => defaultAudiences.includes(audience))
        ? authenticateBootstrapToken(token, facilities)
        : undefined);
    return user && authenticated(user);
  };
  return {
    async authenticate({ peerCertificate, bearerToken }) {
      const user = peerCertificate && certificates.authenticate(peerCertificate);
      if (user) return authenticated(user);
      return bearerToken ? review(bearerToken) : undefined;
    },
    tokens: { issue: (request) => serviceAccounts.issue(request), review, defaultAudiences },
  };
}

function authenticated(user: UserInfo): UserInfo {
  return user.groups.includes(AUTHENTICATED) ? user : { ...user, groups: [...user.groups, AUTHENTICATED] };
}
