import type { ClusterRole, KubeObject } from '#server/kube';
import { aggregate } from './aggregate.ts';
import { systemBindings, systemRoles } from './bootstrap/cluster-roles.ts';
import { controllerBindings, controllerRoles } from './bootstrap/controller-roles.ts';
import { namespaceRoleBindings, namespaceRoles } from './bootstrap/namespace-roles.ts';
import { userRoles } from './bootstrap/user-roles.ts';

let policy: readonly KubeObject[] | undefined;

/**
 * The default ClusterRoles, ClusterRoleBindings, Roles and RoleBindings of v1.36, without what the server adds to
 * every object (uid, creationTimestamp …). admin, edit and view come with their aggregated rules already gathered.
 * One frozen array for all clusters; the namespaces kube-system and kube-public must exist first.
 * Models kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy.
 */
export function bootstrapRbac(): readonly KubeObject[] {
  policy ??= deepFreeze([
    ...systemRoles,
    ...gathered(userRoles),
    ...controllerRoles,
    ...systemBindings,
    ...controllerBindings,
    ...namespaceRoles,
    ...namespaceRoleBindings,
  ]);
  return policy;
}

/** admin includes edit includes view, so the innermost is gathered first. */
function gathered(roles: readonly ClusterRole[]): ClusterRole[] {
  let current = [...roles];
  for (const name of ['view', 'edit', 'admin']) {
    current = current.map((role) =>
      role.metadata.name === name ? { ...role, rules: aggregate(role, current) ?? [] } : role,
    );
  }
  return current;
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    Object.values(value).forEach(deepFreeze);
  }
  return value;
}
