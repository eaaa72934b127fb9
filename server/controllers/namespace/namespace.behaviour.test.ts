import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  type Cluster,
  podTemplate,
  startCluster,
  widgetDefinition,
  widgets,
} from '#server/controllers/testing';
import { configMaps, customResourceDefinitions, namespaces, pods, serviceAccounts } from '#server/kube';
import { createNamespaceController } from './index.ts';

const TEAM = { name: 'team' };
let cluster: Cluster;

beforeEach(async () => {
  cluster = await startCluster();
  cluster.run('namespace-controller', createNamespaceController);
  await cluster.admin.create(namespaces, { metadata: TEAM, spec: {} });
});

afterEach(() => cluster.stop());

const gone = (): Promise<unknown> =>
  cluster.eventually(async () =>
    expect((await cluster.admin.list(namespaces)).items.map(({ metadata }) => metadata.name)).not.toContain(
      'team',
    ),
  );

it('a namespace being deleted takes all it holds with it, custom resources too', async () => {
  await cluster.admin.create(customResourceDefinitions, widgetDefinition());
  await cluster.eventually(() =>
    cluster.admin.create(widgets, { metadata: { name: 'one', namespace: 'team' } }),
  );
  await cluster.admin.create(configMaps, { metadata: { name: 'settings', namespace: 'team' } });
  await cluster.admin.delete(namespaces, TEAM);
  await gone();
  expect((await cluster.admin.list(widgets)).items).toEqual([]);
  expect((await cluster.admin.list(configMaps, { namespace: 'team' })).items).toEqual([]);
});

it('waits for finalizers, and says so', async () => {
  await cluster.admin.create(configMaps, {
    metadata: { name: 'held', namespace: 'team', finalizers: ['lab.example/hold'] },
  });
  await cluster.admin.delete(namespaces, TEAM);
  const { status } = await cluster.until(
    namespaces,
    TEAM,
    (namespace) => namespace?.status?.conditions !== undefined,
  );
  expect(status?.phase).toBe('Terminating');
  expect(status?.conditions?.map(({ lastTransitionTime: _, ...condition }) => condition)).toEqual([
    {
      type: 'NamespaceDeletionDiscoveryFailure',
      status: 'False',
      reason: 'ResourcesDiscovered',
      message: 'All resources successfully discovered',
    },
    {
      type: 'NamespaceDeletionGroupVersionParsingFailure',
      status: 'False',
      reason: 'ParsedGroupVersions',
      message: 'All legacy kube types successfully parsed',
    },
    {
      type: 'NamespaceDeletionContentFailure',
      status: 'False',
      reason: 'ContentDeleted',
      message: 'All content successfully deleted, may be waiting on finalization',
    },
    {
      type: 'NamespaceContentRemaining',
      status: 'True',
      reason: 'SomeResourcesRemain',
      message: 'Some resources are remaining: configmaps. has 1 resource instances',
    },
    {
      type: 'NamespaceFinalizersRemaining',
      status: 'True',
      reason: 'SomeFinalizersRemain',
      message:
        'Some content in the namespace has finalizers remaining: lab.example/hold in 1 resource instances',
    },
  ]);
});

it('pods go first, and the rest as soon as the last of them has gone', async () => {
  await cluster.admin.create(serviceAccounts, { metadata: { name: 'default', namespace: 'team' } });
  const { spec = { containers: [] } } = podTemplate();
  const ref = { namespace: 'team', name: 'slow' };
  await cluster.admin.create(pods, { metadata: ref, spec: { ...spec, nodeName: 'worker' } });
  await cluster.admin.create(configMaps, { metadata: { name: 'settings', namespace: 'team' } });
  await cluster.admin.delete(namespaces, TEAM);
  await cluster.until(pods, ref, (pod) => pod?.metadata.deletionTimestamp !== undefined);
  await cluster.until(
    namespaces,
    TEAM,
    (namespace) =>
      namespace?.status?.conditions?.[3]?.message ===
      'Some resources are remaining: pods. has 1 resource instances',
  );
  expect((await cluster.admin.get(configMaps, { namespace: 'team', name: 'settings' })).metadata.name).toBe(
    'settings',
  );
  await cluster.admin.delete(pods, ref, { gracePeriodSeconds: 0 });
  await gone();
});
