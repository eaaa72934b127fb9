import type { Controller, ControllerContext, WorkQueue } from '#server/client';
import { createLoop, type Follower, follow } from '#server/controllers/machinery';
import {
  type ClusterRole,
  clusterRoles,
  deepEqual,
  isNotFound,
  labelSelectorText,
  type PolicyRule,
} from '#server/kube';

const FIELD_MANAGER = 'clusterrole-aggregation-controller';

export function createClusterRoleAggregationController(context: ControllerContext): Controller {
  const { client } = context;
  /** Names of the roles that aggregate. */
  const aggregating = new Set<string>();
  let follower: Follower | undefined;

  const rulesFor = async (role: ClusterRole): Promise<PolicyRule[]> => {
    const rules: PolicyRule[] = [];
    for (const selector of role.aggregationRule?.clusterRoleSelectors ?? []) {
      const { items } = await client.list(clusterRoles, { labelSelector: labelSelectorText(selector) });
      for (const part of [...items].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))) {
        if (part.metadata.name === role.metadata.name) continue;
        for (const rule of part.rules ?? [])
          if (!rules.some((known) => deepEqual(known, rule))) rules.push(rule);
      }
    }
    return rules;
  };
  const reconcile = async (name: string): Promise<void> => {
    try {
      const role = await client.get(clusterRoles, { name });
      if (!role.aggregationRule) return;
      const rules = await rulesFor(role);
      if (deepEqual(rules, role.rules ?? [])) return;
      const body = {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRole',
        metadata: { name },
        rules,
      };
      await client.patch(
        clusterRoles,
        { name },
        { type: 'apply', body, force: true },
        { fieldManager: FIELD_MANAGER },
      );
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  };
  const observe = (role: ClusterRole): void => {
    if (role.aggregationRule) aggregating.add(role.metadata.name);
    else aggregating.delete(role.metadata.name);
  };
  const onReady = (queue: WorkQueue): void => {
    const enqueueAll = (): void => {
      for (const name of aggregating) queue.add(name);
    };
    follower = follow(context, clusterRoles, {
      onList(_, roles) {
        aggregating.clear();
        roles.forEach(observe);
        enqueueAll();
      },
      onChange(_, role) {
        observe(role);
        enqueueAll();
      },
      onGone(_, role) {
        aggregating.delete(role.metadata.name);
        enqueueAll();
      },
    });
  };
  return createLoop({
    name: 'cluster-role-aggregation',
    context,
    watch: () => undefined,
    reconcile,
    onReady,
    onStop: () => follower?.stop(),
  });
}
