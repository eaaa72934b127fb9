import { type ClusterRole, matchesLabelSelector, type PolicyRule } from '#server/kube';

/**
 * The rules an aggregated ClusterRole should have: those of all other roles its selectors match, in order of their
 * names, each rule once. Undefined when the role has no aggregationRule. Pure.
 * Models kubernetes/pkg/controller/clusterroleaggregation.
 */
export function aggregate(role: ClusterRole, allRoles: readonly ClusterRole[]): PolicyRule[] | undefined {
  if (!role.aggregationRule) return undefined;
  const byName = [...allRoles].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  const rules = new Map<string, PolicyRule>();
  for (const selector of role.aggregationRule.clusterRoleSelectors ?? []) {
    for (const other of byName) {
      if (
        other.metadata.name === role.metadata.name ||
        !matchesLabelSelector(selector, other.metadata.labels)
      )
        continue;
      for (const rule of other.rules ?? []) {
        const key = JSON.stringify([
          rule.verbs,
          rule.apiGroups,
          rule.resources,
          rule.resourceNames,
          rule.nonResourceURLs,
        ]);
        if (!rules.has(key)) rules.set(key, rule);
      }
    }
  }
  return [...rules.values()];
}
