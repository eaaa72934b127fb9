import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  type CustomResourceDefinition,
  customResourceDefinitions,
  defineResource,
  type KubeObject,
} from '#server/kube';
import { startTestServer, type TestServer } from './testing/server.ts';

interface Foo extends KubeObject {
  spec?: { replicas?: number; other?: unknown };
  status?: unknown;
}

const foos = defineResource<Foo>({
  group: 'ex.io',
  version: 'v1',
  kind: 'Foo',
  plural: 'foos',
  namespaced: true,
});
const newerFoos = defineResource<Foo>({ ...foos, version: 'v2' });

function definition(): CustomResourceDefinition {
  const openAPIV3Schema = {
    type: 'object',
    properties: {
      spec: { type: 'object', properties: { replicas: { type: 'integer', default: 1 } } },
      status: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    },
  };
  const subresources = {
    status: {},
    scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' },
  };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'foos.ex.io' },
    spec: {
      group: 'ex.io',
      scope: 'Namespaced',
      names: { plural: 'foos', singular: 'foo', kind: 'Foo', listKind: 'FooList' },
      versions: [
        { name: 'v1', served: true, storage: true, subresources, schema: { openAPIV3Schema } },
        { name: 'v2', served: true, storage: false, subresources, schema: { openAPIV3Schema } },
      ],
    },
  };
}

const ref = { namespace: 'default', name: 'a' };
let t: TestServer;

beforeEach(async () => {
  t = await startTestServer();
  await t.admin.create(customResourceDefinitions, definition());
  await t.admin.create(foos, { metadata: ref, spec: { other: 1 } });
});

afterEach(async () => {
  await t.close();
});

it('are pruned, defaulted, scaled, and keep status apart', async () => {
  expect((await t.admin.get(foos, ref)).spec).toEqual({ replicas: 1 });
  const status = await t.admin.patch(
    foos,
    ref,
    { type: 'merge', body: { spec: { replicas: 9 }, status: { replicas: 2 } } },
    { subresource: 'status' },
  );
  expect([status.spec, status.status, status.metadata.generation]).toEqual([
    { replicas: 1 },
    { replicas: 2 },
    1,
  ]);
  const scale = await t.admin.patch(
    foos,
    ref,
    { type: 'merge', body: { spec: { replicas: 4 } } },
    { subresource: 'scale' },
  );
  expect(scale).toMatchObject({ kind: 'Scale', spec: { replicas: 4 }, status: { replicas: 2 } });
  expect((await t.admin.get(foos, ref)).metadata.generation).toBe(2);
});

it('are served in every version, watches too', async () => {
  const seen: string[] = [];
  const watch = t.admin.watch(
    newerFoos,
    {},
    (event) => seen.push(`${event.type} ${event.object.apiVersion}`),
    () => undefined,
  );
  await t.admin.patch(newerFoos, ref, { type: 'merge', body: { spec: { replicas: 3 } } });
  expect((await t.admin.list(newerFoos)).items[0]?.apiVersion).toBe('ex.io/v2');
  expect((await t.admin.get(foos, ref)).apiVersion).toBe('ex.io/v1');
  expect(seen).toEqual(['ADDED ex.io/v2', 'MODIFIED ex.io/v2']);
  watch.stop();
});

it('go with their definition, finalizers first', async () => {
  await t.admin.patch(foos, ref, { type: 'merge', body: { metadata: { finalizers: ['ex.io/hold'] } } });
  await t.admin.delete(customResourceDefinitions, { name: 'foos.ex.io' });
  const held = await t.admin.get(customResourceDefinitions, { name: 'foos.ex.io' });
  expect(held.metadata.finalizers).toEqual(['customresourcecleanup.apiextensions.k8s.io']);
  await expect.poll(async () => (await t.admin.get(foos, ref)).metadata.deletionTimestamp).toBeDefined();
  await t.admin.patch(foos, ref, { type: 'merge', body: { metadata: { finalizers: null } } });
  await expect.poll(() => t.store.count('/registry/apiextensions.k8s.io/')).toBe(0);
  await expect(t.admin.list(foos)).rejects.toMatchObject({ code: 404 });
});

it('are known again after a restart, and a delete that was under way goes on', async () => {
  await t.admin.patch(foos, ref, { type: 'merge', body: { metadata: { finalizers: ['ex.io/hold'] } } });
  await t.admin.delete(customResourceDefinitions, { name: 'foos.ex.io' });
  await t.server.close();
  const again = await startTestServer({ store: t.store, engine: t.engine });
  await again.admin.patch(foos, ref, { type: 'merge', body: { metadata: { finalizers: null } } });
  await expect.poll(() => t.store.count('/registry/apiextensions.k8s.io/')).toBe(0);
  await again.server.close();
});
