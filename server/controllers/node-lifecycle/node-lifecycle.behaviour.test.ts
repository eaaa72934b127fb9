import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createManualClock, type ManualClock } from '#server/base';
import type { Draft } from '#server/client';
import { createPodGarbageCollector } from '#server/controllers/pod-garbage-collector';
import { type Cluster, podTemplate, startCluster } from '#server/controllers/testing';
import {
  formatMicroTime,
  formatTime,
  leases,
  type Node,
  nodes,
  type Pod,
  pods,
  type Toleration,
} from '#server/kube';
import { createNodeLifecycleController } from './index.ts';

let cluster: Cluster;
let clock: ManualClock;

beforeEach(async () => {
  clock = createManualClock();
  cluster = await startCluster({ clock });
});

afterEach(() => cluster.stop());

function condition(type: string, status: string) {
  const time = formatTime(clock.now());
  return {
    type,
    status,
    reason: 'KubeletSays',
    message: 'so',
    lastHeartbeatTime: time,
    lastTransitionTime: time,
  };
}

async function addNode(name: string, ready = 'True'): Promise<void> {
  const draft: Draft<Node> = { metadata: { name }, spec: {} };
  await cluster.admin.create(nodes, draft);
  await report(name, [
    condition('MemoryPressure', 'False'),
    condition('DiskPressure', 'False'),
    condition('PIDPressure', 'False'),
    condition('Ready', ready),
  ]);
  await cluster.admin.create(leases, {
    metadata: { name, namespace: 'kube-node-lease' },
    spec: { holderIdentity: name, renewTime: formatMicroTime(clock.now()) },
  });
}

const report = (name: string, conditions: object[]) =>
  cluster.admin.patch(
    nodes,
    { name },
    { type: 'strategic', body: { status: { conditions } } },
    { subresource: 'status' },
  );
const renew = (name: string) =>
  cluster.admin.patch(
    leases,
    { namespace: 'kube-node-lease', name },
    { type: 'merge', body: { spec: { renewTime: formatMicroTime(clock.now()) } } },
  );
async function addPod(name: string, node: string, tolerations: Toleration[]): Promise<Pod> {
  const { spec = { containers: [] } } = podTemplate();
  const made = await cluster.admin.create(pods, {
    metadata: { name, namespace: 'default' },
    spec: { ...spec, nodeName: node, tolerations },
  });
  const status = {
    phase: 'Running',
    conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: formatTime(clock.now()) }],
  };
  await cluster.admin.patch(
    pods,
    { namespace: 'default', name },
    { type: 'merge', body: { status } },
    { subresource: 'status' },
  );
  return made;
}

const taintsOf = (node: Node | undefined): string[] =>
  (node?.spec.taints ?? []).map(({ key, effect }) => `${key}:${effect}`).sort();
const untilTaints = (name: string, expected: string[]): Promise<Node> =>
  cluster.until(
    nodes,
    { name },
    (node) => JSON.stringify(taintsOf(node)) === JSON.stringify(expected.sort()),
  );
/** Lets time pass in steps, the living renewing their leases. */
async function pass(seconds: number, living: string[]): Promise<void> {
  for (let left = seconds; left > 0; left -= 5) {
    await clock.advance(5000);
    for (const name of living) await renew(name);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

const NOT_READY = 'node.kubernetes.io/not-ready';
const UNREACHABLE = 'node.kubernetes.io/unreachable';

describe('taints', () => {
  beforeEach(() => cluster.run('node-controller', createNodeLifecycleController));

  it('follow the conditions at once', async () => {
    await addNode('calm');
    await addNode('a');
    await untilTaints('a', []);
    await report('a', [condition('Ready', 'False'), condition('DiskPressure', 'True')]);
    const tainted = await untilTaints('a', [
      `${NOT_READY}:NoExecute`,
      `${NOT_READY}:NoSchedule`,
      'node.kubernetes.io/disk-pressure:NoSchedule',
    ]);
    expect(tainted.spec.taints?.every(({ timeAdded }) => timeAdded !== undefined)).toBe(true);
    await cluster.eventually(async () =>
      expect(await cluster.eventsOf('default', 'a')).toEqual([
        'Normal RegisteredNode Node a event: Registered Node a in Controller',
        'Normal NodeNotReady Node a status is now: NodeNotReady',
      ]),
    );
    await report('a', [condition('Ready', 'True'), condition('DiskPressure', 'False')]);
    await untilTaints('a', []);
    await cluster.admin.patch(
      nodes,
      { name: 'a' },
      { type: 'merge', body: { spec: { unschedulable: true } } },
    );
    await untilTaints('a', ['node.kubernetes.io/unschedulable:NoSchedule']);
  });

  it("leave others' taints as they are", async () => {
    await addNode('calm');
    await addNode('a');
    await untilTaints('a', []);
    const own = {
      key: 'node.cloudprovider.kubernetes.io/uninitialized',
      value: 'true',
      effect: 'NoSchedule',
    };
    await cluster.admin.patch(nodes, { name: 'a' }, { type: 'merge', body: { spec: { taints: [own] } } });
    await report('a', [condition('Ready', 'False')]);
    const node = await untilTaints('a', [
      `${own.key}:NoSchedule`,
      `${NOT_READY}:NoExecute`,
      `${NOT_READY}:NoSchedule`,
    ]);
    expect(node.spec.taints?.[0]).toEqual(own);
  });

  it('do not evict when no node is ready', async () => {
    await addNode('a', 'False');
    await untilTaints('a', [`${NOT_READY}:NoSchedule`]);
    await addNode('b', 'True');
    await untilTaints('a', [`${NOT_READY}:NoSchedule`, `${NOT_READY}:NoExecute`]);
  });
});

describe('a node that falls silent', () => {
  beforeEach(async () => {
    cluster.run('node-controller', createNodeLifecycleController);
    await addNode('calm');
    await addNode('a');
    await untilTaints('a', []);
    await untilTaints('calm', []);
  });

  it('becomes Unknown after 50 s without lease or status, not before', async () => {
    await addPod('web', 'a', [{ operator: 'Exists' }]);
    await pass(60, ['calm', 'a']);
    await pass(45, ['calm']);
    expect(
      (await cluster.admin.get(nodes, { name: 'a' })).status?.conditions?.map(({ status }) => status),
    ).toEqual(['False', 'False', 'False', 'True']);
    await pass(15, ['calm']);
    const node = await untilTaints('a', [`${UNREACHABLE}:NoExecute`, `${UNREACHABLE}:NoSchedule`]);
    expect(
      node.status?.conditions?.map(({ type, status, reason, message }) => [type, status, reason, message]),
    ).toEqual(
      ['MemoryPressure', 'DiskPressure', 'PIDPressure', 'Ready'].map((type) => [
        type,
        'Unknown',
        'NodeStatusUnknown',
        'Kubelet stopped posting node status.',
      ]),
    );
    await cluster.until(
      pods,
      { namespace: 'default', name: 'web' },
      (pod) => pod?.status?.conditions?.[0]?.status === 'False',
    );
    await cluster.eventually(async () =>
      expect(await cluster.eventsOf('default', 'web')).toEqual(['Warning NodeNotReady Node is not ready']),
    );
    expect(taintsOf(await cluster.admin.get(nodes, { name: 'calm' }))).toEqual([]);
  });

  it('is not blamed for a time in which nobody could look', async () => {
    await clock.advance(1000);
    const { paused } = { paused: 600_000 };
    // A paused clock: waits do not fire, wall-clock time goes on.
    const now = clock.now.bind(clock);
    clock.now = () => now() + paused;
    await renew('calm');
    await pass(20, ['calm', 'a']);
    expect(taintsOf(await cluster.admin.get(nodes, { name: 'a' }))).toEqual([]);
    await pass(60, ['calm']);
    await untilTaints('a', [`${UNREACHABLE}:NoExecute`, `${UNREACHABLE}:NoSchedule`]);
  });
});

describe('eviction', () => {
  beforeEach(async () => {
    cluster.run('node-controller', createNodeLifecycleController);
    await addNode('calm');
    await addNode('a');
    await untilTaints('a', []);
  });
  const exists = (name: string): Promise<boolean> =>
    cluster.admin
      .get(pods, { namespace: 'default', name })
      .then(({ metadata }) => metadata.deletionTimestamp === undefined);

  it('takes pods when they bear the taint no longer, and says so', async () => {
    const bears = (tolerationSeconds?: number): Toleration[] => [
      {
        key: NOT_READY,
        operator: 'Exists',
        effect: 'NoExecute',
        ...(tolerationSeconds === undefined ? {} : { tolerationSeconds }),
      },
      { key: UNREACHABLE, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 },
    ];
    await addPod('forever', 'a', bears());
    await addPod('awhile', 'a', bears(300));
    await report('a', [condition('Ready', 'False')]);
    await untilTaints('a', [`${NOT_READY}:NoExecute`, `${NOT_READY}:NoSchedule`]);
    await pass(290, ['calm', 'a']);
    expect(await exists('awhile')).toBe(true);
    await pass(15, ['calm', 'a']);
    const evicted = await cluster.until(
      pods,
      { namespace: 'default', name: 'awhile' },
      (pod) => pod?.metadata.deletionTimestamp !== undefined,
    );
    expect(evicted.status?.conditions?.find(({ type }) => type === 'DisruptionTarget')).toMatchObject({
      status: 'True',
      reason: 'DeletionByTaintManager',
      message: 'Taint manager: deleting due to NoExecute taint',
    });
    await cluster.eventually(async () =>
      expect(await cluster.eventsOf('default', 'awhile')).toContain(
        'Normal TaintManagerEviction Marking for deletion Pod default/awhile',
      ),
    );
    expect(await exists('forever')).toBe(true);
  });

  it('is called off when the taint goes', async () => {
    await addPod('web', 'a', [
      { key: NOT_READY, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 },
    ]);
    await report('a', [condition('Ready', 'False')]);
    await untilTaints('a', [`${NOT_READY}:NoExecute`, `${NOT_READY}:NoSchedule`]);
    await pass(10, ['calm', 'a']);
    await report('a', [condition('Ready', 'True')]);
    await cluster.eventually(async () =>
      expect(await cluster.eventsOf('default', 'web')).toContain(
        'Normal TaintManagerEviction Cancelling deletion of Pod default/web',
      ),
    );
    await pass(310, ['calm', 'a']);
    expect(await exists('web')).toBe(true);
  });
});

it('pods of a node that is gone are removed after the quarantine', async () => {
  cluster.run('pod-garbage-collector', createPodGarbageCollector);
  await addNode('a');
  await addPod('web', 'a', []);
  await clock.advance(60_000);
  await cluster.admin.delete(nodes, { name: 'a' });
  await pass(35, []);
  expect((await cluster.admin.list(pods, { namespace: 'default' })).items).toHaveLength(1);
  await pass(10, []);
  await cluster.eventually(async () =>
    expect((await cluster.admin.list(pods, { namespace: 'default' })).items).toEqual([]),
  );
});
