import { afterEach, describe, expect, it } from 'vitest';
import type { ApiBackend, Draft } from '#server/client';
import {
  actAsKubelet,
  type Cluster,
  type Kubelet,
  podTemplate,
  startCluster,
} from '#server/controllers/testing';
import { type Pod, pods, type ReplicaSet, replicaSets, type WatchEvent } from '#server/kube';
import { createReplicaSetController } from './index.ts';

const WEB = { namespace: 'default', name: 'web' };

let cluster: Cluster;
let kubelet: Kubelet | undefined;

afterEach(async () => {
  kubelet?.stop();
  kubelet = undefined;
  await cluster.stop();
});

function replicaSet(replicas: number): Draft<ReplicaSet> {
  return {
    metadata: WEB,
    spec: { replicas, selector: { matchLabels: { app: 'web' } }, template: podTemplate() },
  };
}

async function start(wrap?: (backend: ApiBackend) => ApiBackend): Promise<void> {
  cluster = await startCluster(wrap ? { wrap } : {});
  cluster.run('replicaset-controller', createReplicaSetController);
}

const listPods = async (): Promise<Pod[]> => (await cluster.admin.list(pods, { namespace: 'default' })).items;

describe('a ReplicaSet', () => {
  it('gets its pods, and says how they are', async () => {
    await start();
    const { metadata } = await cluster.admin.create(replicaSets, replicaSet(2));
    const waiting = await cluster.until(replicaSets, WEB, (set) => set?.status?.replicas === 2);
    expect(waiting.status).toEqual({
      replicas: 2,
      fullyLabeledReplicas: 2,
      terminatingReplicas: 0,
      observedGeneration: 1,
    });
    const made = await listPods();
    expect(
      made.map((pod) => [pod.metadata.generateName, pod.metadata.labels, pod.metadata.ownerReferences]),
    ).toEqual(
      made.map(() => [
        'web-',
        { app: 'web' },
        [
          {
            apiVersion: 'apps/v1',
            kind: 'ReplicaSet',
            name: 'web',
            uid: metadata.uid,
            controller: true,
            blockOwnerDeletion: true,
          },
        ],
      ]),
    );
    kubelet = actAsKubelet(cluster.admin);
    const ready = await cluster.until(replicaSets, WEB, (set) => set?.status?.availableReplicas === 2);
    expect(ready.status).toEqual({
      replicas: 2,
      fullyLabeledReplicas: 2,
      readyReplicas: 2,
      availableReplicas: 2,
      terminatingReplicas: 0,
      observedGeneration: 1,
    });
    const events = await cluster.eventsOf('default', 'web');
    expect(events.sort()).toEqual(
      made.map((pod) => `Normal SuccessfulCreate Created pod: ${pod.metadata.name}`).sort(),
    );
  });

  it('loses the pods that are too many, the least useful first', async () => {
    await start();
    const spared = new Set<string>();
    kubelet = actAsKubelet(
      cluster.admin,
      (pod) => spared.size < 2 && spared.add(pod.metadata.name) !== undefined,
    );
    await cluster.admin.create(replicaSets, replicaSet(4));
    await cluster.until(
      replicaSets,
      WEB,
      (set) => set?.status?.replicas === 4 && set.status.readyReplicas === 2,
    );
    await cluster.admin.patch(replicaSets, WEB, { type: 'merge', body: { spec: { replicas: 2 } } });
    await cluster.eventually(async () =>
      expect((await listPods()).map((pod) => pod.metadata.name).sort()).toEqual([...spared].sort()),
    );
  });

  it('replaces a pod that is deleted or has failed', async () => {
    await start();
    await cluster.admin.create(replicaSets, replicaSet(1));
    const [first] = await cluster.eventually(async () => {
      const found = await listPods();
      expect(found).toHaveLength(1);
      return found;
    });
    await cluster.admin.patch(
      pods,
      { namespace: 'default', name: first?.metadata.name ?? '' },
      { type: 'merge', body: { status: { phase: 'Failed' } } },
      { subresource: 'status' },
    );
    await cluster.eventually(async () => expect(await listPods()).toHaveLength(2));
    await cluster.until(replicaSets, WEB, (set) => set?.status?.replicas === 1);
  });

  it('adopts matching orphans and releases pods that match no longer', async () => {
    await start();
    await cluster.admin.create(pods, {
      metadata: { name: 'stray', namespace: 'default', labels: { app: 'web' } },
      spec: podTemplate().spec ?? { containers: [] },
    });
    const { metadata } = await cluster.admin.create(replicaSets, replicaSet(1));
    const stray = { namespace: 'default', name: 'stray' };
    await cluster.until(pods, stray, (pod) => pod?.metadata.ownerReferences?.[0]?.uid === metadata.uid);
    expect(await listPods()).toHaveLength(1);
    await cluster.admin.patch(pods, stray, {
      type: 'merge',
      body: { metadata: { labels: { app: 'quarantine' } } },
    });
    await cluster.until(pods, stray, (pod) => pod !== undefined && !pod.metadata.ownerReferences?.length);
    await cluster.eventually(async () => expect(await listPods()).toHaveLength(2));
  });

  it('says why it cannot create pods', async () => {
    await start((backend) => ({
      ...backend,
      request: (request) => {
        if (request.verb !== 'create' || request.resource.plural !== 'pods') return backend.request(request);
        const body = request.body as Pod;
        return backend.request({ ...request, body: { ...body, spec: { ...body.spec, containers: [] } } });
      },
    }));
    await cluster.admin.create(replicaSets, replicaSet(3));
    const failed = await cluster.until(replicaSets, WEB, (set) => set?.status?.conditions !== undefined);
    const {
      lastTransitionTime: _,
      message = '',
      ...rest
    } = failed.status?.conditions?.[0] ?? { type: '', status: '' };
    expect(rest).toEqual({ type: 'ReplicaFailure', status: 'True', reason: 'FailedCreate' });
    expect(message).toMatch(/spec\.containers: Required value$/);
    await cluster.eventually(async () =>
      expect((await cluster.eventsOf('default', 'web'))[0]).toMatch(
        /^Warning FailedCreate Error creating: Pod/,
      ),
    );
  });
});

it('creates no pod twice when its cache is late', async () => {
  const held: (() => void)[] = [];
  let late = true;
  await start((backend) => ({
    ...backend,
    watch: (request, onEvent, onEnd) => {
      const pass = (event: WatchEvent): void => {
        if (late && request.resource.plural === 'pods') held.push(() => onEvent(event));
        else onEvent(event);
      };
      return backend.watch(request, pass, onEnd);
    },
  }));
  await cluster.admin.create(replicaSets, replicaSet(3));
  await cluster.eventually(async () => expect(await listPods()).toHaveLength(3));
  for (const annotation of ['a', 'b', 'c']) {
    await cluster.admin.patch(replicaSets, WEB, {
      type: 'merge',
      body: { metadata: { annotations: { touched: annotation } } },
    });
  }
  await cluster.until(replicaSets, WEB, (set) => set?.status?.observedGeneration === 1);
  expect(await listPods()).toHaveLength(3);
  late = false;
  for (const release of held) release();
  await cluster.until(replicaSets, WEB, (set) => set?.status?.replicas === 3);
  expect(await listPods()).toHaveLength(3);
});
