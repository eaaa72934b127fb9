import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createReplicaSetController } from '#server/controllers/replica-set';
import {
  actAsKubelet,
  type Cluster,
  deployment,
  type Kubelet,
  podTemplate,
  startCluster,
} from '#server/controllers/testing';
import { type Deployment, deployments, pods, type ReplicaSet, replicaSets } from '#server/kube';
import { createDeploymentController } from './index.ts';

const WEB = { namespace: 'default', name: 'web' };

let cluster: Cluster;
let kubelet: Kubelet | undefined;

beforeEach(async () => {
  cluster = await startCluster();
  cluster.run('replicaset-controller', createReplicaSetController);
  cluster.run('deployment-controller', createDeploymentController);
});

afterEach(async () => {
  kubelet?.stop();
  kubelet = undefined;
  await cluster.stop();
});

const complete = (object: Deployment | undefined): boolean => {
  const {
    observedGeneration,
    updatedReplicas = 0,
    replicas = 0,
    availableReplicas = 0,
  } = object?.status ?? {};
  const size = object?.spec.replicas;
  return (
    observedGeneration === object?.metadata.generation &&
    [updatedReplicas, replicas, availableReplicas].every((count) => count === size)
  );
};
const timeless = (object: Deployment) => ({
  ...object.status,
  conditions: object.status?.conditions?.map(
    ({ lastTransitionTime: _, lastUpdateTime: __, ...rest }) => rest,
  ),
});
const setsByImage = async (): Promise<Map<string | undefined, ReplicaSet>> => {
  const { items } = await cluster.admin.list(replicaSets, { namespace: 'default' });
  return new Map(items.map((set) => [set.spec.template?.spec?.containers[0]?.image, set]));
};
const setImage = (image: string) =>
  cluster.admin.patch(deployments, WEB, {
    type: 'strategic',
    body: { spec: { template: podTemplate({ image }) } },
  });

describe('a rolling update', () => {
  beforeEach(() => {
    kubelet = actAsKubelet(cluster.admin);
  });

  it('creates the first ReplicaSet and reports a complete rollout', async () => {
    await cluster.admin.create(deployments, deployment({ replicas: 3 }));
    const done = await cluster.until(
      deployments,
      WEB,
      (object) => complete(object) && object?.status?.conditions?.[1]?.reason === 'NewReplicaSetAvailable',
    );
    const set = (await setsByImage()).get('nginx:1');
    const name = set?.metadata.name ?? '';
    expect(name).toMatch(/^web-[bcdfghjklmnpqrstvwxz2456789]{4,10}$/);
    expect(timeless(done)).toEqual({
      observedGeneration: 1,
      replicas: 3,
      updatedReplicas: 3,
      readyReplicas: 3,
      availableReplicas: 3,
      terminatingReplicas: 0,
      conditions: [
        {
          type: 'Available',
          status: 'True',
          reason: 'MinimumReplicasAvailable',
          message: 'Deployment has minimum availability.',
        },
        {
          type: 'Progressing',
          status: 'True',
          reason: 'NewReplicaSetAvailable',
          message: `ReplicaSet "${name}" has successfully progressed.`,
        },
      ],
    });
    expect(done.metadata.annotations).toEqual({ 'deployment.kubernetes.io/revision': '1' });
    expect(set?.metadata.annotations).toEqual({
      'deployment.kubernetes.io/desired-replicas': '3',
      'deployment.kubernetes.io/max-replicas': '4',
      'deployment.kubernetes.io/revision': '1',
    });
    const hash = name.slice('web-'.length);
    expect(set?.metadata.labels).toEqual({ app: 'web', 'pod-template-hash': hash });
    expect(set?.spec.selector).toEqual({ matchLabels: { app: 'web', 'pod-template-hash': hash } });
    expect(set?.metadata.ownerReferences).toEqual([
      {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        name: 'web',
        uid: done.metadata.uid,
        controller: true,
        blockOwnerDeletion: true,
      },
    ]);
    expect(await cluster.eventsOf('default', 'web')).toEqual([
      `Normal ScalingReplicaSet Scaled up replica set ${name} from 0 to 3`,
    ]);
  });

  it('replaces the pods step by step, and goes back to a former revision', async () => {
    await cluster.admin.create(
      deployments,
      deployment({ replicas: 2, strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } } }),
    );
    await cluster.until(deployments, WEB, complete);
    const first = (await setsByImage()).get('nginx:1')?.metadata.name;
    await setImage('nginx:2');
    await cluster.until(deployments, WEB, complete);
    const second = (await setsByImage()).get('nginx:2')?.metadata.name;
    await cluster.eventually(async () =>
      expect(await cluster.eventsOf('default', 'web')).toEqual([
        `Normal ScalingReplicaSet Scaled up replica set ${first} from 0 to 2`,
        `Normal ScalingReplicaSet Scaled up replica set ${second} from 0 to 1`,
        `Normal ScalingReplicaSet Scaled down replica set ${first} from 2 to 1`,
        `Normal ScalingReplicaSet Scaled up replica set ${second} from 1 to 2`,
        `Normal ScalingReplicaSet Scaled down replica set ${first} from 1 to 0`,
      ]),
    );
    await setImage('nginx:1');
    await cluster.until(deployments, WEB, complete);
    const sets = await setsByImage();
    expect([...sets.values()].map(({ metadata, spec }) => [metadata.name, spec.replicas]).sort()).toEqual(
      [
        [first, 2],
        [second, 0],
      ].sort(),
    );
    expect(sets.get('nginx:1')?.metadata.annotations).toEqual({
      'deployment.kubernetes.io/desired-replicas': '2',
      'deployment.kubernetes.io/max-replicas': '3',
      'deployment.kubernetes.io/revision': '3',
      'deployment.kubernetes.io/revision-history': '1',
    });
  });

  it('keeps as many old revisions as asked', async () => {
    await cluster.admin.create(deployments, deployment({ revisionHistoryLimit: 1 }));
    for (const image of ['nginx:2', 'nginx:3', 'nginx:4']) {
      await cluster.until(deployments, WEB, complete);
      await setImage(image);
    }
    await cluster.eventually(async () =>
      expect([...(await setsByImage()).keys()].sort()).toEqual(['nginx:3', 'nginx:4']),
    );
  });

  it('scales without a rollout', async () => {
    await cluster.admin.create(deployments, deployment({ replicas: 1 }));
    await cluster.until(deployments, WEB, complete);
    await cluster.admin.patch(deployments, WEB, { type: 'merge', body: { spec: { replicas: 4 } } });
    await cluster.until(deployments, WEB, complete);
    const set = (await setsByImage()).get('nginx:1');
    expect(set?.metadata.annotations).toMatchObject({
      'deployment.kubernetes.io/desired-replicas': '4',
      'deployment.kubernetes.io/max-replicas': '5',
      'deployment.kubernetes.io/revision': '1',
    });
    await cluster.admin.patch(deployments, WEB, { type: 'merge', body: { spec: { replicas: 0 } } });
    await cluster.until(deployments, WEB, complete);
    await cluster.eventually(async () =>
      expect((await cluster.admin.list(pods, { namespace: 'default' })).items).toEqual([]),
    );
    expect(await cluster.eventsOf('default', 'web')).toEqual([
      `Normal ScalingReplicaSet Scaled up replica set ${set?.metadata.name} from 0 to 1`,
      `Normal ScalingReplicaSet Scaled up replica set ${set?.metadata.name} from 1 to 4`,
      `Normal ScalingReplicaSet Scaled down replica set ${set?.metadata.name} from 4 to 0`,
    ]);
  });

  it('does nothing while paused but scale, and says so', async () => {
    await cluster.admin.create(deployments, deployment());
    await cluster.until(deployments, WEB, complete);
    await cluster.admin.patch(deployments, WEB, { type: 'merge', body: { spec: { paused: true } } });
    const progressing = (object: Deployment | undefined) =>
      object?.status?.conditions?.find(({ type }) => type === 'Progressing');
    const paused = await cluster.until(
      deployments,
      WEB,
      (object) => progressing(object)?.reason === 'DeploymentPaused',
    );
    expect(progressing(paused)).toMatchObject({ status: 'Unknown', message: 'Deployment is paused' });
    await setImage('nginx:2');
    await cluster.until(
      deployments,
      WEB,
      (object) => object?.status?.observedGeneration === object?.metadata.generation,
    );
    expect([...(await setsByImage()).keys()]).toEqual(['nginx:1']);
    await cluster.admin.patch(deployments, WEB, { type: 'merge', body: { spec: { paused: false } } });
    const done = await cluster.until(deployments, WEB, complete);
    expect(progressing(done)?.status).toBe('True');
  });

  it('adopts a ReplicaSet without an owner and lets it go when its labels change', async () => {
    await cluster.admin.create(deployments, deployment());
    const { metadata } = await cluster.until(deployments, WEB, complete);
    const set = (await setsByImage()).get('nginx:1');
    const ref = { namespace: 'default', name: set?.metadata.name ?? '' };
    await cluster.admin.patch(replicaSets, ref, {
      type: 'merge',
      body: { metadata: { ownerReferences: null } },
    });
    await cluster.until(
      replicaSets,
      ref,
      (object) => object?.metadata.ownerReferences?.[0]?.uid === metadata.uid,
    );
    await cluster.admin.patch(replicaSets, ref, {
      type: 'merge',
      body: { metadata: { labels: { app: 'other' } } },
    });
    await cluster.until(
      replicaSets,
      ref,
      (object) => object !== undefined && !object.metadata.ownerReferences?.length,
    );
  });
});

it('recreates: no new pod before the last old one has gone', async () => {
  kubelet = actAsKubelet(cluster.admin);
  const seen: string[][] = [];
  const watch = cluster.admin.watch(
    pods,
    {},
    () => undefined,
    () => undefined,
  );
  await cluster.admin.create(deployments, deployment({ replicas: 2, strategy: { type: 'Recreate' } }));
  await cluster.until(deployments, WEB, complete);
  watch.stop();
  const present = new Map<string, string>();
  const following = cluster.admin.watch(
    pods,
    {},
    ({ type, object }) => {
      if (type === 'DELETED') present.delete(object.metadata.name);
      else present.set(object.metadata.name, object.spec.containers[0]?.image ?? '');
      seen.push([...new Set(present.values())]);
    },
    () => undefined,
  );
  await setImage('nginx:2');
  await cluster.until(deployments, WEB, complete);
  following.stop();
  expect(seen.filter((images) => images.length > 1)).toEqual([]);
  const [first, second] = ['nginx:1', 'nginx:2'].map(
    async (image) => (await setsByImage()).get(image)?.metadata.name,
  );
  expect(await cluster.eventsOf('default', 'web')).toEqual([
    `Normal ScalingReplicaSet Scaled up replica set ${await first} from 0 to 2`,
    `Normal ScalingReplicaSet Scaled down replica set ${await first} from 2 to 0`,
    `Normal ScalingReplicaSet Scaled up replica set ${await second} from 0 to 2`,
  ]);
});
