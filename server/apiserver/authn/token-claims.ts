import type { UnstructuredObject, UserInfo } from '#server/kube';
import type { ServerFacilities } from '../kind.ts';

export interface BoundObject {
  name: string;
  uid: string;
}

/** The private claims of a service-account token. */
export interface KubernetesClaims {
  namespace: string;
  serviceaccount: BoundObject;
  pod?: BoundObject;
  secret?: BoundObject;
  node?: BoundObject;
  warnafter?: number;
}

/** What a verified signature told us of a token. Times in seconds since the epoch. */
export interface VerifiedToken {
  audiences: readonly string[];
  notBefore: number;
  expires: number;
  id: string | undefined;
  kubernetes: KubernetesClaims;
}

/** Clocks may differ by this much, and what is being deleted counts as there for as long. */
const LEEWAY_SECONDS = 60;
const PREFIX = 'authentication.kubernetes.io/';

type Facilities = Pick<ServerFacilities, 'now' | 'read'>;

/**
 * The user of a token whose signature is good, if it is valid now and everything it is bound to still exists (same
 * uid). Cheap enough for every request. Models kubernetes/pkg/serviceaccount (claims.go, validator.Validate).
 */
export function userOfToken(token: VerifiedToken, facilities: Facilities): UserInfo | undefined {
  const now = facilities.now() / 1000;
  if (now > token.expires + LEEWAY_SECONDS || now < token.notBefore - LEEWAY_SECONDS) return undefined;
  const { namespace, serviceaccount, pod, secret, node } = token.kubernetes;
  const stands = (plural: string, scope: string | undefined, bound: BoundObject | undefined): boolean =>
    !bound || isThere(facilities.read({ group: '', plural }, scope, bound.name), bound.uid, now);
  if (!stands('serviceaccounts', namespace, serviceaccount)) return undefined;
  if (!stands('secrets', namespace, secret) || !stands('pods', namespace, pod)) return undefined;
  // The node of a pod's token is told, not checked: the pod's own life decides.
  if (!pod && !stands('nodes', undefined, node)) return undefined;
  return {
    name: `system:serviceaccount:${namespace}:${serviceaccount.name}`,
    uid: serviceaccount.uid,
    groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`],
    extra: {
      ...(token.id ? { [`${PREFIX}credential-id`]: [`JTI=${token.id}`] } : {}),
      ...(node ? { [`${PREFIX}node-name`]: [node.name], [`${PREFIX}node-uid`]: [node.uid] } : {}),
      ...(pod ? { [`${PREFIX}pod-name`]: [pod.name], [`${PREFIX}pod-uid`]: [pod.uid] } : {}),
    },
  };
}

function isThere(object: UnstructuredObject | undefined, uid: string, nowSeconds: number): boolean {
  if (!object || object.metadata.uid !== uid) return false;
  const deleted = object.metadata.deletionTimestamp;
  return !deleted || Date.parse(deleted) / 1000 >= nowSeconds - LEEWAY_SECONDS;
}
