import type { UserInfo } from '#server/kube';
import type { AuthorizationAttributes, EffectiveRules, ServerFacilities } from '../kind.ts';

export interface Authorizer {
  authorize(attributes: AuthorizationAttributes): { allowed: boolean; reason: string };
  /** Rules for SelfSubjectRulesReview. */
  rulesFor(user: UserInfo, namespace: string): EffectiveRules;
  /** Forget everything derived from stored roles and bindings; call on every write of the group rbac.authorization.k8s.io. Cheap. */
  invalidate(): void;
}

/** RBAC alone. The server wants `createAuthorizer` of authorizer.ts (system:masters, Node, RBAC). */
export function createRbacAuthorizer(_options: Pick<ServerFacilities, 'list'>): Authorizer {
  throw new Error('not yet');
}
