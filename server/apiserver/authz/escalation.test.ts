import { beforeEach, describe, expect, it } from 'vitest';
import type { ClusterRole, PolicyRule, UnstructuredObject, UserInfo } from '#server/kube';
import { createStoredObjects, type StoredObjects } from '../testing/stored-objects.ts';
import { aggregate } from './aggregate.ts';
import { createAuthorizer } from './authorizer.ts';
import { type EscalationAttributes, rbacEscalationCheck } from './escalation.ts';
import type { Authorizer } from './rbac-authorizer.ts';

const GROUP = 'rbac.authorization.k8s.io';
const API = `${GROUP}/v1`;
const alice: UserInfo = { name: 'alice', groups: ['dev', 'system:authenticated'] };
const pods: PolicyRule = { verbs: ['get', 'list'], apiGroups: [''], resources: ['pods'] };

function role(kind: string, name: string, rules: PolicyRule[], more: object = {}): UnstructuredObject {
  return {
    apiVersion: API,
    kind,
    metadata: { name, ...(kind === 'Role' ? { namespace: 'x' } : {}) },
    rules,
    ...more,
  };
}

function binding(kind: string, name: string, roleKind: string, roleName: string): UnstructuredObject {
  const namespace = kind === 'RoleBinding' ? { namespace: 'x' } : {};
  return {
    apiVersion: API,
    kind,
    metadata: { name, ...namespace },
    subjects: [{ kind: 'User', name: 'alice' }],
    roleRef: { apiGroup: GROUP, kind: roleKind, name: roleName },
  };
}

describe('writing roles and bindings', () => {
  let stored: StoredObjects;
  let authorizer: Authorizer;
  const hold = (...rules: PolicyRule[]): void => {
    stored.put('clusterroles', role('ClusterRole', 'held', rules));
    stored.put('clusterrolebindings', binding('ClusterRoleBinding', 'held', 'ClusterRole', 'held'));
  };
  const check = (object: UnstructuredObject, more: Partial<EscalationAttributes> = {}): string => {
    const server = { ...stored, ...authorizer };
    const kind = { group: GROUP, kind: object.kind, plural: `${object.kind.toLowerCase()}s` };
    const { name, namespace } = object.metadata;
    try {
      rbacEscalationCheck({
        operation: 'CREATE',
        kind,
        namespace,
        name,
        object,
        user: alice,
        server,
        ...more,
      });
      return 'passes';
    } catch (error) {
      return (error as Error).message;
    }
  };
  beforeEach(() => {
    stored = createStoredObjects();
    authorizer = createAuthorizer(stored);
  });

  it('passes what the writer holds', () => {
    hold({ verbs: ['*'], apiGroups: [''], resources: ['*'] });
    expect(check(role('Role', 'r', [pods]))).toBe('passes');
  });

  it('names what the writer does not hold', () => {
    hold({ verbs: ['get'], apiGroups: [''], resources: ['pods'] });
    const wanted = [{ verbs: ['get', 'list', 'create'], apiGroups: [''], resources: ['pods', 'secrets'] }];
    expect(check(role('Role', 'r', wanted))).toBe(
      'roles.rbac.authorization.k8s.io "r" is forbidden: user "alice" (groups=["dev" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n' +
        '{APIGroups:[""], Resources:["pods"], Verbs:["list" "create"]}\n' +
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list" "create"]}',
    );
  });

  it('passes who may escalate the role', () => {
    hold({ verbs: ['escalate'], apiGroups: [GROUP], resources: ['clusterroles'] });
    expect(check(role('ClusterRole', 'r', [pods]))).toBe('passes');
    expect(check(role('Role', 'r', [pods]))).toMatch(/not currently held/);
  });

  it('wants cluster-admin for an aggregationRule', () => {
    const aggregated = role('ClusterRole', 'r', [], { aggregationRule: { clusterRoleSelectors: [] } });
    hold({ verbs: ['*'], apiGroups: ['*'], resources: ['*'] });
    expect(check(aggregated)).toBe('passes');
    hold(pods);
    authorizer.invalidate();
    expect(check(aggregated)).toBe(
      'clusterroles.rbac.authorization.k8s.io "r" is forbidden: must have cluster-admin privileges to use the aggregationRule',
    );
  });

  it('passes a binding to who may bind, and to who holds the role', () => {
    stored.put('clusterroles', role('ClusterRole', 'pods', [pods]));
    const wanted = binding('RoleBinding', 'b', 'ClusterRole', 'pods');
    expect(check(wanted)).toMatch(/^rolebindings.rbac.authorization.k8s.io "b" is forbidden: user "alice"/);
    hold({ verbs: ['bind'], apiGroups: [GROUP], resources: ['clusterroles'], resourceNames: ['pods'] });
    authorizer.invalidate();
    expect(check(wanted)).toBe('passes');
    hold(pods);
    authorizer.invalidate();
    expect(check(wanted)).toBe('passes');
  });

  it('does not find a role that is missing', () => {
    expect(check(binding('ClusterRoleBinding', 'b', 'ClusterRole', 'none'))).toBe(
      'clusterroles.rbac.authorization.k8s.io "none" not found',
    );
  });

  it('lets the garbage collector and system:masters write, and looks at nothing else', () => {
    const old = role('Role', 'r', [pods]);
    const collected = { ...old, metadata: { ...old.metadata, finalizers: ['f'] } };
    expect(check(collected, { operation: 'UPDATE', old })).toBe('passes');
    expect(check(old, { user: { name: 'root', groups: ['system:masters'] } })).toBe('passes');
    expect(check(old, { operation: 'DELETE' })).toBe('passes');
    expect(check({ ...old, kind: 'Pod' }, { kind: { group: '', kind: 'Pod', plural: 'pods' } })).toBe(
      'passes',
    );
  });
});

describe('aggregation', () => {
  const part = (name: string, label: string, ...rules: PolicyRule[]): ClusterRole => ({
    apiVersion: API,
    kind: 'ClusterRole',
    metadata: { name, labels: { [label]: 'true' } },
    rules,
  });
  const nodes: PolicyRule = { verbs: ['get'], apiGroups: [''], resources: ['nodes'] };

  it('gathers matching roles by name, each rule once, never its own', () => {
    const whole: ClusterRole = {
      ...part('whole', 'a', { verbs: ['delete'], apiGroups: [''], resources: ['pods'] }),
      aggregationRule: { clusterRoleSelectors: [{ matchLabels: { a: 'true' } }] },
    };
    const roles = [part('z', 'a', pods, nodes), part('b', 'a', pods), part('c', 'other', nodes), whole];
    expect(aggregate(whole, roles)).toEqual([pods, nodes]);
    expect(aggregate(part('plain', 'a'), roles)).toBeUndefined();
  });
});
