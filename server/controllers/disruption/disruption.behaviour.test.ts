import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Cluster, startCluster } from '#server/controllers/testing';
import { type Pod, podDisruptionBudgets, pods, StatusError } from '#server/kube';
import { createDisruptionController } from './index.ts';

let cluster: Cluster;

beforeEach(async () => {
  cluster = await startCluster();
  cluster.run('disruption-controller', createDisruptionController);
});

afterEach(() => cluster.stop());

async function readyPod(name: string): Promise<void> {
  const ref = { namespace: 'default', name };
  await cluster.admin.create(pods, {
    metadata: { ...ref, labels: { app: 'web' } },
    spec: { nodeName: 'somewhere', containers: [{ name: 'c', image: 'i' }] },
  });
  const status = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
  await cluster.admin.patch(pods, ref, { type: 'merge', body: { status } }, { subresource: 'status' });
}

function budget(spec: object) {
  return {
    metadata: { namespace: 'default', name: 'b' },
    spec: { selector: { matchLabels: { app: 'web' } }, ...spec },
  };
}

const REF = { namespace: 'default', name: 'b' };

function untilAllowed(disruptionsAllowed: number) {
  return cluster.until(
    podDisruptionBudgets,
    REF,
    (object) =>
      object?.status?.observedGeneration === 1 && object.status.disruptionsAllowed === disruptionsAllowed,
  );
}

async function evict(name: string): Promise<string | undefined> {
  const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace: 'default' } };
  try {
    await cluster.admin.createSubresource<Pod>(pods, { namespace: 'default', name }, 'eviction', eviction);
    return undefined;
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    return `${error.code} ${error.message} ${error.status.details?.causes?.[0]?.message}`;
  }
}

it('evicts as many pods as the budget allows, and refuses the next', async () => {
  for (const name of ['one', 'two']) await readyPod(name);
  await cluster.admin.create(podDisruptionBudgets, budget({ minAvailable: 1 }));
  const { status } = await untilAllowed(1);
  expect(status).toMatchObject({
    currentHealthy: 2,
    desiredHealthy: 1,
    expectedPods: 2,
    conditions: [{ type: 'DisruptionAllowed', status: 'True', reason: 'SufficientPods' }],
  });
  expect(await evict('one')).toBeUndefined();
  await cluster.until(
    podDisruptionBudgets,
    REF,
    (object) => object?.status?.currentHealthy === 1 && object.status.disruptionsAllowed === 0,
  );
  expect(await evict('two')).toBe(
    "429 Cannot evict pod as it would violate the pod's disruption budget. The disruption budget b needs 1 healthy pods and has 1 currently",
  );
});

it('allows nothing when pods have no controller to count by', async () => {
  await readyPod('one');
  await cluster.admin.create(podDisruptionBudgets, budget({ maxUnavailable: 1 }));
  const { status } = await cluster.until(
    podDisruptionBudgets,
    REF,
    (object) => object?.status?.conditions?.[0]?.reason === 'SyncFailed',
  );
  expect([status?.disruptionsAllowed, status?.conditions?.[0]?.message]).toEqual([
    0,
    'found no controller ref for pod "one"',
  ]);
});
