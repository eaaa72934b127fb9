import {
  cloneJson,
  controllerReference,
  isNotFound,
  type KubeObject,
  objectKey,
  type Resource,
} from '#server/kube';
import { BY_CLUSTER, clusterKeyOf } from './caches.ts';
import { dropFinalizer, remove, saveChanges, withFinalizer } from './changes.ts';
import { reportCluster } from './cluster-status.ts';
import { pausedFinding, report } from './conditions.ts';
import { type Context, pauses, type Running } from './context.ts';
import { type Cluster, clusters, machineDeployments, machineSets, machines } from './core-resources.ts';
import { kubeadmControlPlanes } from './kubeadm-resources.ts';
import { kubevirtClusters } from './kubevirt-resources.ts';
import { startLoop } from './loop.ts';
import { CLUSTER_FINALIZER, CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL } from './vocabulary.ts';

/**
 * Cluster: takes its infrastructure and control plane into its care, copies the endpoint, sums up, and deletes in order.
 * Models core/reconcilers/cluster.
 */
export function startClusterController(context: Context): Running {
  const { client, caches, workloads, clock, log } = context;
  const recorder = context.recorder('cluster-controller');
  const loop = startLoop({
    name: 'cluster',
    clock,
    log,
    ready: () => context.ready(),
    reconcile: (key) => reconcile(key),
  });
  const enqueue = (cluster: Cluster): void => loop.enqueue(objectKey(cluster));
  const byRef =
    (index: 'infrastructure' | 'controlPlane') =>
    (object: KubeObject): void => {
      for (const cluster of caches.clusters.byIndex(index, objectKey(object))) enqueue(cluster);
    };
  const ofInfrastructure = byRef('infrastructure');
  const ofControlPlane = byRef('controlPlane');
  const keyOf = (object: KubeObject & { spec: { clusterName: string } }): string =>
    `${object.metadata.namespace ?? ''}/${object.spec.clusterName}`;
  const countMember = (object: KubeObject & { spec: { clusterName: string } }): void =>
    loop.enqueueSoon(keyOf(object));
  const missMember = (object: KubeObject & { spec: { clusterName: string } }): void =>
    loop.enqueue(keyOf(object));
  const watches = [
    caches.clusters.on({
      added: enqueue,
      updated: (_, now) => enqueue(now),
      deleted: (cluster) => workloads.forget(objectKey(cluster)),
    }),
    caches.kubevirtClusters.on({
      added: ofInfrastructure,
      updated: (_, now) => ofInfrastructure(now),
      deleted: ofInfrastructure,
    }),
    caches.controlPlanes.on({
      added: ofControlPlane,
      updated: (old, now) => {
        if (
          old.status?.initialization?.controlPlaneInitialized !==
          now.status?.initialization?.controlPlaneInitialized
        )
          ofControlPlane(now);
        else
          for (const cluster of caches.clusters.byIndex('controlPlane', objectKey(now)))
            loop.enqueueSoon(objectKey(cluster));
      },
      deleted: ofControlPlane,
    }),
    caches.machineDeployments.on({
      added: countMember,
      updated: (_, now) => countMember(now),
      deleted: missMember,
    }),
    caches.machineSets.on({ deleted: missMember }),
    caches.machines.on({ added: countMember, updated: (_, now) => countMember(now), deleted: missMember }),
  ];

  const adopt = async <T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    cluster: Cluster,
  ): Promise<void> => {
    const owner = controllerReference(cluster);
    const references = object.metadata.ownerReferences ?? [];
    const owned =
      references.some((reference) => reference.uid === owner.uid && reference.controller) &&
      clusterKeyOf(object) === objectKey(cluster);
    if (owned || object.metadata.deletionTimestamp !== undefined) return;
    const metadata = {
      ...object.metadata,
      ownerReferences: [...references.filter((reference) => reference.uid !== owner.uid), owner],
      labels: { ...object.metadata.labels, [CLUSTER_NAME_LABEL]: cluster.metadata.name },
    };
    await saveChanges(client, resource, object, { ...object, metadata });
  };

  const takeOver = async (cluster: Cluster): Promise<void> => {
    const { infrastructure, controlPlane } = partsOf(cluster);
    if (infrastructure) await adopt(kubevirtClusters, infrastructure, cluster);
    if (controlPlane) await adopt(kubeadmControlPlanes, controlPlane, cluster);
    const status = (cluster.status ??= {});
    if (infrastructure?.status?.initialization?.provisioned) {
      if (!cluster.spec.controlPlaneEndpoint?.host && infrastructure.spec.controlPlaneEndpoint)
        cluster.spec.controlPlaneEndpoint = { ...infrastructure.spec.controlPlaneEndpoint };
      if (!status.initialization?.infrastructureProvisioned) {
        status.initialization = { ...status.initialization, infrastructureProvisioned: true };
        recorder.event(
          cluster,
          'Normal',
          'InfrastructureReady',
          `Cluster ${cluster.metadata.name} InfrastructureProvisioned is now True`,
        );
      }
    }
    if (
      controlPlane?.status?.initialization?.controlPlaneInitialized &&
      !status.initialization?.controlPlaneInitialized
    ) {
      status.initialization = { ...status.initialization, controlPlaneInitialized: true };
      recorder.event(
        cluster,
        'Normal',
        'ControlPlaneInitialized',
        `Cluster ${cluster.metadata.name} ControlPlaneInitialized is now True`,
      );
    }
  };

  const partsOf = (cluster: Cluster) => {
    const namespace = cluster.metadata.namespace ?? '';
    const key = objectKey(cluster);
    return {
      infrastructure: caches.kubevirtClusters.get(
        `${namespace}/${cluster.spec.infrastructureRef?.name ?? ''}`,
      ),
      controlPlane: caches.controlPlanes.get(`${namespace}/${cluster.spec.controlPlaneRef?.name ?? ''}`),
      deployments: caches.machineDeployments.byIndex(BY_CLUSTER, key),
      sets: caches.machineSets.byIndex(BY_CLUSTER, key),
      machines: caches.machines.byIndex(BY_CLUSTER, key),
    };
  };

  /** Deletes what is below the cluster: workers, then the control plane, then the infrastructure, each when the former is gone. */
  const takeDown = async (cluster: Cluster): Promise<{ reason: string; message: string }> => {
    const parts = partsOf(cluster);
    const workers = parts.machines.filter(
      (machine) => machine.metadata.labels?.[CONTROL_PLANE_LABEL] === undefined,
    );
    for (const object of parts.deployments) await remove(client, machineDeployments, object);
    for (const object of parts.sets)
      if (!object.metadata.ownerReferences?.some((owner) => owner.kind === 'MachineDeployment'))
        await remove(client, machineSets, object);
    for (const object of workers)
      if (!object.metadata.ownerReferences?.some((owner) => owner.kind === 'MachineSet'))
        await remove(client, machines, object);
    const below = [
      ['MachineDeployments', parts.deployments],
      ['MachineSets', parts.sets],
      ['Worker Machines', workers],
    ] as const;
    const waiting = below
      .filter(([, objects]) => objects.length > 0)
      .map(
        ([kind, objects]) =>
          `* ${kind}: ${objects
            .map((object) => object.metadata.name)
            .sort()
            .join(', ')}`,
      );
    if (waiting.length > 0) return { reason: 'WaitingForWorkersDeletion', message: waiting.join('\n') };
    if (await goes(kubeadmControlPlanes, parts.controlPlane, cluster, cluster.spec.controlPlaneRef?.name)) {
      return {
        reason: 'WaitingForControlPlaneDeletion',
        message: `${cluster.spec.controlPlaneRef?.kind ?? ''} deletion in progress`,
      };
    }
    if (await goes(kubevirtClusters, parts.infrastructure, cluster, cluster.spec.infrastructureRef?.name)) {
      return {
        reason: 'WaitingForInfrastructureDeletion',
        message: `${cluster.spec.infrastructureRef?.kind ?? ''} deletion in progress`,
      };
    }
    dropFinalizer(cluster, CLUSTER_FINALIZER);
    recorder.event(cluster, 'Normal', 'Deleted', `Cluster ${cluster.metadata.name} has been deleted`);
    return { reason: 'DeletionCompleted', message: 'Deletion completed' };
  };

  /** Deletes it and tells whether it is still there. The API is asked when the cache has none: it may be behind. */
  const goes = async <T extends KubeObject>(
    resource: Resource<T>,
    cached: T | undefined,
    cluster: Cluster,
    name: string | undefined,
  ): Promise<boolean> => {
    if (!name) return false;
    try {
      const object = cached ?? (await client.get(resource, { namespace: cluster.metadata.namespace, name }));
      await remove(client, resource, object);
      return true;
    } catch (error) {
      if (isNotFound(error)) return false;
      throw error;
    }
  };

  const reconcile = async (key: string): Promise<void> => {
    let before = caches.clusters.get(key);
    if (!before) return;
    const paused = pauses(before, before);
    if (paused.length > 0) {
      const cluster = cloneJson(before);
      report(cluster, clock.now(), pausedFinding(paused));
      await saveChanges(client, clusters, before, cluster);
      return;
    }
    const leaving = before.metadata.deletionTimestamp !== undefined;
    if (leaving && !before.metadata.finalizers?.includes(CLUSTER_FINALIZER)) return;
    if (!leaving) before = await withFinalizer(client, clusters, before, CLUSTER_FINALIZER);
    const cluster = cloneJson(before);
    let deleting = { reason: 'Deleting', message: '' };
    if (leaving) deleting = await takeDown(cluster);
    else await takeOver(cluster);
    const changed = reportCluster({
      cluster,
      ...partsOf(cluster),
      reachable: workloads.reachable(key),
      deleting,
      now: clock.now(),
    });
    report(cluster, clock.now(), pausedFinding([]));
    (cluster.status ??= {}).observedGeneration = before.metadata.generation ?? 1;
    await saveChanges(client, clusters, before, cluster);
    if (changed)
      recorder.event(
        cluster,
        'Normal',
        cluster.status.phase ?? '',
        `Cluster ${cluster.metadata.name} is ${cluster.status.phase ?? ''}`,
      );
  };

  return {
    enqueue: (key) => loop.enqueue(key),
    async stop() {
      for (const watch of watches) watch.stop();
      await loop.stop();
    },
  };
}
