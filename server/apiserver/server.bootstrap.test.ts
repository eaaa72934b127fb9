import { afterEach, expect, it } from 'vitest';
import { ConnectionError } from '#server/client';
import {
  clusterRoles,
  configMaps,
  endpointSlices,
  endpoints,
  namespaces,
  priorityClasses,
  services,
} from '#server/kube';
import { startTestServer, type TestServer } from './testing/server.ts';

const started: TestServer[] = [];

async function start(options: Parameters<typeof startTestServer>[0] = {}): Promise<TestServer> {
  const t = await startTestServer(options);
  started.push(t);
  return t;
}

afterEach(async () => {
  for (const t of started.splice(0)) await t.server.close();
});

it('gives a new cluster what every cluster has', async () => {
  const t = await start({ advertise: { ip: '10.0.0.9', port: 6443 } });
  expect((await t.admin.get(services, { namespace: 'default', name: 'kubernetes' })).spec).toMatchObject({
    clusterIP: '10.96.0.1',
    ports: [{ name: 'https', port: 443, protocol: 'TCP', targetPort: 6443 }],
  });
  const slice = await t.admin.get(endpointSlices, { namespace: 'default', name: 'kubernetes' });
  expect(slice).toMatchObject({
    endpoints: [{ addresses: ['10.0.0.9'] }],
    ports: [{ name: 'https', port: 6443 }],
  });
  expect((await t.admin.get(priorityClasses, { name: 'system-node-critical' })).value).toBe(2_000_001_000);
  expect((await t.admin.get(clusterRoles, { name: 'cluster-admin' })).metadata.labels).toEqual({
    'kubernetes.io/bootstrapping': 'rbac-defaults',
  });
  const config = await t.admin.get(configMaps, {
    namespace: 'kube-system',
    name: 'extension-apiserver-authentication',
  });
  expect(Object.keys(config.data ?? {})).toEqual(['client-ca-file']);
});

it('completes what a killed start left behind, and follows a new address', async () => {
  const first = await start({ advertise: { ip: '10.0.0.9', port: 6443 } });
  await first.server.close();
  for (const key of [
    '/registry/core/namespaces/kube-public',
    '/registry/rbac.authorization.k8s.io/clusterroles/view',
  ]) {
    await first.store.delete(key);
  }
  const again = await start({
    store: first.store,
    engine: first.engine,
    advertise: { ip: '10.0.0.10', port: 6443 },
  });
  expect((await again.admin.get(namespaces, { name: 'kube-public' })).status?.phase).toBe('Active');
  expect((await again.admin.get(clusterRoles, { name: 'view' })).rules?.length).toBeGreaterThan(0);
  const { subsets } = await again.admin.get(endpoints, { namespace: 'default', name: 'kubernetes' });
  expect(subsets?.[0]?.addresses).toEqual([{ ip: '10.0.0.10' }]);
});

it('brings the kubernetes Service and its endpoints back when somebody removes or changes them', async () => {
  const t = await start({ advertise: { ip: '10.0.0.9', port: 6443 } });
  const ref = { namespace: 'default', name: 'kubernetes' };
  const before = await t.admin.get(services, ref);
  await t.admin.delete(services, ref);
  await t.admin.delete(endpoints, ref);
  await t.admin.patch(endpointSlices, ref, { type: 'merge', body: { endpoints: [] } });
  await expect
    .poll(async () => (await t.admin.list(services, { namespace: 'default' })).items[0]?.spec?.clusterIP)
    .toBe('10.96.0.1');
  expect((await t.admin.get(services, ref)).metadata.uid).not.toBe(before.metadata.uid);
  const addresses = async (): Promise<unknown> => [
    (await t.admin.list(endpoints, { namespace: 'default' })).items[0]?.subsets?.[0]?.addresses,
    (await t.admin.get(endpointSlices, ref)).endpoints,
  ];
  await expect
    .poll(addresses)
    .toEqual([[{ ip: '10.0.0.9' }], [{ addresses: ['10.0.0.9'], conditions: { ready: true } }]]);
});

it('gives each cluster objects of its own', async () => {
  const [one, two] = [await start(), await start()];
  const uid = async (t: TestServer): Promise<string | undefined> =>
    (await t.admin.get(clusterRoles, { name: 'edit' })).metadata.uid;
  expect(await uid(one)).not.toBe(await uid(two));
});

it('never hands out the address of the kubernetes Service', async () => {
  const t = await start({ serviceCidr: '10.5.0.0/30' });
  const create = (name: string) =>
    t.admin.create(services, {
      metadata: { name, namespace: 'default' },
      spec: { ports: [{ port: 80 }] },
    });
  expect((await create('a')).spec?.clusterIP).toBe('10.5.0.2');
  await expect(create('b')).rejects.toMatchObject({ message: expect.stringContaining('range is full') });
});

it('answers nobody once it is closed', async () => {
  const t = await start();
  await t.server.close();
  await expect(t.admin.list(namespaces)).rejects.toBeInstanceOf(ConnectionError);
  expect(t.server.ready).toBe(false);
});
