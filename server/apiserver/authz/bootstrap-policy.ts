import type { KubeObject } from '#server/kube';

/** The default ClusterRoles, ClusterRoleBindings, Roles and RoleBindings. Frozen and shared by all clusters. */
export function bootstrapRbac(): readonly KubeObject[] {
  return [];
}
