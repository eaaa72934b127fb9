import { afterEach, describe, expect, it } from 'vitest';
import { createManualClock, createSeededIds, silentLogger } from '#server/base';
import { createInformerFactory } from '#server/client';
import { createFakeBackend } from '#server/client/testing';
import { events, nodes, type Pod, pods } from '#server/kube';
import { createScheduler } from './scheduler.ts';

const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
};

describe('the scheduler', () => {
  const stops: (() => Promise<void> | void)[] = [];
  afterEach(async () => {
    for (const stop of stops.splice(0)) await stop();
  });

  function start() {
    const clock = createManualClock();
    const ids = createSeededIds();
    const backend = createFakeBackend({ clock, ids });
    const client = backend.client({ userAgent: 'kube-scheduler/v1.36.3' });
    const informers = createInformerFactory({ client, clock, log: silentLogger });
    const scheduler = createScheduler({ client, informers, clock, ids, log: silentLogger });
    scheduler.start();
    informers.start();
    stops.push(
      () => scheduler.stop(),
      () => informers.stop(),
    );
    const addNode = (name: string, spec: object = {}): Promise<unknown> =>
      client.create(nodes, {
        metadata: { name, labels: { 'kubernetes.io/hostname': name } },
        spec,
        status: { allocatable: { cpu: '2', memory: '4Gi', pods: '110' } },
      });
    const addPod = (name: string, spec: Partial<Pod['spec']> = {}): Promise<Pod> =>
      client.create(pods, {
        metadata: { name, namespace: 'default' },
        spec: { containers: [{ name: 'c', image: 'nginx' }], ...spec },
      });
    return {
      client,
      addNode,
      addPod,
      get: (name: string) => client.get(pods, { namespace: 'default', name }),
    };
  }

  it('binds a pod and says so', async () => {
    const { client, addNode, addPod, get } = start();
    await addNode('n1');
    await addPod('p');
    await settle();
    expect((await get('p')).spec.nodeName).toBe('n1');
    const [event] = (await client.list(events)).items;
    expect(event).toMatchObject({
      type: 'Normal',
      reason: 'Scheduled',
      message: 'Successfully assigned default/p to n1',
      source: { component: 'default-scheduler' },
      involvedObject: { kind: 'Pod', namespace: 'default', name: 'p' },
    });
  });

  it('says why a pod fits nowhere, and binds it when the taint goes', async () => {
    const { client, addNode, addPod, get } = start();
    await addNode('n1', {
      taints: [
        { key: 'node.cloudprovider.kubernetes.io/uninitialized', value: 'true', effect: 'NoSchedule' },
      ],
    });
    await addPod('p');
    await settle();
    const message =
      '0/1 nodes are available: 1 node(s) had untolerated taint(s). no new claims to deallocate, ' +
      'preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.';
    const pending = await get('p');
    expect(pending.spec.nodeName).toBeUndefined();
    expect(pending.status?.conditions).toMatchObject([
      { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message },
    ]);
    expect((await client.list(events)).items).toMatchObject([
      { type: 'Warning', reason: 'FailedScheduling', message, count: 1 },
    ]);
    await client.patch(nodes, { name: 'n1' }, { type: 'merge', body: { spec: { taints: null } } });
    await settle();
    expect((await get('p')).spec.nodeName).toBe('n1');
  });

  it('counts pods it has just bound', async () => {
    const { addNode, addPod, get } = start();
    await addNode('n1');
    const half = { containers: [{ name: 'c', image: 'nginx', resources: { requests: { cpu: '1' } } }] };
    await Promise.all([addPod('a', half), addPod('b', half), addPod('c', half)]);
    await settle();
    const placed = await Promise.all(['a', 'b', 'c'].map(async (name) => (await get(name)).spec.nodeName));
    expect(placed.filter((name) => name === 'n1')).toHaveLength(2);
    expect(placed.filter((name) => name === undefined)).toHaveLength(1);
  });

  it('leaves pods of other schedulers, gated and pinned ones alone', async () => {
    const { addNode, addPod, get } = start();
    await addNode('n1');
    await addPod('other', { schedulerName: 'mine' });
    await addPod('gated', { schedulingGates: [{ name: 'g' }] });
    await settle();
    expect((await get('other')).status?.conditions).toBeUndefined();
    expect((await get('gated')).status?.conditions).toMatchObject([
      { type: 'PodScheduled', status: 'False', reason: 'SchedulingGated' },
    ]);
    expect([(await get('other')).spec.nodeName, (await get('gated')).spec.nodeName]).toEqual([
      undefined,
      undefined,
    ]);
  });
});
