import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createManualClock } from '#server/base';
import { configMaps, deployments, namespaces, pods, StatusError, serviceAccounts } from '#server/kube';
import { allowPods, configMap, pod } from './testing/objects.ts';
import { ADMIN, startTestServer, type TestServer } from './testing/server.ts';

let t: TestServer;

beforeEach(async () => {
  t = await startTestServer();
});

afterEach(async () => {
  await t.close();
});

async function refusal(
  promise: Promise<unknown>,
): Promise<{ code: number; reason: string; message: string }> {
  const error: unknown = await promise.then(
    () => undefined,
    (caught: unknown) => caught,
  );
  if (!(error instanceof StatusError)) throw new TypeError(`not refused: ${String(error)}`);
  return { code: error.code, reason: error.reason, message: error.message };
}

const ref = (name: string) => ({ namespace: 'default', name });

describe('create', () => {
  it('fills system fields and records who owns what', async () => {
    const made = await t.admin.create(configMaps, configMap('a', { x: '1' }));
    expect(made).toEqual({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: {
        name: 'a',
        namespace: 'default',
        uid: expect.stringMatching(/^[0-9a-f-]{36}$/),
        resourceVersion: String(t.store.revision),
        creationTimestamp: expect.stringMatching(/Z$/),
        managedFields: [
          {
            manager: 'test',
            operation: 'Update',
            apiVersion: 'v1',
            time: made.metadata.creationTimestamp,
            fieldsType: 'FieldsV1',
            fieldsV1: { 'f:data': { '.': {}, 'f:x': {} } },
          },
        ],
      },
      data: { x: '1' },
    });
    expect(Object.isFrozen(made.metadata)).toBe(true);
    expect(await t.admin.get(configMaps, ref('a'))).toBe(made);
  });

  it('refuses a second one of the name', async () => {
    await t.admin.create(configMaps, configMap('a'));
    expect(await refusal(t.admin.create(configMaps, configMap('a')))).toEqual({
      code: 409,
      reason: 'AlreadyExists',
      message: 'configmaps "a" already exists',
    });
  });

  it('makes up names from generateName', async () => {
    const made = await t.admin.create(configMaps, {
      metadata: { generateName: 'web-', namespace: 'default' },
    });
    expect(made.metadata.name).toMatch(/^web-[a-z0-9]{5}$/);
    expect(made.metadata.generateName).toBe('web-');
  });

  it('tells every fault of the metadata', async () => {
    const bad = configMap('A_b', {}, { 'x y': 'z' });
    expect(await refusal(t.admin.create(configMaps, bad))).toMatchObject({
      code: 422,
      message: expect.stringContaining('metadata.name: Invalid value: "A_b": a lowercase RFC 1123 subdomain'),
    });
  });

  it('stores nothing on a dry run, and gives the addresses back', async () => {
    const before = t.store.revision;
    const made = await t.admin.create(configMaps, configMap('dry'), { dryRun: true });
    expect(made.metadata.uid).toBeDefined();
    expect(t.store.revision).toBe(before);
    expect(await refusal(t.admin.get(configMaps, ref('dry')))).toMatchObject({ code: 404 });
  });

  it('ignores a status that is sent along', async () => {
    const made = await t.admin.create(namespaces, {
      metadata: { name: 'n' },
      spec: {},
      status: { phase: 'Odd' },
    });
    expect(made.status).toEqual({ phase: 'Active' });
  });
});

describe('update', () => {
  it('wants the newest resourceVersion when one is named', async () => {
    const first = await t.admin.create(configMaps, configMap('a', { x: '1' }));
    await t.admin.update(configMaps, { ...first, data: { x: '2' } });
    expect(await refusal(t.admin.update(configMaps, { ...first, data: { x: '3' } }))).toEqual({
      code: 409,
      reason: 'Conflict',
      message:
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again',
    });
  });

  it('keeps the resourceVersion of a write that changes nothing', async () => {
    const first = await t.admin.create(configMaps, configMap('a', { x: '1' }));
    expect(await t.admin.update(configMaps, first)).toBe(first);
    expect(await t.admin.patch(configMaps, ref('a'), { type: 'merge', body: { data: { x: '1' } } })).toBe(
      first,
    );
  });

  it('carries over what no update changes', async () => {
    const first = await t.admin.create(configMaps, configMap('a', { x: '1' }));
    const next = await t.admin.update(configMaps, configMap('a', { x: '2' }));
    expect(next.metadata).toMatchObject({
      uid: first.metadata.uid,
      creationTimestamp: first.metadata.creationTimestamp,
    });
  });

  it('refuses an object that was replaced by another of the name', async () => {
    const first = await t.admin.create(configMaps, configMap('a'));
    const other = { ...first, metadata: { ...first.metadata, uid: 'other', resourceVersion: '' } };
    expect(await refusal(t.admin.update(configMaps, other))).toMatchObject({
      code: 409,
      message: expect.stringContaining(
        `Precondition failed: UID in precondition: other, UID in object meta: ${first.metadata.uid}`,
      ),
    });
  });

  it('separates status from the rest, and counts generations of the rest only', async () => {
    const made = await t.admin.create(deployments, {
      metadata: { name: 'd', namespace: 'default' },
      spec: {
        selector: { matchLabels: { a: 'b' } },
        template: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
      },
    } as never);
    expect(made.metadata.generation).toBe(1);
    const status = await t.admin.patch(
      deployments,
      ref('d'),
      { type: 'merge', body: { spec: { replicas: 7 }, status: { observedGeneration: 1 } } },
      { subresource: 'status' },
    );
    expect([status.spec?.replicas, status.status?.observedGeneration, status.metadata.generation]).toEqual([
      1, 1, 1,
    ]);
    const spec = await t.admin.patch(deployments, ref('d'), {
      type: 'merge',
      body: { spec: { replicas: 7 }, status: { observedGeneration: 9 } },
    });
    expect([spec.spec?.replicas, spec.status?.observedGeneration, spec.metadata.generation]).toEqual([
      7, 1, 2,
    ]);
  });
});

describe('patch', () => {
  it('is applied again when another write came first', async () => {
    await t.admin.create(configMaps, configMap('a', {}));
    const names = Array.from({ length: 5 }, (_, i) => `k${i}`);
    await Promise.all(
      names.map((name) =>
        t.admin.patch(configMaps, ref('a'), { type: 'merge', body: { data: { [name]: '1' } } }),
      ),
    );
    const { data } = await t.admin.get(configMaps, ref('a'));
    expect(Object.keys(data ?? {}).sort()).toEqual(names);
  });

  it('of the wrong type is refused in the words of the converter, or of the decoder', async () => {
    await t.admin.create(configMaps, configMap('a', {}));
    const patched = (type: 'strategic' | 'merge', body: object) =>
      refusal(t.admin.patch(configMaps, ref('a'), { type, body }));
    expect(await patched('strategic', { data: { x: 1 } })).toMatchObject({
      code: 422,
      message: ' "" is invalid: patch: Invalid value: "map[data:map[x:1]]": cannot convert int64 to string',
    });
    expect(await patched('strategic', { data: { x: true } })).toMatchObject({
      message: ' "" is invalid: patch: Invalid value: "map[data:map[x:true]]": unrecognized type: string',
    });
    expect(await patched('strategic', { data: [] })).toMatchObject({
      message: ' "" is invalid: patch: Invalid value: "map[data:[]]": cannot restore map from slice',
    });
    expect(await patched('merge', { data: { x: 1 } })).toMatchObject({
      code: 422,
      message: expect.stringMatching(
        /^ "" is invalid: patch: Invalid value: ".*": json: cannot unmarshal number into Go struct field ConfigMap.data of type string$/,
      ),
    });
  });

  it('applied with fields nobody knows is refused by the type, whatever fieldValidation says', async () => {
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, foo: 1 };
    expect(
      await refusal(t.admin.patch(configMaps, ref('a'), { type: 'apply', body }, { fieldManager: 'one' })),
    ).toMatchObject({
      code: 500,
      message:
        'failed to create typed patch object (default/a; /v1, Kind=ConfigMap): .foo: field not declared in schema',
    });
  });

  it('applies: creates, shares fields, refuses another manager, and takes over by force', async () => {
    const applied = (data: Record<string, string>) => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'a' },
      data,
    });
    const apply = (manager: string, data: Record<string, string>, force = false) =>
      t.admin.patch(
        configMaps,
        ref('a'),
        { type: 'apply', body: applied(data), force },
        { fieldManager: manager },
      );
    await apply('one', { x: '1' });
    await apply('two', { y: '2' });
    expect(await refusal(apply('two', { x: '2', y: '2' }))).toMatchObject({
      code: 409,
      message: 'Apply failed with 1 conflict: conflict with "one": .data.x',
    });
    const taken = await apply('two', { x: '2', y: '2' }, true);
    expect(taken.data).toEqual({ x: '2', y: '2' });
    const left = await apply('two', { y: '2' });
    expect(left.data).toEqual({ y: '2' });
  });

  it('changes the scale through its own kind', async () => {
    await t.admin.create(deployments, {
      metadata: { name: 'd', namespace: 'default' },
      spec: {
        selector: { matchLabels: { a: 'b' } },
        template: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
      },
    } as never);
    const scale = await t.admin.patch(
      deployments,
      ref('d'),
      { type: 'merge', body: { spec: { replicas: 3 } } },
      { subresource: 'scale' },
    );
    expect(scale).toMatchObject({
      kind: 'Scale',
      apiVersion: 'autoscaling/v1',
      spec: { replicas: 3 },
      status: { replicas: 0, selector: 'a=b' },
    });
    expect((await t.admin.get(deployments, ref('d'))).spec?.replicas).toBe(3);
  });
});

describe('delete', () => {
  const raw = (verb: 'delete', name: string, body?: object) =>
    t.server.backend.request({
      user: ADMIN,
      userAgent: 'test',
      verb,
      resource: { group: '', version: 'v1', plural: 'configmaps' },
      namespace: 'default',
      name,
      query: {},
      body,
    });

  it('answers with what was deleted', async () => {
    const made = await t.admin.create(configMaps, configMap('a'));
    expect(await raw('delete', 'a')).toEqual({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Success',
      details: { name: 'a', kind: 'configmaps', uid: made.metadata.uid },
    });
    expect(await refusal(raw('delete', 'a'))).toMatchObject({
      code: 404,
      message: 'configmaps "a" not found',
    });
  });

  it('checks preconditions', async () => {
    await t.admin.create(configMaps, configMap('a'));
    expect(await refusal(raw('delete', 'a', { preconditions: { uid: 'x' } }))).toMatchObject({
      code: 409,
      message: expect.stringContaining('the UID in the precondition (x) does not match the UID in record'),
    });
  });

  it('waits for finalizers, and goes with the last one', async () => {
    const made = await t.admin.create(configMaps, {
      metadata: { name: 'a', namespace: 'default', finalizers: ['x.io/y'] },
    });
    await t.admin.delete(configMaps, ref('a'));
    const marked = await t.admin.get(configMaps, ref('a'));
    expect(marked.metadata.deletionTimestamp).toBeDefined();
    expect(marked.metadata.deletionGracePeriodSeconds).toBe(0);
    const added = { ...marked, metadata: { ...marked.metadata, finalizers: ['x.io/y', 'x.io/z'] } };
    expect(await refusal(t.admin.update(configMaps, added))).toMatchObject({
      message: expect.stringContaining(
        'no new finalizers can be added if the object is being deleted, found new finalizers []string{"x.io/z"}',
      ),
    });
    await t.admin.patch(configMaps, ref('a'), { type: 'merge', body: { metadata: { finalizers: null } } });
    expect(await refusal(t.admin.get(configMaps, ref('a')))).toMatchObject({ code: 404 });
    expect(made.metadata.deletionTimestamp).toBeUndefined();
  });

  it('leaves propagation to the garbage collector through finalizers', async () => {
    await t.admin.create(configMaps, configMap('a'));
    await t.admin.delete(configMaps, ref('a'), { propagationPolicy: 'Foreground' });
    expect((await t.admin.get(configMaps, ref('a'))).metadata.finalizers).toEqual(['foregroundDeletion']);
    await t.admin.delete(configMaps, ref('a'), { propagationPolicy: 'Orphan' });
    expect((await t.admin.get(configMaps, ref('a'))).metadata.finalizers).toEqual(['orphan']);
  });

  it('deletes a collection by selector', async () => {
    await t.admin.create(configMaps, configMap('a', {}, { go: 'yes' }));
    await t.admin.create(configMaps, configMap('b', {}, { go: 'no' }));
    await t.admin.deleteCollection(configMaps, { namespace: 'default', labelSelector: 'go=yes' });
    expect(
      (await t.admin.list(configMaps, { namespace: 'default' })).items.map((one) => one.metadata.name),
    ).toEqual(['b']);
  });

  it('keeps a namespace until its finalizers are gone', async () => {
    await t.admin.create(namespaces, { metadata: { name: 'n' }, spec: {} });
    await t.admin.delete(namespaces, { name: 'n' });
    const marked = await t.admin.get(namespaces, { name: 'n' });
    expect(marked).toMatchObject({ spec: { finalizers: ['kubernetes'] }, status: { phase: 'Terminating' } });
    await t.admin.update(namespaces, { ...marked, spec: { finalizers: [] } }, { subresource: 'finalize' });
    expect(await refusal(t.admin.get(namespaces, { name: 'n' }))).toMatchObject({ code: 404 });
  });
});

describe('pods', () => {
  beforeEach(() => allowPods(t.admin));

  it('are deleted gracefully once they are on a node', async () => {
    await t.admin.create(pods, pod('p', { nodeName: 'n', terminationGracePeriodSeconds: 30 }));
    await t.admin.delete(pods, ref('p'));
    const marked = await t.admin.get(pods, ref('p'));
    expect(marked.metadata.deletionGracePeriodSeconds).toBe(30);
    const untouched = marked.metadata.resourceVersion;
    await t.admin.delete(pods, ref('p'), { gracePeriodSeconds: 60 });
    expect((await t.admin.get(pods, ref('p'))).metadata.resourceVersion).toBe(untouched);
    await t.admin.delete(pods, ref('p'), { gracePeriodSeconds: 5 });
    expect((await t.admin.get(pods, ref('p'))).metadata.deletionGracePeriodSeconds).toBe(5);
    await t.admin.delete(pods, ref('p'), { gracePeriodSeconds: 0 });
    expect(await refusal(t.admin.get(pods, ref('p')))).toMatchObject({ code: 404 });
  });

  it('are bound once', async () => {
    await t.admin.create(pods, pod('p'));
    const bind = (node: string) =>
      t.admin.createSubresource(pods, ref('p'), 'binding', {
        apiVersion: 'v1',
        kind: 'Binding',
        metadata: { name: 'p' },
        target: { kind: 'Node', name: node },
      } as never);
    expect(await bind('n1')).toEqual({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Success',
      code: 201,
    });
    const bound = await t.admin.get(pods, ref('p'));
    expect(bound.spec.nodeName).toBe('n1');
    expect(bound.status?.conditions).toMatchObject([{ type: 'PodScheduled', status: 'True' }]);
    expect(await refusal(bind('n2'))).toMatchObject({
      code: 409,
      message: expect.stringContaining('pod p is already assigned to node "n1"'),
    });
  });

  it('are evicted by deleting them', async () => {
    await t.admin.create(pods, pod('p'));
    await t.admin.createSubresource(pods, ref('p'), 'eviction', {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name: 'p' },
    });
    expect(await refusal(t.admin.get(pods, ref('p')))).toMatchObject({ code: 404 });
  });

  it('get ephemeral containers, and nothing else, through their subresource', async () => {
    await t.admin.create(pods, pod('p'));
    const changed = await t.admin.patch(
      pods,
      ref('p'),
      {
        type: 'strategic',
        body: { spec: { ephemeralContainers: [{ name: 'debug', image: 'busybox' }], priority: 7 } },
      },
      { subresource: 'ephemeralcontainers' },
    );
    expect(changed.spec.ephemeralContainers).toMatchObject([
      { name: 'debug', terminationMessagePolicy: 'File' },
    ]);
    expect(changed.spec.priority).not.toBe(7);
  });
});

it('issues tokens for service accounts that authenticate', async () => {
  await t.admin.create(serviceAccounts, { metadata: { name: 'robot', namespace: 'default' } });
  const answer = await t.admin.createSubresource<never>(serviceAccounts, ref('robot'), 'token', {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    metadata: { name: 'robot' },
  });
  const { token } = (answer as { status: { token: string } }).status;
  expect(await t.server.authenticate({ bearerToken: token })).toMatchObject({
    name: 'system:serviceaccount:default:robot',
    groups: ['system:serviceaccounts', 'system:serviceaccounts:default', 'system:authenticated'],
  });
});

it('authorizes callers of this process like any other', async () => {
  const bob = t.as({ name: 'bob', groups: ['system:authenticated'] });
  expect(await refusal(bob.list(pods, { namespace: 'default' }))).toEqual({
    code: 403,
    reason: 'Forbidden',
    message:
      'pods is forbidden: User "bob" cannot list resource "pods" in API group "" in the namespace "default"',
  });
  expect(t.server.audit.recent().at(-1)).toMatchObject({
    user: 'bob',
    verb: 'list',
    resource: 'pods',
    code: 403,
  });
});

it('can be started again over what it stored, at once and without writing', async () => {
  const before = t.store.revision;
  await t.server.close();
  const again = await startTestServer({
    store: t.store,
    engine: t.engine,
    clock: createManualClock(Date.now()),
  });
  expect(t.store.revision).toBe(before);
  expect((await again.admin.list(namespaces)).items.map((one) => one.metadata.name)).toEqual([
    'default',
    'kube-node-lease',
    'kube-public',
    'kube-system',
  ]);
  await again.server.close();
});
