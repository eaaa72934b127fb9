import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { conflict, events, forbidden, type Node, nodes, STALE_WRITE } from '#server/kube';
import { type InstanceMetadata, InstanceNotFound } from '../contract.ts';
import {
  createControllerHarness,
  internal,
  machine,
  type NodeParts,
  named,
  nodeDraft,
  TAINT,
} from '../testing/harness.ts';

describe('the initialisation of a node', () => {
  it('is one PUT, one PATCH of the status, one event, under the name of the binary', async () => {
    const harness = createControllerHarness({
      metadata: () => machine({ instanceType: 'm1', zone: 'z', region: 'r' }),
    });
    await harness.create(nodeDraft('a'));
    await harness.start();
    const writes = harness.writes();
    expect(writes.map(named)).toEqual(['update nodes/a', 'patch nodes/a/status', 'create events']);
    expect(writes.map(({ query }) => query['fieldManager'])).toEqual(
      Array(3).fill('kubevirt-cloud-controller-manager'),
    );
    const [put, patch, event] = writes.map(({ body }) => body);
    expect(put).toMatchObject({
      metadata: {
        name: 'a',
        labels: {
          'beta.kubernetes.io/instance-type': 'm1',
          'node.kubernetes.io/instance-type': 'm1',
          'failure-domain.beta.kubernetes.io/zone': 'z',
          'topology.kubernetes.io/zone': 'z',
          'failure-domain.beta.kubernetes.io/region': 'r',
          'topology.kubernetes.io/region': 'r',
        },
      },
    });
    expect((put as Node).spec).toEqual({ providerID: 'fake://machine' });
    expect((put as Node).metadata.resourceVersion).toBeTruthy();
    expect(writes[1]?.contentType).toBe('application/strategic-merge-patch+json');
    expect(patch).toEqual({
      status: {
        addresses: [internal('10.0.0.1'), { type: 'Hostname', address: 'a' }, { $patch: 'replace' }],
      },
    });
    expect(event).toMatchObject({
      metadata: { namespace: 'default' },
      involvedObject: {
        kind: 'Node',
        apiVersion: 'v1',
        name: 'a',
        uid: (await harness.node('a')).metadata.uid,
      },
      type: 'Normal',
      reason: 'Synced',
      message: 'Node synced successfully',
      source: { component: 'cloud-node-controller' },
    });
    expect(harness.output.lines()).toEqual([
      'I node_controller.go:176] Sending events to api server.',
      'I node_controller.go:185] Waiting for informer caches to sync',
      'I node_controller.go:429] Initializing node a with cloud provider',
      'I node_controller.go:474] Successfully initialized node a with cloud provider',
    ]);
    await harness.stop();
  });

  it('is seen as taint gone with labels and provider ID, then addresses', async () => {
    const harness = createControllerHarness();
    await harness.start();
    const seen: Pick<Node, 'spec' | 'status'>[] = [];
    harness.outsider.watch(
      nodes,
      {},
      ({ object }) =>
        void seen.push({ spec: object.spec, ...(object.status ? { status: object.status } : {}) }),
      () => undefined,
    );
    await harness.create(nodeDraft('a'));
    await harness.clock.advance(0);
    const hostname = { type: 'Hostname', address: 'a' };
    expect(seen).toEqual([
      { spec: { taints: [TAINT] }, status: { addresses: [hostname] } },
      { spec: { providerID: 'fake://machine' }, status: { addresses: [hostname] } },
      { spec: { providerID: 'fake://machine' }, status: { addresses: [internal('10.0.0.1'), hostname] } },
    ]);
    await harness.stop();
  });

  const other = { key: 'example.com/mine', effect: 'NoExecute' };
  it.each<{ row: string; node: NodeParts; metadata?: Partial<InstanceMetadata>; expected: object }>([
    {
      row: 'every taint with the key goes, whatever its value and effect; others stay',
      node: { spec: { taints: [other, { key: TAINT.key, effect: 'NoExecute' }, { ...TAINT, value: 'x' }] } },
      expected: { spec: { taints: [other], providerID: 'fake://machine' } },
    },
    {
      row: 'a provider ID that is there is never overwritten',
      node: { spec: { taints: [TAINT], providerID: 'other://1' } },
      expected: { spec: { providerID: 'other://1' } },
    },
    {
      row: 'a cloud without provider ID uses the one of the node',
      node: { spec: { taints: [TAINT], providerID: 'other://1' } },
      metadata: { providerID: '' },
      expected: { spec: { providerID: 'other://1' } },
    },
    {
      row: 'instance type, zone and region overwrite both labels each',
      node: {
        metadata: {
          labels: { 'topology.kubernetes.io/zone': 'old', 'node.kubernetes.io/instance-type': 'old' },
        },
      },
      metadata: { zone: 'z', instanceType: 't' },
      expected: {
        metadata: {
          labels: {
            'beta.kubernetes.io/instance-type': 't',
            'failure-domain.beta.kubernetes.io/zone': 'z',
            'node.kubernetes.io/instance-type': 't',
            'topology.kubernetes.io/zone': 'z',
          },
        },
      },
    },
    {
      row: 'additional labels: none of kubernetes.io or k8s.io, none that is there, the rest',
      node: { metadata: { labels: { mine: 'kept' } } },
      metadata: {
        additionalLabels: {
          'node.kubernetes.io/x': '1',
          'x.k8s.io/y': '1',
          'topology.k8s.aws/zone-id': 'use1',
          'notkubernetes.io/a': '1',
          mine: 'lost',
          plain: '1',
        },
      },
      expected: {
        metadata: {
          labels: { mine: 'kept', plain: '1', 'topology.k8s.aws/zone-id': 'use1', 'notkubernetes.io/a': '1' },
        },
      },
    },
  ])('$row', async ({ node, metadata, expected }) => {
    const harness = createControllerHarness({ metadata: () => machine(metadata) });
    await harness.create(nodeDraft('a', node));
    await harness.start();
    const { metadata: meta, spec } = await harness.node('a');
    expect({ metadata: { labels: meta.labels }, spec }).toMatchObject(expected);
    expect(Object.keys(meta.labels ?? {}).length).toBe(
      Object.keys((expected as Partial<Node>).metadata?.labels ?? {}).length,
    );
    await harness.stop();
  });

  it.each<{ row: string; metadata: () => InstanceMetadata | undefined; node?: NodeParts; error: string }>([
    {
      row: 'the cloud does not know the machine',
      metadata: () => {
        throw InstanceNotFound;
      },
      error: 'failed to get instance metadata for node a: instance not found',
    },
    {
      row: 'neither cloud nor node have a provider ID',
      metadata: () => machine({ providerID: '' }),
      error:
        'failed to get instance metadata for node a: cloud provider does not set node provider ID for node a',
    },
    {
      row: 'the kubelet insists on an address the cloud does not know',
      metadata: () => machine(),
      node: { metadata: { annotations: { 'alpha.kubernetes.io/provided-node-ip': '10.9.9.9' } } },
      error:
        'failed to get node modifiers from cloud provider: provided node ip for node "a" is not valid: failed to get node address from cloud provider that matches ip: 10.9.9.9',
    },
  ])(
    'fails and is tried again, the taint staying and nothing written: $row',
    async ({ metadata, node, error }) => {
      const harness = createControllerHarness({ metadata });
      await harness.create(nodeDraft('a', node));
      await harness.start();
      await harness.clock.advance(4);
      expect(harness.asked).toHaveLength(1);
      await harness.clock.advance(1 + 10 + 20 + 40);
      expect(harness.asked).toHaveLength(5);
      expect(harness.writes()).toEqual([]);
      expect((await harness.node('a')).spec.taints).toEqual([TAINT]);
      const text = `error syncing 'a': ${error}, requeuing`;
      expect(harness.output.lines()).toContain(`I node_controller.go:233] ${text}`);
      expect(harness.output.lines()).toContain(
        `E node_controller.go:244] "Unhandled Error" err=${JSON.stringify(text)} logger="UnhandledError"`,
      );
      await harness.stop();
    },
  );

  it('leaves a node alone about which the cloud says nothing, until it changes', async () => {
    const harness = createControllerHarness({ metadata: () => undefined });
    await harness.create(nodeDraft('a'));
    await harness.start();
    await harness.clock.advance(1_000_000);
    expect(harness.asked).toEqual(['a']);
    expect(harness.output.lines()).toContain(
      'I node_controller.go:439] Skip sync node a because cloud provided nil metadata',
    );
    await harness.outsider.patch(
      nodes,
      { name: 'a' },
      { type: 'merge', body: { metadata: { labels: { x: 'y' } } } },
    );
    await harness.clock.advance(0);
    expect(harness.asked).toEqual(['a', 'a']);
    expect(harness.writes()).toEqual([]);
    await harness.stop();
  });

  it('repeats the PUT after a stale write, on the newer node and without asking the cloud again', async () => {
    const harness = createControllerHarness({ metadata: () => machine({ zone: 'z' }) });
    await harness.create(nodeDraft('a'));
    let refused = 0;
    harness.backend.intercept = async ({ verb, resource }) => {
      if (verb !== 'update' || refused === 2) return;
      refused += 1;
      if (refused === 1) {
        const labels = { fresh: 'yes' };
        await harness.outsider.patch(nodes, { name: 'a' }, { type: 'merge', body: { metadata: { labels } } });
      }
      throw conflict(resource, 'a', STALE_WRITE);
    };
    await harness.start();
    await harness.clock.advance(200);
    expect(harness.asked).toEqual(['a']);
    const { metadata, spec } = await harness.node('a');
    expect(metadata.labels).toMatchObject({ fresh: 'yes', 'topology.kubernetes.io/zone': 'z' });
    expect(spec).toEqual({ providerID: 'fake://machine' });
    await harness.stop();
  });

  it('repeats the PUT at once when the newer node is there', async () => {
    const harness = createControllerHarness();
    await harness.create(nodeDraft('a'));
    let others = 3;
    harness.backend.intercept = async ({ verb }) => {
      if (verb !== 'update' || others === 0) return;
      others -= 1;
      const body = { metadata: { labels: { writes: `${others}` } } };
      await harness.outsider.patch(nodes, { name: 'a' }, { type: 'merge', body });
    };
    await harness.start();
    expect(harness.writes().map(named)).toEqual([
      ...Array(4).fill('update nodes/a'),
      'patch nodes/a/status',
      'create events',
    ]);
    await harness.stop();
    expect(harness.clock.pending).toBe(0);
  });

  it('goes back to the queue after 20 stale writes, and at once after another refusal', async () => {
    const harness = createControllerHarness();
    await harness.create(nodeDraft('a'));
    harness.backend.intercept = ({ verb, resource }) => {
      if (verb === 'update') throw conflict(resource, 'a', STALE_WRITE);
    };
    await harness.start();
    while (!harness.output.text().includes('error syncing')) await harness.clock.advance(1);
    expect(harness.writes()).toHaveLength(20);
    expect(harness.output.text()).toContain(
      `error syncing 'a': Operation cannot be fulfilled on nodes "a": ${STALE_WRITE}, requeuing`,
    );
    harness.backend.intercept = ({ verb, resource }) => {
      if (verb === 'update') throw forbidden(resource, 'a', 'not you');
    };
    await harness.clock.advance(5);
    expect(harness.output.text()).toContain(`error syncing 'a': nodes "a" is forbidden: not you, requeuing`);
    await harness.stop();
  });

  it('counts although the addresses could not be written: the periodic look heals them', async () => {
    const harness = createControllerHarness();
    await harness.create(nodeDraft('a'));
    harness.backend.intercept = ({ subresource, resource }) => {
      if (subresource === 'status') throw forbidden(resource, 'a', 'not you');
    };
    await harness.start();
    expect(harness.writes().map(named)).toEqual(['update nodes/a', 'patch nodes/a/status', 'create events']);
    expect(harness.output.text()).toContain(
      'Error patching node with cloud ip addresses = [failed to patch status ',
    );
    harness.backend.intercept = undefined;
    await harness.clock.advance(300_000);
    expect((await harness.node('a')).status?.addresses).toEqual([
      internal('10.0.0.1'),
      { type: 'Hostname', address: 'a' },
    ]);
    await harness.stop();
  });

  it('happens again when the taint comes back: labels are written anew, the provider ID is not', async () => {
    let zone = 'z1';
    const harness = createControllerHarness({
      metadata: () => machine({ zone, providerID: `fake://${zone}` }),
    });
    await harness.create(nodeDraft('a'));
    await harness.start();
    zone = 'z2';
    await harness.outsider.patch(
      nodes,
      { name: 'a' },
      { type: 'merge', body: { metadata: { labels: { x: 'y' } } } },
    );
    await harness.clock.advance(300_000);
    expect((await harness.node('a')).metadata.labels?.['topology.kubernetes.io/zone']).toBe('z1');
    await harness.outsider.patch(
      nodes,
      { name: 'a' },
      { type: 'merge', body: { spec: { taints: [TAINT] } } },
    );
    await harness.clock.advance(0);
    const node = await harness.node('a');
    expect(node.metadata.labels?.['topology.kubernetes.io/zone']).toBe('z2');
    expect(node.spec).toEqual({ providerID: 'fake://z1' });
    await harness.stop();
  });

  it('never takes the taint from a node without a provider ID, whatever happens in whatever order', async () => {
    const step = fc.oneof(
      fc.record({ does: fc.constant('create' as const), name: fc.constantFrom('a', 'b') }),
      fc.record({ does: fc.constant('delete' as const), name: fc.constantFrom('a', 'b') }),
      fc.record({ does: fc.constant('taint' as const), name: fc.constantFrom('a', 'b') }),
      fc.record({ does: fc.constant('touch' as const), name: fc.constantFrom('a', 'b') }),
      fc.record({ does: fc.constant('identify' as const), name: fc.constantFrom('a', 'b') }),
      fc.record({
        does: fc.constant('cloud' as const),
        answer: fc.constantFrom('error', 'nothing', 'no ID', 'machine'),
      }),
      fc.record({ does: fc.constant('api' as const), refuses: fc.boolean() }),
      fc.record({ does: fc.constant('wait' as const), time: fc.constantFrom(0, 1, 50, 300_000) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
        let answer = 'machine';
        const harness = createControllerHarness({
          metadata() {
            if (answer === 'error') throw InstanceNotFound;
            if (answer === 'nothing') return undefined;
            return machine(answer === 'no ID' ? { providerID: '' } : {});
          },
        });
        const bare: string[] = [];
        harness.outsider.watch(
          nodes,
          {},
          ({ type, object }) => {
            const tainted = object.spec.taints?.some(({ key }) => key === TAINT.key) ?? false;
            if (type !== 'DELETED' && !tainted && !object.spec.providerID) bare.push(object.metadata.name);
          },
          () => undefined,
        );
        const merge = (name: string, body: object): Promise<Node> =>
          harness.outsider.patch(nodes, { name }, { type: 'merge', body });
        await harness.start();
        for (const one of steps) {
          const attempt = async (): Promise<unknown> => {
            if (one.does === 'create') return harness.create(nodeDraft(one.name));
            if (one.does === 'delete') return harness.outsider.delete(nodes, { name: one.name });
            if (one.does === 'taint') return merge(one.name, { spec: { taints: [TAINT] } });
            if (one.does === 'touch')
              return merge(one.name, { metadata: { labels: { at: `${harness.clock.now()}` } } });
            if (one.does === 'identify') return merge(one.name, { spec: { providerID: 'fake://machine' } });
            if (one.does === 'cloud') answer = one.answer;
            if (one.does === 'wait') await harness.clock.advance(one.time);
            if (one.does === 'api') {
              harness.backend.intercept = one.refuses
                ? ({ verb, resource }) => {
                    if (verb === 'update') throw conflict(resource, 'x', STALE_WRITE);
                  }
                : undefined;
            }
            return undefined;
          };
          // Creating what is there and changing what is not is refused, as it should be.
          await attempt().catch(() => undefined);
        }
        harness.backend.intercept = undefined;
        await harness.stop();
        expect(bare).toEqual([]);
      }),
      { numRuns: 40 },
    );
  });

  it('tells nobody but the log of a failure: no event', async () => {
    const harness = createControllerHarness({
      metadata: () => {
        throw InstanceNotFound;
      },
    });
    await harness.create(nodeDraft('a'));
    await harness.start();
    await harness.clock.advance(10_000);
    expect((await harness.outsider.list(events)).items).toEqual([]);
    await harness.stop();
  });

  it('of a node that is gone is nothing', async () => {
    let removed: Promise<void> | undefined;
    const harness = createControllerHarness({
      cloud: {
        instancesV2: {
          instanceExists: async () => true,
          instanceShutdown: async () => false,
          async instanceMetadata(node) {
            asked.push(node.metadata.name);
            // Somebody deletes it while the cloud answers.
            removed ??= harness.outsider.delete(nodes, { name: 'a' });
            await removed;
            return machine();
          },
        },
      },
    });
    const asked: string[] = [];
    await harness.start();
    await harness.create(nodeDraft('a'));
    await harness.clock.advance(1000);
    expect([asked, harness.writes()]).toEqual([['a'], []]);
    expect(harness.output.lines().filter((line) => line.startsWith('E'))).toHaveLength(1);
    await harness.stop();
  });
});
