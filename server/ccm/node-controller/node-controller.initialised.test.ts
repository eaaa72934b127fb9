import { describe, expect, it } from 'vitest';
import { type Node, type NodeAddress, nodes } from '#server/kube';
import { type InstanceMetadata, InstanceNotFound, type Instances, NotImplemented } from '../contract.ts';
import {
  createControllerHarness,
  internal,
  machine,
  type NodeParts,
  named,
  nodeDraft,
} from '../testing/harness.ts';

const hostname = { type: 'Hostname', address: 'a' };
const initialised = (rest: NodeParts = {}) =>
  nodeDraft('a', { spec: { providerID: 'fake://machine' }, ...rest });

describe('the addresses of initialised nodes', () => {
  const zones = ['10.0.0.1', '10.0.0.2'].map(internal);
  it.each<{
    row: string;
    cloud: NodeAddress[];
    has: NodeAddress[];
    provided?: string;
    expected: NodeAddress[];
  }>([
    {
      row: 'none from the cloud: the old ones stay',
      cloud: [],
      has: [internal('1.1.1.1')],
      expected: [internal('1.1.1.1')],
    },
    {
      row: 'the host name of the kubelet is kept',
      cloud: zones,
      has: [hostname],
      expected: [...zones, hostname],
    },
    {
      row: 'a host name of the cloud replaces it',
      cloud: [...zones, { type: 'Hostname', address: 'cloud' }],
      has: [hostname],
      expected: [...zones, { type: 'Hostname', address: 'cloud' }],
    },
    {
      row: 'a provided IP comes first and alone of its type',
      cloud: [...zones, { type: 'ExternalIP', address: '8.8.8.8' }],
      has: [hostname],
      provided: '10.0.0.2',
      expected: [internal('10.0.0.2'), { type: 'ExternalIP', address: '8.8.8.8' }, hostname],
    },
    {
      row: 'a dual-stack pair of provided IPs',
      cloud: [internal('fd00::1'), ...zones],
      has: [hostname],
      provided: '10.0.0.1,fd00:0::1',
      expected: [internal('10.0.0.1'), internal('fd00::1'), hostname],
    },
    {
      row: 'addresses that are gone go, although their type stays',
      cloud: [internal('10.0.0.9')],
      has: [internal('10.0.0.1'), internal('10.0.0.2'), hostname],
      expected: [internal('10.0.0.9'), hostname],
    },
  ])('$row', async ({ cloud, has, provided, expected }) => {
    const harness = createControllerHarness({ metadata: () => machine({ nodeAddresses: cloud }) });
    const annotations = provided === undefined ? {} : { 'alpha.kubernetes.io/provided-node-ip': provided };
    await harness.create(initialised({ metadata: { annotations }, status: { addresses: has } }));
    await harness.start();
    expect((await harness.node('a')).status?.addresses).toEqual(expected);
    await harness.stop();
  });

  it.each([
    ['10.9.9.9', 'failed to get node address from cloud provider that matches ip: 10.9.9.9'],
    ['nonsense', 'failed to parse node IP "nonsense": could not parse "nonsense"'],
    [
      '10.0.0.1,10.0.0.2',
      'failed to parse node IP "10.0.0.1,10.0.0.2": must contain either a single IP or a dual-stack pair of IPs',
    ],
    [
      '10.0.0.1,::',
      "failed to parse node IP \"10.0.0.1,::\": dual-stack node IP cannot include '0.0.0.0' or '::'",
    ],
  ])('are left alone when the provided IP is %s', async (provided, error) => {
    const harness = createControllerHarness();
    await harness.create(
      initialised({ metadata: { annotations: { 'alpha.kubernetes.io/provided-node-ip': provided } } }),
    );
    await harness.start();
    expect(harness.writes()).toEqual([]);
    expect(harness.output.lines()).toContain(
      `E node_controller.go:393] Failed to update node addresses for node "a": ${error}`,
    );
    await harness.stop();
  });

  it('are looked at when it starts and every five minutes, and nothing but addresses is written', async () => {
    let metadata: InstanceMetadata = machine({ zone: 'z1' });
    const harness = createControllerHarness({ metadata: () => metadata });
    await harness.create(initialised());
    await harness.start();
    expect(harness.writes().map(named)).toEqual(['patch nodes/a/status']);
    metadata = machine({ zone: 'z2', providerID: 'fake://new', nodeAddresses: [internal('10.0.0.7')] });
    await harness.clock.advance(299_999);
    expect(harness.writes()).toHaveLength(1);
    await harness.clock.advance(1);
    const node = await harness.node('a');
    expect(node.status?.addresses).toEqual([internal('10.0.0.7'), hostname]);
    expect([node.metadata.labels, node.spec]).toEqual([undefined, { providerID: 'fake://machine' }]);
    await harness.clock.advance(300_000);
    expect(harness.writes()).toHaveLength(2);
    await harness.stop();
    expect(harness.clock.pending).toBe(0);
  });

  it('are asked for node by node: an error about one is logged and the next is asked for', async () => {
    const harness = createControllerHarness({
      metadata({ metadata }) {
        if (metadata.name === 'a') throw InstanceNotFound;
        return machine();
      },
    });
    await harness.create(initialised());
    await harness.create(nodeDraft('b', { spec: { providerID: 'fake://b' } }));
    await harness.start();
    expect(harness.output.lines()).toContain(
      'E node_controller.go:285] Error getting instance metadata for node addresses: instance not found',
    );
    expect(harness.writes().map(named)).toEqual(['patch nodes/b/status']);
    await harness.stop();
  });

  it('two of one type always look changed: the write that follows changes nothing', async () => {
    const harness = createControllerHarness({ metadata: () => machine({ nodeAddresses: zones }) });
    await harness.create(initialised({ status: { addresses: [...zones, hostname] } }));
    await harness.start();
    expect(harness.writes().map(({ body }) => body)).toEqual([{}]);
    await harness.stop();
  });
});

describe('the labels of initialised nodes', () => {
  const beta = 'failure-domain.beta.kubernetes.io/zone';
  const present = 'topology.kubernetes.io/zone';
  it.each<{ row: string; labels: Record<string, string>; expected: Record<string, string>; writes: number }>([
    {
      row: 'a missing present label is made',
      labels: { [beta]: 'z' },
      expected: { [beta]: 'z', [present]: 'z' },
      writes: 1,
    },
    {
      row: 'a different one is corrected',
      labels: { [beta]: 'z', [present]: 'y' },
      expected: { [beta]: 'z', [present]: 'z' },
      writes: 1,
    },
    {
      row: 'equal ones are left alone',
      labels: { [beta]: 'z', [present]: 'z' },
      expected: { [beta]: 'z', [present]: 'z' },
      writes: 0,
    },
    {
      row: 'a present label alone is left alone',
      labels: { [present]: 'y' },
      expected: { [present]: 'y' },
      writes: 0,
    },
    {
      row: 'region and instance type likewise, in one write',
      labels: { 'failure-domain.beta.kubernetes.io/region': 'r', 'beta.kubernetes.io/instance-type': 't' },
      expected: {
        'failure-domain.beta.kubernetes.io/region': 'r',
        'topology.kubernetes.io/region': 'r',
        'beta.kubernetes.io/instance-type': 't',
        'node.kubernetes.io/instance-type': 't',
      },
      writes: 1,
    },
  ])('$row', async ({ labels, expected, writes }) => {
    const harness = createControllerHarness({ metadata: () => machine({ nodeAddresses: [] }) });
    await harness.create(initialised({ metadata: { labels } }));
    await harness.start();
    expect((await harness.node('a')).metadata.labels).toEqual(expected);
    expect(harness.writes().map(named)).toEqual(Array(writes).fill('patch nodes/a'));
    await harness.stop();
  });

  it('are corrected at every change of the node: editing the present one is undone', async () => {
    const harness = createControllerHarness({ metadata: () => machine({ nodeAddresses: [] }) });
    await harness.create(initialised({ metadata: { labels: { [beta]: 'z', [present]: 'z' } } }));
    await harness.start();
    const edit = { metadata: { labels: { [present]: 'mine' } } };
    await harness.outsider.patch(nodes, { name: 'a' }, { type: 'merge', body: edit });
    await harness.clock.advance(0);
    expect((await harness.node('a')).metadata.labels?.[present]).toBe('z');
    await harness.stop();
  });
});

describe('a cloud', () => {
  it('without instances keeps the controller from starting', async () => {
    const harness = createControllerHarness({ cloud: { instancesV2: undefined as never } });
    expect(await harness.start()).toBeUndefined();
    expect(harness.output.lines()).toEqual([
      'W core.go:53] failed to start cloud node controller: cloud provider does not support instances',
    ]);
  });

  const fail = async (): Promise<never> => {
    throw NotImplemented;
  };
  const first: Instances = {
    nodeAddresses: async () => [internal('10.0.0.3')],
    nodeAddressesByProviderID: fail,
    instanceID: async (name) => `id-${name}`,
    instanceType: async () => 't',
    instanceTypeByProviderID: fail,
    instanceExistsByProviderID: fail,
    instanceShutdownByProviderID: fail,
  };
  const run = async (
    instances: Instances,
    zones?: { failureDomain: string; region: string },
  ): Promise<Node & { log: string }> => {
    const harness = createControllerHarness({
      cloud: {
        instancesV2: undefined as never,
        instances,
        ...(zones ? { zones: { zoneByProviderID: fail, zoneByNodeName: async () => zones } } : {}),
      },
    });
    await harness.create(nodeDraft('a'));
    await harness.start();
    const node = await harness.node('a');
    await harness.stop();
    return { ...node, log: harness.output.text() };
  };

  it('of the first generation is asked by provider ID, then by name', async () => {
    const node = await run(first, { failureDomain: 'z', region: 'r' });
    expect(node.spec).toEqual({ providerID: 'fake://id-a' });
    expect(node.metadata.labels).toMatchObject({
      'node.kubernetes.io/instance-type': 't',
      'topology.kubernetes.io/zone': 'z',
      'topology.kubernetes.io/region': 'r',
    });
    expect(node.status?.addresses).toEqual([internal('10.0.0.3'), hostname]);
  });

  it('of the first generation may have no provider IDs', async () => {
    const node = await run({ ...first, instanceID: fail });
    expect(node.spec).toEqual({});
    expect(node.log).toContain(
      'cloud provider does not set node provider ID, using node name to discover node a',
    );
  });

  it('of the first generation that knows no addresses leaves the taint', async () => {
    const node = await run({ ...first, nodeAddresses: fail });
    expect(node.spec.taints).toHaveLength(1);
    expect(node.log).toContain(
      'error fetching node by provider ID: unimplemented, and error by node name: unimplemented',
    );
  });
});
