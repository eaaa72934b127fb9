import { describe, expect, it } from 'vitest';
import { createManualClock } from '#server/base';
import { createFakeBackend } from '#server/client/testing';
import {
  type VirtualMachineInstance,
  type VirtualMachineInstancePhase,
  virtualMachineInstances,
} from '#server/clouds/kubevirt';
import { badRequest, forbidden, type Node, type NodeAddress, nodes } from '#server/kube';
import { createKlog } from '../../klog.ts';
import { createOutput, internal } from '../../testing/harness.ts';
import { createKubevirtInstances } from './instances.ts';

const NAMESPACE = 'handson-user';

interface Machine {
  name: string;
  annotations?: Record<string, string>;
  hostname?: string;
  status?: VirtualMachineInstance['status'];
}

async function setup(machines: readonly Machine[], options: { zones?: boolean; namespace?: string } = {}) {
  const backend = createFakeBackend();
  const client = backend.client();
  for (const { name, annotations, hostname, status } of machines) {
    await client.create(virtualMachineInstances, {
      metadata: { name, namespace: NAMESPACE, ...(annotations ? { annotations } : {}) },
      spec: { domain: { devices: {} }, ...(hostname ? { hostname } : {}) },
      ...(status ? { status } : {}),
    });
  }
  const instances = createKubevirtInstances({
    client,
    namespace: options.namespace ?? NAMESPACE,
    zoneAndRegionEnabled: options.zones ?? false,
    log: createKlog({ output: createOutput().stream, clock: createManualClock() }),
  });
  return { backend, client, instances };
}

function node(
  name: string,
  rest: { labels?: Record<string, string>; providerID?: string; addresses?: NodeAddress[] } = {},
): Node {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, ...(rest.labels ? { labels: rest.labels } : {}) },
    spec: rest.providerID === undefined ? {} : { providerID: rest.providerID },
    status: { addresses: rest.addresses ?? [] },
  };
}

describe('the metadata of a node', () => {
  it.each<{ row: string; machines: Machine[]; node: Node; expected: object }>([
    {
      row: 'the machine of the same name, whatever the provider ID says',
      machines: [{ name: 'a' }, { name: 'b' }],
      node: node('a', { providerID: 'kubevirt://b' }),
      expected: { providerID: 'kubevirt://a', instanceType: '', nodeAddresses: [], zone: '', region: '' },
    },
    {
      row: 'the machine the label names',
      machines: [{ name: 'a' }, { name: 'b' }],
      node: node('a', { labels: { 'node.kubernetes.io/instance-id': 'b' } }),
      expected: { providerID: 'kubevirt://b' },
    },
    {
      row: 'the machine of that host name, on a server that can select by it',
      machines: [{ name: 'vm', hostname: 'a.example.com' }],
      node: node('a.example.com'),
      expected: { providerID: 'kubevirt://vm' },
    },
    {
      row: 'the instance type of the annotation; a cluster-wide one does not count',
      machines: [
        {
          name: 'a',
          annotations: {
            'kubevirt.io/instancetype-name': 'small',
            'kubevirt.io/cluster-instancetype-name': 'u1.nano',
          },
        },
      ],
      node: node('a'),
      expected: { instanceType: 'small' },
    },
    {
      row: 'all addresses of the first interface `default`, in order, each once',
      machines: [
        {
          name: 'a',
          status: {
            interfaces: [
              { name: 'nic0', ipAddresses: ['10.0.0.9'] },
              {
                name: 'default',
                ipAddress: '10.0.0.8',
                ipAddresses: ['10.0.0.1', '', 'fd00::1', '10.0.0.1'],
              },
              { name: 'default', ipAddresses: ['10.0.0.7'] },
            ],
          },
        },
      ],
      node: node('a', { addresses: [internal('1.1.1.1')] }),
      expected: { nodeAddresses: [internal('10.0.0.1'), internal('fd00::1')] },
    },
    {
      row: 'the internal addresses of the node where the machine reports none',
      machines: [{ name: 'a', status: { interfaces: [{ name: 'nic0', ipAddresses: ['10.0.0.9'] }] } }],
      node: node('a', { addresses: [{ type: 'Hostname', address: 'a' }, internal('1.1.1.1')] }),
      expected: { nodeAddresses: [internal('1.1.1.1')] },
    },
  ])('$row', async ({ machines, node: asked, expected }) => {
    const { instances } = await setup(machines);
    expect(await instances.instanceMetadata(asked)).toMatchObject(expected);
  });

  const refuse = (backend: Awaited<ReturnType<typeof setup>>['backend']): void => {
    backend.intercept = ({ verb, query }) => {
      if (verb === 'list' && query['fieldSelector'])
        throw badRequest('field label not supported: spec.hostname');
    };
  };

  it('asks for the host name as a field selector, which a real server refuses', async () => {
    const { instances, backend } = await setup([{ name: 'vm', hostname: 'a' }]);
    refuse(backend);
    await expect(instances.instanceMetadata(node('a'))).rejects.toThrow(
      'field label not supported: spec.hostname',
    );
    expect(
      backend.requests
        .slice(1)
        .map(({ verb, name, namespace, query }) => [verb, name, namespace, query['fieldSelector']]),
    ).toEqual([
      ['get', 'a', NAMESPACE, undefined],
      ['list', undefined, NAMESPACE, 'spec.hostname=a'],
    ]);
  });

  it.each<{ row: string; machines: Machine[]; labels?: Record<string, string>; error: string }>([
    { row: 'no machine', machines: [], error: "could not find a virtual machine instance with 'a' hostname" },
    {
      row: 'several machines of one host name',
      machines: [
        { name: 'x', hostname: 'a' },
        { name: 'y', hostname: 'a' },
      ],
      error: "found 2 virtual machine instances with the same 'a' hostname",
    },
    {
      row: 'a label that names none',
      machines: [{ name: 'a' }],
      labels: { 'node.kubernetes.io/instance-id': 'gone' },
      error: 'instance not found',
    },
  ])('fails: $row', async ({ machines, labels, error }) => {
    const { instances } = await setup(machines);
    await expect(instances.instanceMetadata(node('a', labels ? { labels } : {}))).rejects.toThrow(error);
  });

  it('passes on what the server refuses', async () => {
    const { instances, backend } = await setup([{ name: 'a' }]);
    backend.intercept = ({ resource }) => {
      throw forbidden(resource, 'a', 'not you');
    };
    await expect(instances.instanceMetadata(node('a'))).rejects.toThrow('is forbidden: not you');
  });

  describe('with zones', () => {
    const running = [{ name: 'a', status: { nodeName: 'infra-1' } }];
    it.each<{ row: string; labels: Record<string, string>; expected: object }>([
      {
        row: 'zone and region of the node it runs on',
        labels: { 'topology.kubernetes.io/zone': 'z', 'topology.kubernetes.io/region': 'r' },
        expected: { zone: 'z', region: 'r' },
      },
      { row: 'a label that is missing is nothing', labels: {}, expected: { zone: '', region: '' } },
    ])('$row', async ({ labels, expected }) => {
      const { instances, client } = await setup(running, { zones: true });
      await client.create(nodes, { metadata: { name: 'infra-1', labels }, spec: {} });
      expect(await instances.instanceMetadata(node('a'))).toMatchObject(expected);
    });

    it('fails when that node cannot be read', async () => {
      const { instances } = await setup(running, { zones: true });
      await expect(instances.instanceMetadata(node('a'))).rejects.toThrow('nodes "infra-1" not found');
    });

    it('fails when the machine runs nowhere yet', async () => {
      const { instances } = await setup([{ name: 'a' }], { zones: true });
      await expect(instances.instanceMetadata(node('a'))).rejects.toThrow('resource name may not be empty');
    });

    it('reads no node when they are off', async () => {
      const { instances, backend } = await setup(running);
      await instances.instanceMetadata(node('a'));
      expect(backend.requests.filter(({ resource }) => resource.plural === 'nodes')).toEqual([]);
    });
  });
});

describe('existence and power', () => {
  it.each<[VirtualMachineInstancePhase | undefined, boolean]>([
    [undefined, false],
    ['Pending', false],
    ['Scheduling', false],
    ['Scheduled', false],
    ['Running', false],
    ['Succeeded', true],
    ['Failed', true],
  ])('a machine in phase %s exists; shut down: %s', async (phase, down) => {
    const { instances } = await setup([{ name: 'a', ...(phase ? { status: { phase } } : {}) }]);
    const asked = node('anything', { providerID: 'kubevirt://a' });
    expect(await instances.instanceExists(asked)).toBe(true);
    expect(await instances.instanceShutdown(asked)).toBe(down);
  });

  it('a machine that is gone does not exist and is shut down', async () => {
    const { instances } = await setup([]);
    const asked = node('a', { providerID: 'kubevirt://a' });
    expect(await instances.instanceExists(asked)).toBe(false);
    expect(await instances.instanceShutdown(asked)).toBe(true);
  });

  it('a machine whose host is down is an error', async () => {
    const { instances } = await setup([{ name: 'a', status: { phase: 'Unknown' } }]);
    await expect(instances.instanceShutdown(node('a', { providerID: 'kubevirt://a' }))).rejects.toThrow(
      'Instance is in unkown state (propably host down)',
    );
  });

  it.each(['', 'aws:///z/i-1', 'kubevirt://a.b', 'kubevirt://'])(
    'provider ID %j is an error',
    async (providerID) => {
      const { instances } = await setup([{ name: 'a' }]);
      const message = `ProviderID "${providerID}" didn't match expected format "kubevirt://<instance-id>"`;
      await expect(instances.instanceExists(node('a', { providerID }))).rejects.toThrow(message);
      await expect(instances.instanceShutdown(node('a', { providerID }))).rejects.toThrow(message);
    },
  );

  it('an error of the server is one', async () => {
    const { instances, backend } = await setup([{ name: 'a' }]);
    backend.intercept = ({ resource }) => {
      throw forbidden(resource, 'a', 'not you');
    };
    await expect(instances.instanceExists(node('a', { providerID: 'kubevirt://a' }))).rejects.toThrow(
      'not you',
    );
  });
});
