import type { PolicyRule, Subject, UnstructuredObject, UserInfo } from '#server/kube';
import type { ServerFacilities } from '../kind.ts';

export const RBAC_GROUP = 'rbac.authorization.k8s.io';

/** One stored object of the group that was written or removed. */
export interface RbacChange {
  plural: string;
  namespace?: string | undefined;
  name: string;
}

/** A binding's rules as they hold for one user, or why they could not be found. */
export interface Grant {
  /** `ClusterRoleBinding "a" of ClusterRole "b" to Group "c"` */
  source: string;
  rules: readonly PolicyRule[];
  error?: string;
}

/** What RBAC needs of the stored roles and bindings, kept until told of a change. */
export interface RbacIndex {
  /** What applies to `user` in `namespace` (empty: cluster-wide), cluster bindings first. */
  grants(user: UserInfo, namespace: string): readonly Grant[];
  /** Look again: at one object, or at everything. */
  invalidate(change?: RbacChange): void;
}

/** More pending changes than this, and reading everything anew is cheaper. */
const MOST_PENDING_CHANGES = 64;
/** Users × namespaces whose grants are remembered. */
const MOST_REMEMBERED = 1024;

interface Binding {
  name: string;
  namespace: string;
  roleKind: string;
  roleName: string;
  subjects: readonly Subject[];
}

/** Keyed by namespace, then by name; the namespace of what is cluster-scoped is the empty string. */
type Shelf<T> = Map<string, Map<string, T>>;

const PLURALS = ['clusterroles', 'roles', 'clusterrolebindings', 'rolebindings'] as const;

/** Models kubernetes/pkg/registry/rbac/validation (DefaultRuleResolver), with an index per user in front. */
export function createRbacIndex(facilities: Pick<ServerFacilities, 'list' | 'read'>): RbacIndex {
  const rules: Shelf<readonly PolicyRule[]> = new Map();
  const bindings: Shelf<Binding> = new Map();
  const pending = new Map<string, RbacChange>();
  const remembered = new Map<string, readonly Grant[]>();
  let everything = true;

  const put = (
    plural: string,
    namespace: string,
    name: string,
    object: UnstructuredObject | undefined,
  ): void => {
    if (plural.endsWith('bindings')) place(bindings, namespace, name, object && bindingOf(object));
    else
      place(rules, namespace, name, object && internRules((object.rules as PolicyRule[] | undefined) ?? []));
  };
  const catchUp = (): void => {
    if (everything) {
      rules.clear();
      bindings.clear();
      for (const plural of PLURALS) {
        for (const object of facilities.list({ group: RBAC_GROUP, plural })) {
          put(plural, object.metadata.namespace ?? '', object.metadata.name, object);
        }
      }
    } else {
      for (const change of pending.values()) {
        const stored = facilities.read(
          { group: RBAC_GROUP, plural: change.plural },
          change.namespace,
          change.name,
        );
        put(change.plural, change.namespace ?? '', change.name, stored);
      }
    }
    everything = false;
    pending.clear();
    remembered.clear();
  };

  return {
    grants(user, namespace) {
      if (everything || pending.size > 0) catchUp();
      const key = `${namespace}\n${user.name}\n${user.groups.join('\n')}`;
      const known = remembered.get(key);
      if (known) return known;
      const grants = grantsOf(rules, bindings, user, namespace);
      if (remembered.size >= MOST_REMEMBERED) remembered.clear();
      remembered.set(key, grants);
      return grants;
    },
    invalidate(change) {
      if (everything) return;
      if (!change || pending.size >= MOST_PENDING_CHANGES) {
        everything = true;
        pending.clear();
      } else {
        pending.set(`${change.plural}/${change.namespace ?? ''}/${change.name}`, change);
      }
    },
  };
}

type RuleShelf = Shelf<readonly PolicyRule[]>;

function grantsOf(rules: RuleShelf, bindings: Shelf<Binding>, user: UserInfo, namespace: string): Grant[] {
  const grants: Grant[] = [];
  for (const shelf of namespace ? ['', namespace] : ['']) {
    const byName = bindings.get(shelf);
    for (const name of byName ? [...byName.keys()].sort() : []) {
      const binding = byName?.get(name);
      const subject = binding?.subjects.find((candidate) => appliesTo(candidate, user, shelf));
      if (!binding || !subject) continue;
      const found = rulesOf(rules, binding);
      const source = describe(binding, subject);
      grants.push(typeof found === 'string' ? { source, rules: [], error: found } : { source, rules: found });
    }
  }
  return grants;
}

/** The rules a binding gives, or why there are none. */
function rulesOf(
  rules: RuleShelf,
  { roleKind, roleName, namespace }: Binding,
): readonly PolicyRule[] | string {
  if (roleKind === 'ClusterRole') {
    return rules.get('')?.get(roleName) ?? `clusterrole.${RBAC_GROUP} "${roleName}" not found`;
  }
  if (roleKind === 'Role')
    return rules.get(namespace)?.get(roleName) ?? `role.${RBAC_GROUP} "${roleName}" not found`;
  return `unsupported role reference kind: "${roleKind}"`;
}

function place<T>(shelf: Shelf<T>, namespace: string, name: string, value: T | undefined): void {
  let byName = shelf.get(namespace);
  if (value === undefined) {
    byName?.delete(name);
    if (byName?.size === 0) shelf.delete(namespace);
    return;
  }
  if (!byName) {
    byName = new Map<string, T>();
    shelf.set(namespace, byName);
  }
  byName.set(name, value);
}

function bindingOf(object: UnstructuredObject): Binding {
  const roleRef = object.roleRef as { kind?: string; name?: string } | undefined;
  return {
    name: object.metadata.name,
    namespace: object.metadata.namespace ?? '',
    roleKind: roleRef?.kind ?? '',
    roleName: roleRef?.name ?? '',
    subjects: (object.subjects as Subject[] | undefined) ?? [],
  };
}

function appliesTo(subject: Subject, user: UserInfo, bindingNamespace: string): boolean {
  switch (subject.kind) {
    case 'User':
      return subject.name === user.name;
    case 'Group':
      return user.groups.includes(subject.name);
    case 'ServiceAccount': {
      const namespace = subject.namespace || bindingNamespace;
      return namespace !== '' && user.name === `system:serviceaccount:${namespace}:${subject.name}`;
    }
    default:
      return false;
  }
}

function describe(binding: Binding, subject: Subject): string {
  const kind = binding.namespace ? 'RoleBinding' : 'ClusterRoleBinding';
  const name = binding.namespace ? `${binding.name}/${binding.namespace}` : binding.name;
  const whom =
    subject.kind === 'ServiceAccount'
      ? `${subject.name}/${subject.namespace || binding.namespace}`
      : subject.name;
  const quote = JSON.stringify;
  return `${kind} ${quote(name)} of ${binding.roleKind} ${quote(binding.roleName)} to ${subject.kind} ${quote(whom)}`;
}

/**
 * Equal rules are one array for all clusters of the process: a thousand tenants share the default roles, and no
 * decoded role object is kept alive by the index.
 */
const interned = new Map<string, readonly PolicyRule[]>();
const MOST_INTERNED = 2048;

function internRules(rules: readonly PolicyRule[]): readonly PolicyRule[] {
  const key = JSON.stringify(rules);
  const known = interned.get(key);
  if (known) return known;
  if (interned.size >= MOST_INTERNED) interned.clear();
  const kept = JSON.parse(key) as PolicyRule[];
  interned.set(key, kept);
  return kept;
}
