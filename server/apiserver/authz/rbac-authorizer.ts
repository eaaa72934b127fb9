import type { NonResourceRule, PolicyRule, ResourceRule, UserInfo } from '#server/kube';
import type { AuthorizationAttributes, EffectiveRules, ServerFacilities } from '../kind.ts';
import { createRbacIndex, type Grant, type RbacChange } from './rbac-index.ts';
import { ruleAllows } from './rule-matching.ts';

export interface Authorizer {
  /** `reason`: which binding allowed it, or what went wrong while looking; often empty when refused. Never throws. */
  authorize(attributes: AuthorizationAttributes): { allowed: boolean; reason: string };
  /** What SelfSubjectRulesReview lists: rules that hold for `user` in `namespace` (empty: cluster-wide ones only). */
  rulesFor(user: UserInfo, namespace: string): EffectiveRules;
  /**
   * To be called after every visible write of group rbac.authorization.k8s.io, with what was written (cheap: that one
   * object is read again when next needed) or without (everything is).
   */
  invalidate(change?: RbacChange): void;
}

/**
 * RBAC alone; the server wants `createAuthorizer` of authorizer.ts, which puts system:masters and Node before it.
 * Models kubernetes/plugin/pkg/auth/authorizer/rbac.
 */
export function createRbacAuthorizer(facilities: Pick<ServerFacilities, 'list' | 'read'>): Authorizer {
  const index = createRbacIndex(facilities);
  return {
    authorize(attributes) {
      const grants = index.grants(attributes.user, attributes.resource?.namespace ?? '');
      for (const grant of grants) {
        if (grant.rules.some((rule) => ruleAllows(rule, attributes))) {
          return { allowed: true, reason: `RBAC: allowed by ${grant.source}` };
        }
      }
      const error = aggregateErrors(grants);
      return { allowed: false, reason: error ? `RBAC: ${error}` : '' };
    },
    rulesFor(user, namespace) {
      const grants = index.grants(user, namespace);
      const rules = grants.flatMap((grant) => grant.rules);
      const error = aggregateErrors(grants);
      return {
        resourceRules: rules.filter((rule) => rule.resources?.length).map(resourceRule),
        nonResourceRules: rules.filter((rule) => rule.nonResourceURLs?.length).map(nonResourceRule),
        incomplete: false,
        ...(error ? { evaluationError: error } : {}),
      };
    },
    invalidate: (change) => index.invalidate(change),
  };
}

/** Worded as utilerrors.NewAggregate words several. */
function aggregateErrors(grants: readonly Grant[]): string {
  const errors = [...new Set(grants.flatMap((grant) => grant.error ?? []))];
  return errors.length > 1 ? `[${errors.join(', ')}]` : (errors[0] ?? '');
}

function resourceRule(rule: PolicyRule): ResourceRule {
  return {
    verbs: rule.verbs,
    ...(rule.apiGroups ? { apiGroups: rule.apiGroups } : {}),
    ...(rule.resources ? { resources: rule.resources } : {}),
    ...(rule.resourceNames ? { resourceNames: rule.resourceNames } : {}),
  };
}

function nonResourceRule(rule: PolicyRule): NonResourceRule {
  return { verbs: rule.verbs, ...(rule.nonResourceURLs ? { nonResourceURLs: rule.nonResourceURLs } : {}) };
}
