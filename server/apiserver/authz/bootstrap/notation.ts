import type {
  ClusterRole,
  ClusterRoleBinding,
  KubeObject,
  PolicyRule,
  Role,
  RoleBinding,
  Subject,
} from '#server/kube';

/** How the default policy is written down: words separated by spaces; the core group is called `core`. */
const API_VERSION = 'rbac.authorization.k8s.io/v1';
const RBAC = 'rbac.authorization.k8s.io';

export const READ = 'get list watch';
export const WRITE = 'create update patch delete deletecollection';
export const READ_WRITE = `${READ} ${WRITE}`;

function words(text: string): string[] {
  return text.split(' ').sort();
}

/** A rule about resources; `names` restricts it to objects of these names. */
export function rule(verbs: string, groups: string, resources: string, names?: string): PolicyRule {
  return {
    verbs: words(verbs),
    apiGroups: groups.split(' ').map((group) => (group === 'core' ? '' : group)),
    resources: words(resources),
    ...(names ? { resourceNames: words(names) } : {}),
  };
}

/** A rule about paths that are no resources. */
export function urls(verbs: string, paths: string): PolicyRule {
  return { verbs: words(verbs), nonResourceURLs: words(paths) };
}

/** Writing events, which nearly every component does. */
export const EVENTS = rule('create update patch', 'core events.k8s.io', 'events');

function metadata(
  name: string,
  namespace: string | undefined,
  labels: Record<string, string>,
): KubeObject['metadata'] {
  return {
    name,
    ...(namespace ? { namespace } : {}),
    labels: { 'kubernetes.io/bootstrapping': 'rbac-defaults', ...labels },
    annotations: { 'rbac.authorization.kubernetes.io/autoupdate': 'true' },
  };
}

export function clusterRole(
  name: string,
  rules: PolicyRule[],
  labels: Record<string, string> = {},
): ClusterRole {
  return { apiVersion: API_VERSION, kind: 'ClusterRole', metadata: metadata(name, undefined, labels), rules };
}

/** A ClusterRole that gathers the rules of those carrying the label `aggregate-to-<what>`. */
export function aggregatedRole(name: string, labels: Record<string, string>): ClusterRole {
  const matchLabels = { [`rbac.authorization.k8s.io/aggregate-to-${name}`]: 'true' };
  return { ...clusterRole(name, [], labels), aggregationRule: { clusterRoleSelectors: [{ matchLabels }] } };
}

export function aggregatesTo(name: string): Record<string, string> {
  return { [`rbac.authorization.k8s.io/aggregate-to-${name}`]: 'true' };
}

export function role(namespace: string, name: string, rules: PolicyRule[]): Role {
  return { apiVersion: API_VERSION, kind: 'Role', metadata: metadata(name, namespace, {}), rules };
}

export function group(name: string): Subject {
  return { kind: 'Group', apiGroup: RBAC, name };
}

export function user(name: string): Subject {
  return { kind: 'User', apiGroup: RBAC, name };
}

export function serviceAccount(name: string): Subject {
  return { kind: 'ServiceAccount', namespace: 'kube-system', name };
}

/** Binds the ClusterRole of the same name. Without subjects the binding exists and grants nothing. */
export function clusterBinding(name: string, ...subjects: Subject[]): ClusterRoleBinding {
  return {
    apiVersion: API_VERSION,
    kind: 'ClusterRoleBinding',
    metadata: metadata(name, undefined, {}),
    ...(subjects.length ? { subjects } : {}),
    roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name },
  };
}

/** Binds a Role of the same namespace, by default that of the same name. */
export function roleBinding(
  namespace: string,
  name: string,
  subjects: Subject[],
  roleName = name,
): RoleBinding {
  return {
    apiVersion: API_VERSION,
    kind: 'RoleBinding',
    metadata: metadata(name, namespace, {}),
    subjects,
    roleRef: { apiGroup: RBAC, kind: 'Role', name: roleName },
  };
}
