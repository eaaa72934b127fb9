import { afterEach, describe, expect, it } from 'vitest';
import { events, leases, nodes, pods } from '#server/kube';
import { type NodeHarness, startNode } from '../testing/harness.ts';

let harness: NodeHarness | undefined;

afterEach(async () => {
  await harness?.stop();
  harness = undefined;
});

const manifest = (name: string) =>
  `apiVersion: v1\nkind: Pod\nmetadata:\n  name: ${name}\n  namespace: kube-system\nspec:\n  hostNetwork: true\n  containers:\n  - name: ${name}\n    image: registry.k8s.io/pause:3.10.1\n`;

describe('kubelet node', () => {
  it('registers with an external cloud: taint, Hostname only, then keeps what the cloud wrote', async () => {
    harness = await startNode({ flags: ['--cloud-provider=external'] });
    await harness.kubelet.registered;
    const node = await harness.node();
    expect(node.spec?.taints).toEqual([
      { key: 'node.cloudprovider.kubernetes.io/uninitialized', value: 'true', effect: 'NoSchedule' },
    ]);
    expect(node.spec?.providerID).toBeUndefined();
    expect(node.metadata.labels).toEqual({
      'beta.kubernetes.io/arch': 'amd64',
      'beta.kubernetes.io/os': 'linux',
      'kubernetes.io/arch': 'amd64',
      'kubernetes.io/hostname': 'worker',
      'kubernetes.io/os': 'linux',
    });
    expect(node.metadata.annotations).toMatchObject({
      'volumes.kubernetes.io/controller-managed-attach-detach': 'true',
    });
    expect(node.status?.addresses).toEqual([{ type: 'Hostname', address: 'worker' }]);
    const cloud = [
      { type: 'InternalIP', address: '10.0.1.11' },
      { type: 'Hostname', address: 'worker' },
    ];
    await harness.client.patch(
      nodes,
      { name: 'worker' },
      { type: 'merge', body: { status: { addresses: cloud } } },
      { subresource: 'status' },
    );
    await harness.clock.advance(6 * 60_000);
    expect((await harness.node()).status?.addresses).toEqual(cloud);
  });

  it('does not taint a Node that exists', async () => {
    harness = await startNode({ flags: ['--cloud-provider=external'] });
    await harness.kubelet.registered;
    await harness.client.patch(
      nodes,
      { name: 'worker' },
      { type: 'merge', body: { spec: { taints: null } } },
    );
    await harness.kubelet.stop({ graceful: false });
    await harness.kubelet.start();
    await harness.until('lease', async () => (await harness!.client.list(leases, {})).items.length === 1);
    expect((await harness.node()).spec?.taints).toBeUndefined();
  });

  it('reports --node-ip with its annotation', async () => {
    harness = await startNode({ flags: ['--cloud-provider=external', '--node-ip=10.0.1.11'] });
    await harness.kubelet.registered;
    const node = await harness.node();
    expect(node.metadata.annotations?.['alpha.kubernetes.io/provided-node-ip']).toBe('10.0.1.11');
    expect(node.status?.addresses).toEqual([
      { type: 'InternalIP', address: '10.0.1.11' },
      { type: 'Hostname', address: 'worker' },
    ]);
  });

  it('refuses other cloud providers', async () => {
    await expect(startNode({ flags: ['--cloud-provider=aws'] })).rejects.toThrow(
      'cloud provider "aws" was specified, but built-in cloud providers are disabled',
    );
  });

  it('becomes Ready when a CNI configuration appears', async () => {
    harness = await startNode({ networkReady: false });
    await harness.kubelet.registered;
    const ready = async () =>
      (await harness!.node()).status?.conditions?.find((condition) => condition.type === 'Ready');
    expect(await ready()).toMatchObject({
      status: 'False',
      reason: 'KubeletNotReady',
      message:
        'container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized',
    });
    harness.files.mkdir('/etc/cni/net.d', { recursive: true });
    harness.files.writeFile('/etc/cni/net.d/05-cilium.conflist', '{}');
    await harness.until('ready', async () => (await ready())?.status === 'True');
    expect(await ready()).toMatchObject({
      reason: 'KubeletReady',
      message: 'kubelet is posting ready status',
    });
  });

  it('renews its lease and owns it by the Node', async () => {
    harness = await startNode();
    await harness.kubelet.registered;
    const lease = () => harness!.client.get(leases, { namespace: 'kube-node-lease', name: 'worker' });
    await harness.until('lease', async () => (await lease().catch(() => undefined)) !== undefined);
    const first = await lease();
    expect(first.spec).toMatchObject({
      holderIdentity: 'worker',
      leaseDurationSeconds: 40,
      renewTime: '2026-01-01T00:00:00.000000Z',
    });
    await harness.clock.advance(11_000);
    const second = await lease();
    expect(second.spec?.renewTime).not.toBe(first.spec?.renewTime);
    expect(second.metadata.ownerReferences).toEqual([
      expect.objectContaining({ kind: 'Node', name: 'worker' }),
    ]);
  });

  it('does not create a deleted Node again before it is restarted', async () => {
    harness = await startNode({ flags: ['--cloud-provider=external'] });
    await harness.kubelet.registered;
    await harness.client.delete(nodes, { name: 'worker' });
    await harness.clock.advance(60_000);
    expect((await harness.client.list(nodes, {})).items).toEqual([]);
    await harness.kubelet.stop({ graceful: false });
    await harness.kubelet.start();
    await harness.until('node', async () => (await harness!.client.list(nodes, {})).items.length === 1);
    expect((await harness.node()).spec?.taints).toHaveLength(1);
  });

  it('runs static pods without an API server and mirrors them when there is one', async () => {
    harness = await startNode({ manifests: { 'a.yaml': manifest('a') } });
    await harness.until('mirror', async () => (await harness!.client.list(pods, {})).items.length === 1);
    const mirror = await harness.pod('a-worker', 'kube-system');
    expect(mirror.metadata.annotations).toMatchObject({
      'kubernetes.io/config.source': 'file',
      'kubernetes.io/config.mirror': expect.stringMatching(/^[0-9a-f]{32}$/),
    });
    expect(mirror.metadata.ownerReferences).toEqual([
      expect.objectContaining({ kind: 'Node', name: 'worker', controller: true }),
    ]);
    await harness.until(
      'running',
      async () => (await harness!.pod('a-worker', 'kube-system')).status?.phase === 'Running',
    );
    const uid = mirror.metadata.uid;
    await harness.client.delete(
      pods,
      { namespace: 'kube-system', name: 'a-worker' },
      { gracePeriodSeconds: 0 },
    );
    await harness.until('mirror again', async () => {
      const again = await harness!.pod('a-worker', 'kube-system').catch(() => undefined);
      return (
        again !== undefined &&
        again.metadata.uid !== uid &&
        again.status?.phase === 'Running' &&
        again.status.containerStatuses?.[0]?.restartCount === 0
      );
    });
    harness.files.remove('/etc/kubernetes/manifests/a.yaml');
    await harness.until('no mirror', async () => (await harness!.client.list(pods, {})).items.length === 0);
    expect((await harness.client.list(events, {})).items.map((event) => event.reason)).toContain('NodeReady');
  });
});
