import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Draft } from '#server/client';
import { type Cluster, node, podTemplate, startCluster } from '#server/controllers/testing';
import {
  controllerRevisions,
  type DaemonSet,
  daemonSets,
  formatTime,
  nodes,
  type Pod,
  pods,
} from '#server/kube';
import { createDaemonSetController } from './index.ts';

const AGENT = { namespace: 'default', name: 'agent' };
let cluster: Cluster;

beforeEach(async () => {
  cluster = await startCluster();
  cluster.run('daemon-set-controller', createDaemonSetController);
  await cluster.admin.create(nodes, node('a'));
  await cluster.admin.create(nodes, node('b', { labels: { disk: 'ssd' } }));
  await cluster.admin.create(
    nodes,
    node('c', { spec: { taints: [{ key: 'own', value: 'x', effect: 'NoSchedule' }] } }),
  );
  // What admission puts on a new node, and the kubelet's Ready takes off.
  for (const name of ['a', 'b'])
    await cluster.admin.patch(nodes, { name }, { type: 'merge', body: { spec: { taints: null } } });
  await cluster.admin.patch(
    nodes,
    { name: 'c' },
    { type: 'merge', body: { spec: { taints: [{ key: 'own', value: 'x', effect: 'NoSchedule' }] } } },
  );
});

afterEach(() => cluster.stop());

function daemonSet(spec: Partial<DaemonSet['spec']> = {}): Draft<DaemonSet> {
  return {
    metadata: AGENT,
    spec: { selector: { matchLabels: { app: 'agent' } }, template: podTemplate({ app: 'agent' }), ...spec },
  };
}

const listPods = async (): Promise<Pod[]> => (await cluster.admin.list(pods, { namespace: 'default' })).items;
const pinned = (pod: Pod): string | undefined =>
  pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms?.[0]
    ?.matchFields?.[0]?.values?.[0];
const run = async (pod: Pod): Promise<void> => {
  const ref = { namespace: 'default', name: pod.metadata.name };
  if (!pod.spec.nodeName) {
    await cluster.admin.createSubresource(pods, ref, 'binding', {
      apiVersion: 'v1',
      kind: 'Binding',
      metadata: { name: pod.metadata.name },
      target: { kind: 'Node', name: pinned(pod) },
    } as never);
  }
  const conditions = [{ type: 'Ready', status: 'True', lastTransitionTime: formatTime(Date.now()) }];
  await cluster.admin.patch(
    pods,
    ref,
    { type: 'merge', body: { status: { phase: 'Running', conditions } } },
    { subresource: 'status' },
  );
};
const nodesOfPods = async (): Promise<(string | undefined)[]> => (await listPods()).map(pinned).sort();

it('puts one pod on every node that fits, and counts', async () => {
  await cluster.admin.create(daemonSets, daemonSet());
  await cluster.eventually(async () => expect(await nodesOfPods()).toEqual(['a', 'b']));
  for (const pod of await listPods()) await run(pod);
  const done = await cluster.until(daemonSets, AGENT, (set) => set?.status?.numberAvailable === 2);
  expect(done.status).toEqual({
    currentNumberScheduled: 2,
    numberMisscheduled: 0,
    desiredNumberScheduled: 2,
    numberReady: 2,
    observedGeneration: 1,
    updatedNumberScheduled: 2,
    numberAvailable: 2,
  });
  const [pod] = await listPods();
  const [revision] = (await cluster.admin.list(controllerRevisions, { namespace: 'default' })).items;
  const hash = revision?.metadata.labels?.['controller-revision-hash'];
  expect(revision?.metadata.name).toBe(`agent-${hash}`);
  expect(revision?.revision).toBe(1);
  expect(pod?.metadata.labels).toEqual({
    app: 'agent',
    'controller-revision-hash': hash,
    'pod-template-generation': '1',
  });
  expect(pod?.spec.tolerations?.slice(0, 6)).toEqual([
    { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute' },
    { key: 'node.kubernetes.io/unreachable', operator: 'Exists', effect: 'NoExecute' },
    { key: 'node.kubernetes.io/disk-pressure', operator: 'Exists', effect: 'NoSchedule' },
    { key: 'node.kubernetes.io/memory-pressure', operator: 'Exists', effect: 'NoSchedule' },
    { key: 'node.kubernetes.io/pid-pressure', operator: 'Exists', effect: 'NoSchedule' },
    { key: 'node.kubernetes.io/unschedulable', operator: 'Exists', effect: 'NoSchedule' },
  ]);
});

it('follows nodes as they come, change and are tainted', async () => {
  await cluster.admin.create(
    daemonSets,
    daemonSet({
      template: {
        ...podTemplate({ app: 'agent' }),
        spec: { containers: [{ name: 'main', image: 'x' }], nodeSelector: { disk: 'ssd' } },
      },
    }),
  );
  await cluster.eventually(async () => expect(await nodesOfPods()).toEqual(['b']));
  await cluster.admin.patch(
    nodes,
    { name: 'a' },
    { type: 'merge', body: { metadata: { labels: { disk: 'ssd' } } } },
  );
  await cluster.eventually(async () => expect(await nodesOfPods()).toEqual(['a', 'b']));
  await cluster.admin.patch(
    nodes,
    { name: 'b' },
    { type: 'merge', body: { spec: { taints: [{ key: 'out', effect: 'NoExecute' }] } } },
  );
  await cluster.eventually(async () => expect(await nodesOfPods()).toEqual(['a']));
});

it('updates one node after the other, and returns to a former revision', async () => {
  await cluster.admin.create(daemonSets, daemonSet());
  await cluster.eventually(async () => expect(await nodesOfPods()).toEqual(['a', 'b']));
  for (const pod of await listPods()) await run(pod);
  await cluster.until(daemonSets, AGENT, (set) => set?.status?.numberAvailable === 2);
  await cluster.admin.patch(daemonSets, AGENT, {
    type: 'strategic',
    body: { spec: { template: podTemplate({ app: 'agent', image: 'v2' }) } },
  });
  const images = async (): Promise<(string | undefined)[]> =>
    (await listPods())
      .filter(({ metadata }) => !metadata.deletionTimestamp)
      .map(({ spec }) => spec.containers[0]?.image)
      .sort();
  /** What a kubelet does with the pods being deleted. */
  const reap = async (): Promise<void> => {
    for (const { metadata } of await listPods()) {
      if (metadata.deletionTimestamp)
        await cluster.admin.delete(
          pods,
          { namespace: 'default', name: metadata.name },
          { gracePeriodSeconds: 0 },
        );
    }
  };
  await cluster.eventually(async () => {
    await reap();
    expect(await images()).toEqual(['nginx:1', 'v2']);
  });
  const fresh = (await listPods()).find(({ spec }) => spec.containers[0]?.image === 'v2');
  if (fresh) await run(fresh);
  await cluster.eventually(async () => {
    await reap();
    expect(await images()).toEqual(['v2', 'v2']);
  });
  const revisions = async () =>
    (await cluster.admin.list(controllerRevisions, { namespace: 'default' })).items
      .map(({ revision }) => revision)
      .sort();
  expect(await revisions()).toEqual([1, 2]);
  await cluster.admin.patch(daemonSets, AGENT, {
    type: 'strategic',
    body: { spec: { template: podTemplate({ app: 'agent' }) } },
  });
  await cluster.eventually(async () => expect(await revisions()).toEqual([2, 3]));
});

it('OnDelete leaves old pods alone; a failed pod is replaced', async () => {
  await cluster.admin.create(daemonSets, daemonSet({ updateStrategy: { type: 'OnDelete' } }));
  await cluster.eventually(async () => expect(await nodesOfPods()).toEqual(['a', 'b']));
  for (const pod of await listPods()) await run(pod);
  await cluster.admin.patch(daemonSets, AGENT, {
    type: 'strategic',
    body: { spec: { template: podTemplate({ app: 'agent', image: 'v2' }) } },
  });
  const seen = await cluster.until(
    daemonSets,
    AGENT,
    (set) => set?.status?.observedGeneration === set?.metadata.generation,
  );
  expect(seen.status?.updatedNumberScheduled).toBeUndefined();
  const [first] = await listPods();
  const name = first?.metadata.name ?? '';
  await cluster.admin.patch(
    pods,
    { namespace: 'default', name },
    { type: 'merge', body: { status: { phase: 'Failed' } } },
    { subresource: 'status' },
  );
  await cluster.eventually(async () => {
    expect(await cluster.eventsOf('default', 'agent')).toContain(
      `Warning FailedDaemonPod Found failed daemon pod default/${name} on node ${first?.spec.nodeName}, will try to kill it`,
    );
    expect((await listPods()).map(({ spec }) => spec.containers[0]?.image).sort()).toEqual(['nginx:1', 'v2']);
  });
});
