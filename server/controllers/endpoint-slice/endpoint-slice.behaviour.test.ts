import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Draft } from '#server/client';
import { createEndpointsController } from '#server/controllers/endpoints';
import { actAsKubelet, type Cluster, type Kubelet, node, startCluster } from '#server/controllers/testing';
import {
  type EndpointSlice,
  endpointSlices,
  endpoints,
  nodes,
  type Pod,
  pods,
  type Service,
  services,
} from '#server/kube';
import { createEndpointSliceController } from './index.ts';

let cluster: Cluster;
let kubelet: Kubelet;

beforeEach(async () => {
  cluster = await startCluster();
  await cluster.admin.create(nodes, node('worker', { labels: { 'topology.kubernetes.io/zone': 'zone-a' } }));
  kubelet = actAsKubelet(cluster.admin);
  cluster.run('endpointslice-controller', createEndpointSliceController);
  cluster.run('endpoint-controller', createEndpointsController);
});

afterEach(async () => {
  kubelet.stop();
  await cluster.stop();
});

function service(spec: Partial<Service['spec']> = {}): Draft<Service> {
  return {
    metadata: { name: 'web', namespace: 'default', labels: { tier: 'front' } },
    spec: { selector: { app: 'web' }, ports: [{ port: 80, targetPort: 'http' }], ...spec },
  };
}

function pod(name: string, port = 8080): Draft<Pod> {
  return {
    metadata: { name, namespace: 'default', labels: { app: 'web' } },
    spec: { containers: [{ name: 'main', image: 'nginx', ports: [{ name: 'http', containerPort: port }] }] },
  };
}

const slices = async (): Promise<EndpointSlice[]> =>
  (
    await cluster.admin.list(endpointSlices, {
      namespace: 'default',
      labelSelector: 'kubernetes.io/service-name=web',
    })
  ).items;
const only = (holds: (slice: EndpointSlice) => boolean): Promise<EndpointSlice> =>
  cluster.eventually(async () => {
    const found = await slices();
    expect(found).toHaveLength(1);
    if (!found[0] || !holds(found[0])) throw new Error(JSON.stringify(found[0]));
    return found[0];
  });

it('publishes pods by their ports, readiness, node and zone', async () => {
  const { metadata } = await cluster.admin.create(services, service());
  const empty = await only(() => true);
  expect(empty.metadata.name).toMatch(/^web-[a-z0-9]{5}$/);
  expect([empty.endpoints ?? [], empty.ports ?? []]).toEqual([[], []]);
  const made = await cluster.admin.create(pods, pod('web-1'));
  const slice = await only(({ endpoints: list }) => list?.[0]?.conditions?.ready === true);
  expect(slice.metadata.name).toBe(empty.metadata.name);
  expect(slice.metadata.labels).toEqual({
    'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io',
    'kubernetes.io/service-name': 'web',
    tier: 'front',
  });
  expect(Object.keys(slice.metadata.annotations ?? {})).toEqual([
    'endpoints.kubernetes.io/last-change-trigger-time',
  ]);
  expect(slice.metadata.ownerReferences).toEqual([
    {
      apiVersion: 'v1',
      kind: 'Service',
      name: 'web',
      uid: metadata.uid,
      controller: true,
      blockOwnerDeletion: true,
    },
  ]);
  const ready = await cluster.admin.get(pods, { namespace: 'default', name: 'web-1' });
  expect({ addressType: slice.addressType, ports: slice.ports, endpoints: slice.endpoints }).toEqual({
    addressType: 'IPv4',
    ports: [{ name: '', protocol: 'TCP', port: 8080 }],
    endpoints: [
      {
        addresses: [ready.status?.podIP],
        conditions: { ready: true, serving: true, terminating: false },
        targetRef: { kind: 'Pod', namespace: 'default', name: 'web-1', uid: made.metadata.uid },
        nodeName: 'worker',
        zone: 'zone-a',
      },
    ],
  });
  const legacy = await cluster.until(
    endpoints,
    { namespace: 'default', name: 'web' },
    (object) => object?.subsets?.[0]?.addresses !== undefined,
  );
  expect(legacy.metadata.labels).toEqual({
    'endpoints.kubernetes.io/managed-by': 'endpoint-controller',
    tier: 'front',
  });
  expect(legacy.subsets).toEqual([
    {
      addresses: [
        {
          ip: ready.status?.podIP,
          nodeName: 'worker',
          targetRef: { kind: 'Pod', namespace: 'default', name: 'web-1', uid: made.metadata.uid },
        },
      ],
      ports: [{ port: 8080, protocol: 'TCP' }],
    },
  ]);
});

it('gives pods with other ports a slice of their own', async () => {
  await cluster.admin.create(services, service());
  await cluster.admin.create(pods, pod('web-1', 8080));
  await cluster.admin.create(pods, pod('web-2', 9090));
  await cluster.eventually(async () => {
    const found = await slices();
    expect(found.map(({ ports, endpoints: list }) => [ports?.[0]?.port, list?.length]).sort()).toEqual([
      [8080, 1],
      [9090, 1],
    ]);
  });
});

it('publishes what is not ready as such, and as ready when the Service wants it', async () => {
  kubelet.accepts = () => true;
  await cluster.admin.create(services, service({ clusterIP: 'None', ports: [] }));
  await cluster.admin.create(pods, pod('web-1'));
  await only(({ endpoints: list }) => list?.[0]?.conditions?.ready === true);
  const unready = {
    status: { conditions: [{ type: 'Ready', status: 'False', lastTransitionTime: '2026-01-01T00:00:00Z' }] },
  };
  await cluster.admin.patch(
    pods,
    { namespace: 'default', name: 'web-1' },
    { type: 'strategic', body: unready },
    { subresource: 'status' },
  );
  const slice = await only(({ endpoints: list }) => list?.[0]?.conditions?.ready === false);
  expect(slice.endpoints?.[0]?.conditions).toEqual({ ready: false, serving: false, terminating: false });
  expect(slice.metadata.labels).toMatchObject({ 'service.kubernetes.io/headless': '' });
  const legacy = await cluster.until(
    endpoints,
    { namespace: 'default', name: 'web' },
    (object) => object?.subsets?.[0]?.notReadyAddresses !== undefined,
  );
  expect(legacy.subsets?.[0]?.addresses).toBeUndefined();
  await cluster.admin.patch(
    services,
    { namespace: 'default', name: 'web' },
    { type: 'merge', body: { spec: { publishNotReadyAddresses: true } } },
  );
  const published = await only(({ endpoints: list }) => list?.[0]?.conditions?.ready === true);
  expect(published.endpoints?.[0]?.conditions).toEqual({ ready: true, serving: false, terminating: false });
});

it('puts right what others change, and takes the Endpoints away with the Service', async () => {
  await cluster.admin.create(services, service());
  await cluster.admin.create(pods, pod('web-1'));
  const slice = await only(({ endpoints: list }) => list?.[0]?.conditions?.ready === true);
  await cluster.admin.patch(
    endpointSlices,
    { namespace: 'default', name: slice.metadata.name },
    { type: 'merge', body: { endpoints: [] } },
  );
  await only(({ endpoints: list }) => list?.length === 1);
  await cluster.admin.delete(endpointSlices, { namespace: 'default', name: slice.metadata.name });
  await only(({ endpoints: list, metadata }) => list?.length === 1 && metadata.name !== slice.metadata.name);
  await cluster.admin.delete(services, { namespace: 'default', name: 'web' });
  await cluster.eventually(async () =>
    expect(
      (await cluster.admin.list(endpoints, { namespace: 'default' })).items.map(
        ({ metadata }) => metadata.name,
      ),
    ).not.toContain('web'),
  );
});
