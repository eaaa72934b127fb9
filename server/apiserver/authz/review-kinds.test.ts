import { beforeEach, describe, expect, it } from 'vitest';
import type { UnstructuredObject, UserInfo } from '#server/kube';
import type { RequestContext } from '../kind.ts';
import { createStoredObjects } from '../testing/stored-objects.ts';
import { createAuthorizer } from './authorizer.ts';
import { reviewKinds } from './review-kinds.ts';

const alice: UserInfo = { name: 'alice', groups: ['dev', 'system:authenticated'], extra: { team: ['x'] } };
const API = 'rbac.authorization.k8s.io/v1';

describe('reviews', () => {
  let context: RequestContext;
  const ask = async (kind: string, spec: object, metadata: object = {}): Promise<Record<string, unknown>> => {
    const definition = reviewKinds.find((one) => one.kind === kind);
    const object = {
      apiVersion: `${definition?.group ?? ''}/v1`,
      kind,
      metadata: { name: '', ...metadata },
      spec,
    } as UnstructuredObject;
    return ((await definition?.virtual?.(context, object))?.status ?? {}) as Record<string, unknown>;
  };

  beforeEach(() => {
    const stored = createStoredObjects();
    const rules = [
      { verbs: ['get'], apiGroups: [''], resources: ['pods'] },
      { verbs: ['get'], nonResourceURLs: ['/healthz'] },
    ];
    stored.put('clusterroles', { apiVersion: API, kind: 'ClusterRole', metadata: { name: 'r' }, rules });
    stored.put('clusterrolebindings', {
      apiVersion: API,
      kind: 'ClusterRoleBinding',
      metadata: { name: 'b' },
      subjects: [{ kind: 'Group', name: 'dev' }],
      roleRef: { kind: 'ClusterRole', name: 'r' },
    });
    const authorizer = createAuthorizer(stored);
    const review = async (token: string, audiences?: readonly string[]): Promise<UserInfo | undefined> =>
      token === 'good' && (audiences ?? []).some((audience) => audience === 'api') ? alice : undefined;
    const server = {
      ...stored,
      ...authorizer,
      tokens: { review, defaultAudiences: ['api'] },
    } as unknown as RequestContext['server'];
    context = { user: alice, verb: 'create', dryRun: false, subresource: undefined, namespace: 'x', server };
  });

  it('answer for others and for oneself', async () => {
    const resourceAttributes = { verb: 'get', resource: 'pods', namespace: 'x' };
    const reason = 'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to Group "dev"';
    expect(await ask('SubjectAccessReview', { user: 'bob', groups: ['dev'], resourceAttributes })).toEqual({
      allowed: true,
      reason,
    });
    expect(await ask('SubjectAccessReview', { user: 'bob', resourceAttributes })).toEqual({ allowed: false });
    expect(await ask('SelfSubjectAccessReview', { resourceAttributes })).toEqual({ allowed: true, reason });
    expect(
      await ask('SelfSubjectAccessReview', { nonResourceAttributes: { path: '/healthz', verb: 'get' } }),
    ).toEqual({ allowed: true, reason });
    expect(await ask('LocalSubjectAccessReview', { groups: ['dev'], resourceAttributes })).toEqual({
      allowed: true,
      reason,
    });
  });

  it.each([
    [
      'SubjectAccessReview',
      { user: 'x' },
      'spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified',
    ],
    [
      'SubjectAccessReview',
      { resourceAttributes: {} },
      'spec.user: Invalid value: "": at least one of user or group must be specified',
    ],
    [
      'LocalSubjectAccessReview',
      { user: 'x', resourceAttributes: { namespace: 'y' } },
      'spec.resourceAttributes.namespace: Invalid value: "y": must match metadata.namespace',
    ],
  ])('%s refuses %j', async (kind, spec, text) => {
    await expect(ask(kind, spec)).rejects.toMatchObject({
      code: 422,
      message: expect.stringContaining(text) as string,
    });
  });

  it('list the rules of a namespace', async () => {
    expect(await ask('SelfSubjectRulesReview', { namespace: 'x' })).toEqual({
      resourceRules: [{ verbs: ['get'], apiGroups: [''], resources: ['pods'] }],
      nonResourceRules: [{ verbs: ['get'], nonResourceURLs: ['/healthz'] }],
      incomplete: false,
    });
    await expect(ask('SelfSubjectRulesReview', {})).rejects.toMatchObject({
      code: 400,
      message: 'no namespace on request',
    });
  });

  it('tell who is asking', async () => {
    const userInfo = { username: 'alice', groups: ['dev', 'system:authenticated'], extra: { team: ['x'] } };
    expect(await ask('SelfSubjectReview', {})).toEqual({ userInfo });
    expect(await ask('TokenReview', { token: 'good' })).toEqual({
      authenticated: true,
      user: userInfo,
      audiences: ['api'],
    });
    expect(await ask('TokenReview', { token: 'good', audiences: ['api', 'other'] })).toMatchObject({
      audiences: ['api'],
    });
    expect(await ask('TokenReview', { token: 'bad' })).toEqual({ user: {}, error: 'invalid bearer token' });
    await expect(ask('TokenReview', {})).rejects.toMatchObject({ code: 400 });
  });
});
