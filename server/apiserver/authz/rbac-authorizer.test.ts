import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import type { PolicyRule, Subject, UnstructuredObject, UserInfo } from '#server/kube';
import type { AuthorizationAttributes } from '../kind.ts';
import { createStoredObjects, type StoredObjects } from '../testing/stored-objects.ts';
import { authorizationFailure, createAuthorizer } from './authorizer.ts';
import { bootstrapRbac } from './bootstrap-policy.ts';
import type { Authorizer } from './rbac-authorizer.ts';
import { missingRules, ruleAllows } from './rule-matching.ts';

const API = 'rbac.authorization.k8s.io/v1';
const alice: UserInfo = { name: 'alice', groups: ['dev', 'system:authenticated'] };

function ask(
  verb: string,
  plural: string,
  more: Partial<NonNullable<AuthorizationAttributes['resource']>> = {},
  user = alice,
): AuthorizationAttributes {
  return { user, verb, resource: { group: '', plural, ...more } };
}

function clusterRole(name: string, ...rules: PolicyRule[]): UnstructuredObject {
  return { apiVersion: API, kind: 'ClusterRole', metadata: { name }, rules };
}

function binding(name: string, role: string, subject: Subject, namespace?: string): UnstructuredObject {
  const kind = namespace ? 'RoleBinding' : 'ClusterRoleBinding';
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role };
  return {
    apiVersion: API,
    kind,
    metadata: { name, ...(namespace ? { namespace } : {}) },
    subjects: [subject],
    roleRef,
  };
}

const reader: PolicyRule = { verbs: ['get', 'list'], apiGroups: [''], resources: ['pods', 'pods/log'] };

describe('one rule', () => {
  const star: PolicyRule = { verbs: ['*'], apiGroups: ['*'], resources: ['*'] };
  it.each<[string, PolicyRule, AuthorizationAttributes, boolean]>([
    ['the resource', reader, ask('get', 'pods'), true],
    ['another verb', reader, ask('delete', 'pods'), false],
    ['a listed subresource', reader, ask('get', 'pods', { subresource: 'log' }), true],
    ['a subresource that is not listed', reader, ask('get', 'pods', { subresource: 'exec' }), false],
    ['another group', reader, ask('get', 'pods', { group: 'metrics.k8s.io' }), false],
    ['a star', star, ask('delete', 'widgets', { group: 'example.com', subresource: 'scale' }), true],
    [
      '*/scale',
      { ...star, resources: ['*/scale'] },
      ask('get', 'deployments', { group: 'apps', subresource: 'scale' }),
      true,
    ],
    ['*/scale without a subresource', { ...star, resources: ['*/scale'] }, ask('get', 'deployments'), false],
    [
      'pods/* is no pattern',
      { ...star, resources: ['pods/*'] },
      ask('get', 'pods', { subresource: 'log' }),
      false,
    ],
    ['the named object', { ...reader, resourceNames: ['a'] }, ask('get', 'pods', { name: 'a' }), true],
    ['another object', { ...reader, resourceNames: ['a'] }, ask('get', 'pods', { name: 'b' }), false],
    [
      'no object although names are asked for',
      { ...reader, resourceNames: ['a'] },
      ask('list', 'pods'),
      false,
    ],
    [
      'a path',
      { verbs: ['get'], nonResourceURLs: ['/healthz'] },
      { user: alice, verb: 'get', path: '/healthz' },
      true,
    ],
    [
      'a path below',
      { verbs: ['get'], nonResourceURLs: ['/apis/*'] },
      { user: alice, verb: 'get', path: '/apis/apps' },
      true,
    ],
    [
      'the path itself without its slash',
      { verbs: ['get'], nonResourceURLs: ['/apis/*'] },
      { user: alice, verb: 'get', path: '/apis' },
      false,
    ],
    ['any path', { verbs: ['*'], nonResourceURLs: ['*'] }, { user: alice, verb: 'get', path: '/x' }, true],
    ['a path, by a resource rule', star, { user: alice, verb: 'get', path: '/x' }, false],
  ])('%s', (_, rule, attributes, expected) => {
    expect(ruleAllows(rule, attributes)).toBe(expected);
  });

  const some = (values: string[]): fc.Arbitrary<string[]> =>
    fc.uniqueArray(fc.constantFrom(...values), { minLength: 1, maxLength: 3 });
  const ruleOf = fc.record({
    verbs: some(['*', 'get', 'list', 'create']),
    apiGroups: some(['*', '', 'apps']),
    resources: some(['*', 'pods', 'pods/log', '*/log', 'nodes', 'pods/*']),
    resourceNames: fc.oneof(fc.constant<string[]>([]), some(['a', 'b'])),
  });
  const askOf = fc.record({
    verb: fc.constantFrom('get', 'list', 'create'),
    group: fc.constantFrom('', 'apps'),
    plural: fc.constantFrom('pods', 'nodes'),
    subresource: fc.constantFrom('', 'log'),
    name: fc.constantFrom('', 'a', 'b'),
  });

  it('agrees with a naive model that spells every pattern out', () => {
    fc.assert(
      fc.property(ruleOf, askOf, (rule, asked) => {
        const patterns = asked.subresource
          ? ['*', `${asked.plural}/${asked.subresource}`, `*/${asked.subresource}`]
          : ['*', asked.plural];
        const expected =
          ['*', asked.verb].some((verb) => rule.verbs.includes(verb)) &&
          ['*', asked.group].some((group) => rule.apiGroups.includes(group)) &&
          patterns.some((pattern) => rule.resources.includes(pattern)) &&
          (rule.resourceNames.length === 0 || rule.resourceNames.includes(asked.name));
        const { verb, ...resource } = asked;
        expect(ruleAllows(rule, { user: alice, verb, resource })).toBe(expected);
      }),
    );
  });

  it('what covers a rule allows everything that rule allows', () => {
    fc.assert(
      fc.property(
        fc.array(ruleOf, { maxLength: 4 }),
        ruleOf,
        askOf,
        (held, wanted, { verb, ...resource }) => {
          const attributes = { user: alice, verb, resource };
          fc.pre(missingRules(held, [wanted]).length === 0 && ruleAllows(wanted, attributes));
          expect(held.some((rule) => ruleAllows(rule, attributes))).toBe(true);
        },
      ),
      { numRuns: 200 },
    );
  });
});

describe('the authorizer', () => {
  let stored: StoredObjects;
  let authorizer: Authorizer;
  beforeEach(() => {
    stored = createStoredObjects();
    authorizer = createAuthorizer(stored);
    stored.put('clusterroles', clusterRole('reader', reader));
  });

  it('says which binding allowed it', () => {
    stored.put('clusterrolebindings', binding('devs', 'reader', { kind: 'Group', name: 'dev' }));
    expect(authorizer.authorize(ask('get', 'pods', { namespace: 'x' }))).toEqual({
      allowed: true,
      reason: 'RBAC: allowed by ClusterRoleBinding "devs" of ClusterRole "reader" to Group "dev"',
    });
  });

  it('keeps a RoleBinding to its namespace, and completes a service account with it', () => {
    const builder: UserInfo = {
      name: 'system:serviceaccount:team:builder',
      groups: ['system:serviceaccounts'],
    };
    stored.put(
      'rolebindings',
      binding('build', 'reader', { kind: 'ServiceAccount', name: 'builder' }, 'team'),
    );
    expect(authorizer.authorize(ask('get', 'pods', { namespace: 'team' }, builder))).toEqual({
      allowed: true,
      reason:
        'RBAC: allowed by RoleBinding "build/team" of ClusterRole "reader" to ServiceAccount "builder/team"',
    });
    expect(authorizer.authorize(ask('get', 'pods', { namespace: 'other' }, builder))).toEqual({
      allowed: false,
      reason: '',
    });
    expect(authorizer.authorize(ask('list', 'pods', {}, builder)).allowed).toBe(false);
  });

  it('names roles that are missing', () => {
    stored.put('clusterrolebindings', binding('a', 'gone', { kind: 'User', name: 'alice' }));
    stored.put('rolebindings', binding('b', 'lost', { kind: 'User', name: 'alice' }, 'x'));
    const asked = ask('get', 'pods', { namespace: 'x', name: 'p' });
    const { allowed, reason } = authorizer.authorize(asked);
    expect([allowed, reason]).toEqual([
      false,
      'RBAC: [clusterrole.rbac.authorization.k8s.io "gone" not found, clusterrole.rbac.authorization.k8s.io "lost" not found]',
    ]);
    expect(authorizationFailure(asked, reason).message).toBe(
      `pods "p" is forbidden: User "alice" cannot get resource "pods" in API group "" in the namespace "x": ${reason}`,
    );
  });

  it('words refusals of cluster-wide and of path requests', () => {
    expect(
      authorizationFailure(ask('list', 'deployments', { group: 'apps', subresource: 'scale' }), '').message,
    ).toBe(
      'deployments.apps is forbidden: User "alice" cannot list resource "deployments/scale" in API group "apps" at the cluster scope',
    );
    expect(authorizationFailure({ user: alice, verb: 'get', path: '/metrics' }, '').message).toBe(
      'forbidden: User "alice" cannot get path "/metrics"',
    );
  });

  it('sees a change once told of it', () => {
    const asked = ask('get', 'pods', { namespace: 'x' });
    expect(authorizer.authorize(asked).allowed).toBe(false);
    stored.put('clusterrolebindings', binding('devs', 'reader', { kind: 'User', name: 'alice' }));
    authorizer.invalidate({ plural: 'clusterrolebindings', name: 'devs' });
    expect(authorizer.authorize(asked).allowed).toBe(true);
    stored.put('clusterroles', clusterRole('reader'));
    authorizer.invalidate({ plural: 'clusterroles', name: 'reader' });
    expect(authorizer.authorize(asked).allowed).toBe(false);
    stored.put('clusterroles', clusterRole('reader', reader));
    authorizer.invalidate();
    expect(authorizer.authorize(asked).allowed).toBe(true);
    stored.remove('clusterrolebindings', undefined, 'devs');
    authorizer.invalidate({ plural: 'clusterrolebindings', name: 'devs' });
    expect(authorizer.authorize(asked).allowed).toBe(false);
  });

  it('lets system:masters do anything', () => {
    const root: UserInfo = { name: 'root', groups: ['system:masters'] };
    expect(authorizer.authorize({ user: root, verb: 'delete', path: '/everything' })).toEqual({
      allowed: true,
      reason: '',
    });
  });

  it('is quick once it knows a user', () => {
    for (const object of bootstrapRbac())
      stored.put(`${object.kind.toLowerCase()}s`, object as UnstructuredObject);
    const asked = ask('create', 'pods', { namespace: 'x' });
    for (let i = 0; i < 2000; i++) authorizer.authorize(asked);
    const rounds = 20_000;
    const start = process.hrtime.bigint();
    for (let i = 0; i < rounds; i++) authorizer.authorize(asked);
    expect(Number(process.hrtime.bigint() - start) / 1000 / rounds).toBeLessThan(10);
  });
});

describe('the default policy', () => {
  let authorizer: Authorizer;
  const may = (user: UserInfo, attributes: Omit<AuthorizationAttributes, 'user'>): boolean =>
    authorizer.authorize({ user, ...attributes }).allowed;
  beforeEach(() => {
    const stored = createStoredObjects();
    for (const object of bootstrapRbac())
      stored.put(`${object.kind.toLowerCase()}s`, object as UnstructuredObject);
    for (const role of ['admin', 'edit', 'view'])
      stored.put('rolebindings', binding(role, role, { kind: 'User', name: role }, 'team'));
    authorizer = createAuthorizer(stored);
  });

  it('has what upstream has, marked as defaults', () => {
    const names = bootstrapRbac().map(
      (object) => `${object.kind}/${object.metadata.namespace ?? ''}/${object.metadata.name}`,
    );
    expect(new Set(names).size).toBe(names.length);
    expect(names).toEqual(
      expect.arrayContaining([
        'ClusterRole//cluster-admin',
        'ClusterRole//system:node',
        'ClusterRoleBinding//system:node',
        'ClusterRole//system:controller:node-controller',
        'ClusterRoleBinding//system:controller:node-controller',
        'Role/kube-system/system::leader-locking-kube-scheduler',
        'RoleBinding/kube-public/system:controller:bootstrap-signer',
      ]),
    );
    for (const object of bootstrapRbac()) {
      expect(object.metadata.labels?.['kubernetes.io/bootstrapping']).toBe('rbac-defaults');
      expect(object.metadata.annotations).toEqual({ 'rbac.authorization.kubernetes.io/autoupdate': 'true' });
    }
  });

  it.each([
    ['view', 'get', 'pods', '', true],
    ['view', 'get', 'secrets', '', false],
    ['view', 'create', 'pods', '', false],
    ['edit', 'get', 'secrets', '', true],
    ['edit', 'patch', 'deployments', 'apps', true],
    ['edit', 'list', 'endpointslices', 'discovery.k8s.io', true],
    ['edit', 'create', 'rolebindings', 'rbac.authorization.k8s.io', false],
    ['edit', 'update', 'resourcequotas', '', false],
    ['admin', 'create', 'rolebindings', 'rbac.authorization.k8s.io', true],
    ['admin', 'get', 'pods', '', true],
    ['admin', 'create', 'resourcequotas', '', false],
  ])('%s may %s %s.%s: %s', (name, verb, plural, group, expected) => {
    expect(may({ name, groups: [] }, { verb, resource: { group, plural, namespace: 'team' } })).toBe(
      expected,
    );
  });

  it('shows anybody the version, and discovery to the authenticated', () => {
    const nobody: UserInfo = { name: 'system:anonymous', groups: ['system:unauthenticated'] };
    expect([
      may(nobody, { verb: 'get', path: '/version' }),
      may(nobody, { verb: 'get', path: '/apis' }),
    ]).toEqual([true, false]);
    expect(may(alice, { verb: 'get', path: '/openapi/v3/api/v1' })).toBe(true);
  });
});
