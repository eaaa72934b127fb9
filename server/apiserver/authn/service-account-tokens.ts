import { createPublicKey } from 'node:crypto';
import { decodeProtectedHeader, type JWTPayload, jwtVerify, SignJWT } from 'jose';
import { formatTime, invalid, type UserInfo } from '#server/kube';
import type { ServerFacilities, TokenIssuer } from '../kind.ts';
import { type BoundObject, type KubernetesClaims, userOfToken, type VerifiedToken } from './token-claims.ts';
import { ALGORITHM, keyId, signingKey, verifyingKeys } from './token-keys.ts';

/** Keys and issuer of service-account tokens; PEM, ECDSA P-256. */
export interface ServiceAccountKeys {
  issuer: string;
  signingKeyPem: string;
  verifyingKeysPem: readonly string[];
}

const SHORTEST_SECONDS = 600;
const LONGEST_SECONDS = 2 ** 32;
/** What kubelets ask for pods' own tokens; such tokens live a year and only warn after this. */
const KUBELET_SECONDS = 3607;
const EXTENDED_SECONDS = 365 * 24 * 3600;

/** Verified signatures remembered, and for how long. Validity and bound objects are looked at every time regardless. */
const MOST_REMEMBERED = 1024;
const REMEMBER_MS = 10 * 60_000;
const LONGEST_TOKEN = 8192;

export interface ServiceAccountTokens {
  issue: TokenIssuer['issue'];
  /** The user, when the token is ours, valid, and meant for one of `audiences`. */
  authenticate(token: string, audiences: readonly string[]): Promise<UserInfo | undefined>;
}

type Facilities = Pick<ServerFacilities, 'now' | 'uid' | 'read'>;

/** Signs and checks service-account tokens (ES256). Models kubernetes/pkg/serviceaccount (jwt.go, claims.go). */
export function createServiceAccountTokens(
  keys: ServiceAccountKeys,
  facilities: Facilities,
): ServiceAccountTokens {
  const signing = signingKey(keys.signingKeyPem);
  const verifying = verifyingKeys(keys.verifyingKeysPem);
  const signingPublic = createPublicKey(keys.signingKeyPem);
  verifying.set(keyId(signingPublic), signingPublic);
  const remembered = new Map<string, { verified: VerifiedToken; until: number }>();

  const verify = async (token: string): Promise<VerifiedToken | undefined> => {
    const now = facilities.now();
    const known = remembered.get(token);
    if (known && now < known.until) return known.verified;
    remembered.delete(token);
    const verified = await verifySignature(token, keys.issuer, verifying);
    if (!verified) return undefined;
    if (remembered.size >= MOST_REMEMBERED) {
      const oldest = remembered.keys().next();
      if (!oldest.done) remembered.delete(oldest.value);
    }
    remembered.set(token, { verified, until: now + REMEMBER_MS });
    return verified;
  };

  return {
    async issue(options) {
      checkLifetime(options.expirationSeconds);
      const audiences = options.audiences?.length ? [...options.audiences] : [keys.issuer];
      const now = Math.floor(facilities.now() / 1000);
      const extended =
        options.expirationSeconds === KUBELET_SECONDS &&
        options.bound?.kind === 'Pod' &&
        audiences.includes(keys.issuer);
      const expires = now + options.expirationSeconds;
      const claims: KubernetesClaims = {
        namespace: options.namespace,
        ...boundClaims(options.namespace, options.bound, facilities),
        serviceaccount: { name: options.serviceAccount.name, uid: options.serviceAccount.uid },
        ...(extended ? { warnafter: expires } : {}),
      };
      const token = await new SignJWT({ 'kubernetes.io': claims } satisfies JWTPayload)
        .setProtectedHeader({ alg: ALGORITHM, kid: signing.id })
        .setAudience(audiences)
        .setExpirationTime(extended ? now + EXTENDED_SECONDS : expires)
        .setIssuedAt(now)
        .setIssuer(keys.issuer)
        .setJti(facilities.uid())
        .setNotBefore(now)
        .setSubject(`system:serviceaccount:${options.namespace}:${options.serviceAccount.name}`)
        .sign(signing.key);
      return { token, expirationTimestamp: formatTime(expires * 1000) };
    },
    async authenticate(token, audiences) {
      const verified = await verify(token);
      if (!verified || !verified.audiences.some((audience) => audiences.includes(audience))) return undefined;
      return userOfToken(verified, facilities);
    },
  };
}

function checkLifetime(seconds: number): void {
  const field = 'spec.expirationSeconds';
  const refuse = (detail: string): never => {
    const error = { type: 'FieldValueInvalid' as const, field, value: seconds, detail };
    throw invalid({ group: 'authentication.k8s.io', kind: 'TokenRequest' }, '', [error]);
  };
  if (seconds < SHORTEST_SECONDS) refuse('may not specify a duration less than 10 minutes');
  if (seconds > LONGEST_SECONDS) refuse('may not specify a duration larger than 2^32 seconds');
}

type Bound = Parameters<TokenIssuer['issue']>[0]['bound'];

function boundClaims(namespace: string, bound: Bound, facilities: Facilities): Partial<KubernetesClaims> {
  if (!bound) return {};
  const reference: BoundObject = { name: bound.name, uid: bound.uid };
  switch (bound.kind) {
    case 'Pod': {
      const pod = facilities.read({ group: '', plural: 'pods' }, namespace, bound.name);
      const nodeName = (pod?.spec as { nodeName?: string } | undefined)?.nodeName;
      const node = nodeName
        ? facilities.read({ group: '', plural: 'nodes' }, undefined, nodeName)
        : undefined;
      return {
        pod: reference,
        ...(node?.metadata.uid ? { node: { name: node.metadata.name, uid: node.metadata.uid } } : {}),
      };
    }
    case 'Secret':
      return { secret: reference };
    case 'Node':
      return { node: reference };
    default:
      return {};
  }
}

async function verifySignature(
  token: string,
  issuer: string,
  keys: ReturnType<typeof verifyingKeys>,
): Promise<VerifiedToken | undefined> {
  if (token.length > LONGEST_TOKEN || token.split('.').length !== 3) return undefined;
  let payload: JWTPayload;
  try {
    const { kid } = decodeProtectedHeader(token);
    const key = kid === undefined ? [...keys.values()][0] : keys.get(kid);
    if (!key) return undefined;
    // Times are looked at on every use, with the cluster's clock: jose is to pass them over.
    ({ payload } = await jwtVerify(token, key, {
      issuer,
      algorithms: [ALGORITHM],
      clockTolerance: Number.MAX_SAFE_INTEGER,
    }));
  } catch {
    // Whatever is wrong with a token, it proves nobody.
    return undefined;
  }
  const claims = kubernetesClaims(payload['kubernetes.io']);
  if (!claims || payload.sub !== `system:serviceaccount:${claims.namespace}:${claims.serviceaccount.name}`)
    return undefined;
  if (payload.exp === undefined) return undefined;
  return {
    audiences: [payload.aud ?? []].flat(),
    notBefore: payload.nbf ?? 0,
    expires: payload.exp,
    id: payload.jti,
    kubernetes: claims,
  };
}

function kubernetesClaims(value: unknown): KubernetesClaims | undefined {
  const claims = value as Partial<KubernetesClaims> | undefined;
  if (typeof claims?.namespace !== 'string' || typeof claims.serviceaccount?.name !== 'string')
    return undefined;
  return claims as KubernetesClaims;
}
