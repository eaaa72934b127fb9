import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Cluster, startCluster, widgetDefinition, widgets } from '#server/controllers/testing';
import {
  type ConfigMap,
  configMaps,
  customResourceDefinitions,
  type KubeObject,
  namespaces,
  type OwnerReference,
  type Resource,
} from '#server/kube';
import { createGarbageCollector } from './index.ts';

let cluster: Cluster;

beforeEach(async () => {
  cluster = await startCluster();
  cluster.run('generic-garbage-collector', createGarbageCollector);
});

afterEach(() => cluster.stop());

function ownedBy(owner: KubeObject, rest: Partial<OwnerReference> = {}): OwnerReference {
  return {
    apiVersion: owner.apiVersion,
    kind: owner.kind,
    name: owner.metadata.name,
    uid: owner.metadata.uid ?? '',
    ...rest,
  };
}

const make = (name: string, owners: OwnerReference[] = [], namespace = 'default'): Promise<ConfigMap> =>
  cluster.admin.create(configMaps, {
    metadata: { name, namespace, ...(owners.length > 0 ? { ownerReferences: owners } : {}) },
  });
const names = async (resource: Resource = configMaps): Promise<string[]> =>
  (await cluster.admin.list(resource)).items
    .map(({ metadata }) => metadata.name)
    .filter((name) => name.startsWith('t-'))
    .sort();
const settled = (expected: string[], resource?: Resource): Promise<unknown> =>
  cluster.eventually(async () => expect(await names(resource)).toEqual(expected));
const quiet = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 60));

describe('background', () => {
  it('deletes dependents of dependents once the owner has gone', async () => {
    const owner = await make('t-owner');
    const child = await make('t-child', [ownedBy(owner)]);
    await make('t-grandchild', [ownedBy(child)]);
    await make('t-free');
    await cluster.admin.delete(configMaps, { namespace: 'default', name: 't-owner' });
    await settled(['t-free']);
  });

  it('keeps what has another owner, and only forgets the absent one', async () => {
    const [first, second] = [await make('t-first'), await make('t-second')];
    await make('t-child', [ownedBy(first), ownedBy(second)]);
    await cluster.admin.delete(configMaps, { namespace: 'default', name: 't-first' });
    const child = await cluster.until(
      configMaps,
      { namespace: 'default', name: 't-child' },
      (object) => object?.metadata.ownerReferences?.length === 1,
    );
    expect(child.metadata.ownerReferences).toEqual([ownedBy(second)]);
  });

  it('deletes what is created for an owner that is no more, but not for one of the same name that lives', async () => {
    const owner = await make('t-owner');
    await make('t-late', [ownedBy(owner, { uid: '00000000-0000-4000-8000-000000000000' })]);
    await make('t-fine', [ownedBy(owner)]);
    await settled(['t-fine', 't-owner']);
  });

  it('treats an owner in another namespace as absent, and says so', async () => {
    await cluster.admin.create(namespaces, { metadata: { name: 'other' }, spec: {} });
    const owner = await make('t-owner', [], 'other');
    await make('t-child', [ownedBy(owner)]);
    await settled(['t-owner']);
    await cluster.eventually(async () =>
      expect(await cluster.eventsOf('default', 't-child')).toEqual([
        `Warning OwnerRefInvalidNamespace ownerRef [v1/ConfigMap, namespace: default, name: t-owner, uid: ${owner.metadata.uid}] does not exist in namespace "default"`,
      ]),
    );
  });

  it('goes on after a restart', async () => {
    const owner = await make('t-owner');
    await make('t-child', [ownedBy(owner)]);
    await cluster.admin.delete(configMaps, { namespace: 'default', name: 't-owner' });
    cluster.run('generic-garbage-collector', createGarbageCollector);
    await settled([]);
  });
});

describe('foreground', () => {
  it('the owner waits for those that block it', async () => {
    const owner = await make('t-owner');
    const hold = { finalizers: ['lab.example/hold'] };
    await cluster.admin.create(configMaps, {
      metadata: {
        name: 't-blocker',
        namespace: 'default',
        ...hold,
        ownerReferences: [ownedBy(owner, { blockOwnerDeletion: true })],
      },
    });
    await make('t-other', [ownedBy(owner)]);
    await cluster.admin.delete(
      configMaps,
      { namespace: 'default', name: 't-owner' },
      { propagationPolicy: 'Foreground' },
    );
    await cluster.until(
      configMaps,
      { namespace: 'default', name: 't-blocker' },
      (object) => object?.metadata.deletionTimestamp !== undefined,
    );
    await settled(['t-blocker', 't-owner']);
    await cluster.admin.patch(
      configMaps,
      { namespace: 'default', name: 't-blocker' },
      { type: 'merge', body: { metadata: { finalizers: null } } },
    );
    await settled([]);
  });

  it('an owner without dependents does not wait', async () => {
    await make('t-owner');
    await cluster.admin.delete(
      configMaps,
      { namespace: 'default', name: 't-owner' },
      { propagationPolicy: 'Foreground' },
    );
    await settled([]);
  });

  it('goes down the whole tree before the root', async () => {
    const root = await make('t-root');
    const middle = await make('t-middle', [ownedBy(root, { blockOwnerDeletion: true })]);
    await make('t-leaf', [ownedBy(middle, { blockOwnerDeletion: true })]);
    const order: string[] = [];
    const watch = cluster.admin.watch(
      configMaps,
      {},
      ({ type, object }) => type === 'DELETED' && order.push(object.metadata.name),
      () => undefined,
    );
    await cluster.admin.delete(
      configMaps,
      { namespace: 'default', name: 't-root' },
      { propagationPolicy: 'Foreground' },
    );
    await settled([]);
    await cluster.eventually(() => expect(order).toEqual(['t-leaf', 't-middle', 't-root']));
    watch.stop();
  });
});

it('orphan: dependents are freed and stay', async () => {
  const owner = await make('t-owner');
  await make('t-child', [ownedBy(owner, { blockOwnerDeletion: true })]);
  await quiet();
  await cluster.admin.delete(
    configMaps,
    { namespace: 'default', name: 't-owner' },
    { propagationPolicy: 'Orphan' },
  );
  await settled(['t-child']);
  const child = await cluster.admin.get(configMaps, { namespace: 'default', name: 't-child' });
  expect(child.metadata.ownerReferences ?? []).toEqual([]);
});

it('collects custom resources, too, as soon as their kind is there', async () => {
  await cluster.admin.create(customResourceDefinitions, widgetDefinition());
  const owner = await cluster.eventually(() =>
    cluster.admin.create(widgets, { metadata: { name: 't-owner', namespace: 'default' } }),
  );
  await cluster.admin.create(widgets, {
    metadata: { name: 't-child', namespace: 'default', ownerReferences: [ownedBy(owner)] },
  });
  await make('t-map', [ownedBy(owner)]);
  await cluster.admin.delete(widgets, { namespace: 'default', name: 't-owner' });
  await settled([], widgets);
  await settled([]);
});
