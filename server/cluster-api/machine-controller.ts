import { ConnectionError } from '#server/client';
import {
  cloneJson,
  controllerReference,
  deepEqual,
  isConflict,
  type KubeObject,
  type Node,
  objectKey,
  type Resource,
} from '#server/kube';
import { BY_CLUSTER } from './caches.ts';
import { find, saveChanges, withFinalizer } from './changes.ts';
import { isTrue, pausedFinding, report } from './conditions.ts';
import { type Context, pauses, type Running } from './context.ts';
import {
  type Cluster,
  type Machine,
  type MachineDeployment,
  type MachineSet,
  machines,
} from './core-resources.ts';
import { type KubeadmConfig, kubeadmConfigs } from './kubeadm-resources.ts';
import { type KubevirtMachine, kubevirtMachines } from './kubevirt-resources.ts';
import { startLoop } from './loop.ts';
import { type DeletionStage, deleteMachine } from './machine-deletion.ts';
import { syncNode } from './machine-node.ts';
import { reportMachine } from './machine-status.ts';
import { CLUSTER_NAME_LABEL, DEPLOYMENT_NAME_LABEL, MACHINE_FINALIZER } from './vocabulary.ts';

type Outcome = { requeueAfter: number } | undefined;

/**
 * Machine: ties together bootstrap configuration, infrastructure and Node, and takes them down in order.
 * Models core/reconcilers/machine.
 */
export function startMachineController(context: Context): Running {
  const { client, caches, workloads, clock, log } = context;
  const recorder = context.recorder('machine-controller');
  const loop = startLoop({
    name: 'machine',
    clock,
    log,
    ready: () => context.ready(),
    reconcile: (key) => reconcile(key),
  });
  const enqueue = (machine: Machine): void => loop.enqueue(objectKey(machine));
  const ofOwner = (object: KubeObject): void => {
    const owner = object.metadata.ownerReferences?.find((reference) => reference.kind === 'Machine');
    if (owner) loop.enqueue(`${object.metadata.namespace ?? ''}/${owner.name}`);
  };
  const ofCluster = (key: string): void => {
    for (const machine of caches.machines.byIndex(BY_CLUSTER, key)) enqueue(machine);
  };
  const ofDeployment = (deployment: MachineDeployment): void => {
    for (const machine of caches.machines.byIndex(
      BY_CLUSTER,
      `${deployment.metadata.namespace ?? ''}/${deployment.spec.clusterName}`,
    )) {
      if (machine.metadata.labels?.[DEPLOYMENT_NAME_LABEL] === deployment.metadata.name) enqueue(machine);
    }
  };
  const watches = [
    caches.machines.on({ added: enqueue, updated: (_, now) => enqueue(now) }),
    caches.configs.on({ added: ofOwner, updated: (_, now) => ofOwner(now), deleted: ofOwner }),
    caches.kubevirtMachines.on({ added: ofOwner, updated: (_, now) => ofOwner(now), deleted: ofOwner }),
    caches.machineDeployments.on({
      updated: (old, now) => {
        if (!deepEqual(old.spec, now.spec)) ofDeployment(now);
      },
    }),
    caches.controlPlanes.on({
      updated: (old, now) => {
        if (old.spec.version !== now.spec.version)
          for (const cluster of caches.clusters.byIndex('controlPlane', objectKey(now)))
            ofCluster(objectKey(cluster));
      },
    }),
    caches.clusters.on({
      updated: (old, now) => {
        const moved =
          old.status?.initialization?.infrastructureProvisioned !==
            now.status?.initialization?.infrastructureProvisioned ||
          isTrue(old, 'ControlPlaneInitialized') !== isTrue(now, 'ControlPlaneInitialized');
        if (
          moved ||
          old.spec.paused !== now.spec.paused ||
          old.metadata.deletionTimestamp !== now.metadata.deletionTimestamp
        )
          ofCluster(objectKey(now));
      },
    }),
  ];

  /** Makes the Machine the owner of what it refers to, in the cluster's name. */
  const adopt = async <T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    machine: Machine,
  ): Promise<void> => {
    const owner = controllerReference(machine);
    const owned =
      deepEqual(object.metadata.ownerReferences, [owner]) &&
      object.metadata.labels?.[CLUSTER_NAME_LABEL] === machine.spec.clusterName;
    if (owned || object.metadata.deletionTimestamp !== undefined) return;
    const metadata = {
      ...object.metadata,
      ownerReferences: [owner],
      labels: { ...object.metadata.labels, [CLUSTER_NAME_LABEL]: machine.spec.clusterName },
    };
    await saveChanges(client, resource, object, { ...object, metadata });
  };

  const fetched = async <T extends KubeObject>(
    cached: T | undefined,
    resource: Resource<T>,
    machine: Machine,
    name: string,
  ): Promise<T | undefined> => cached ?? find(client, resource, machine.metadata.namespace, name);

  const takeBootstrap = async (machine: Machine): Promise<KubeadmConfig | undefined> => {
    const ref = machine.spec.bootstrap.configRef;
    const status = (machine.status ??= {});
    if (!ref) {
      if (machine.spec.bootstrap.dataSecretName)
        status.initialization = { ...status.initialization, bootstrapDataSecretCreated: true };
      return undefined;
    }
    const config = await fetched(
      caches.configs.get(`${machine.metadata.namespace ?? ''}/${ref.name}`),
      kubeadmConfigs,
      machine,
      ref.name,
    );
    if (!config) return undefined;
    await adopt(kubeadmConfigs, config, machine);
    if (config.status?.initialization?.dataSecretCreated && config.status.dataSecretName) {
      machine.spec.bootstrap.dataSecretName ??= config.status.dataSecretName;
      status.initialization = { ...status.initialization, bootstrapDataSecretCreated: true };
    }
    return config;
  };

  const takeInfrastructure = async (machine: Machine): Promise<KubevirtMachine | undefined> => {
    const { name } = machine.spec.infrastructureRef;
    const object = await fetched(
      caches.kubevirtMachines.get(`${machine.metadata.namespace ?? ''}/${name}`),
      kubevirtMachines,
      machine,
      name,
    );
    if (!object) return undefined;
    await adopt(kubevirtMachines, object, machine);
    const status = (machine.status ??= {});
    if (object.status?.initialization?.provisioned && object.spec.providerID) {
      machine.spec.providerID = object.spec.providerID;
      if (object.status.addresses) status.addresses = object.status.addresses;
      status.initialization = { ...status.initialization, infrastructureProvisioned: true };
    }
    return object;
  };

  const takeNode = async (machine: Machine, cluster: Cluster): Promise<Node | undefined> => {
    if (
      !cluster.status?.initialization?.controlPlaneInitialized &&
      !isTrue(cluster, 'ControlPlaneInitialized')
    )
      return undefined;
    const key = objectKey(cluster);
    await workloads.watch(key);
    const { providerID } = machine.spec;
    const node = providerID
      ? workloads
          .caches(key)
          ?.nodes.list()
          .find((candidate) => candidate.spec?.providerID === providerID)
      : undefined;
    if (!node) return undefined;
    const status = (machine.status ??= {});
    if (!status.nodeRef) {
      status.nodeRef = { name: node.metadata.name };
      recorder.event(machine, 'Normal', 'SuccessfulSetNodeRef', node.metadata.name);
    }
    if (node.status?.nodeInfo) status.nodeInfo = node.status.nodeInfo;
    if (machine.metadata.deletionTimestamp === undefined)
      await workloads.attempt(key, (workload) => syncNode(workload, node, machine));
    return node;
  };

  /** Like takeNode, but a cluster that cannot be reached does not keep the rest of the Machine from being told. */
  const tryNode = async (
    machine: Machine,
    cluster: Cluster,
  ): Promise<{ node: Node | undefined; failure?: unknown }> => {
    try {
      return { node: await takeNode(machine, cluster) };
    } catch (failure) {
      if (!(failure instanceof ConnectionError) && !isConflict(failure)) throw failure;
      const node = workloads
        .caches(objectKey(cluster))
        ?.nodes.list()
        .find((candidate) => candidate.spec?.providerID === machine.spec.providerID);
      return { node, failure };
    }
  };

  const ownersOf = (
    machine: Machine,
  ): {
    set?: MachineSet | undefined;
    deployment?: MachineDeployment | undefined;
    controlPlaneVersion?: string | undefined;
  } => {
    const namespace = machine.metadata.namespace ?? '';
    const owner = machine.metadata.ownerReferences?.find((reference) => reference.controller);
    if (owner?.kind === 'KubeadmControlPlane')
      return { controlPlaneVersion: caches.controlPlanes.get(`${namespace}/${owner.name}`)?.spec.version };
    const set =
      owner?.kind === 'MachineSet' ? caches.machineSets.get(`${namespace}/${owner.name}`) : undefined;
    const deployment = caches.machineDeployments.get(
      `${namespace}/${machine.metadata.labels?.[DEPLOYMENT_NAME_LABEL] ?? ''}`,
    );
    return { set, deployment };
  };

  const ownAndLabel = (machine: Machine, cluster: Cluster): void => {
    machine.metadata.labels = { ...machine.metadata.labels, [CLUSTER_NAME_LABEL]: machine.spec.clusterName };
    if (machine.metadata.ownerReferences?.length) return;
    machine.metadata.ownerReferences = [
      {
        apiVersion: cluster.apiVersion,
        kind: 'Cluster',
        name: cluster.metadata.name,
        uid: cluster.metadata.uid ?? '',
      },
    ];
  };

  const reconcile = async (key: string): Promise<Outcome> => {
    let before = caches.machines.get(key);
    const cluster =
      before && caches.clusters.get(`${before.metadata.namespace ?? ''}/${before.spec.clusterName}`);
    if (!before || !cluster) return undefined;
    const paused = pauses(cluster, before);
    if (paused.length > 0) {
      const machine = cloneJson(before);
      report(machine, clock.now(), pausedFinding(paused));
      await saveChanges(client, machines, before, machine);
      return undefined;
    }
    const leaving = before.metadata.deletionTimestamp !== undefined;
    if (!leaving) before = await withFinalizer(client, machines, before, MACHINE_FINALIZER);
    const machine = cloneJson(before);
    ownAndLabel(machine, cluster);
    let stage: DeletionStage = { reason: 'Deleting', message: 'Deletion started' };
    const config = leaving
      ? caches.configs.get(
          `${machine.metadata.namespace ?? ''}/${machine.spec.bootstrap.configRef?.name ?? ''}`,
        )
      : await takeBootstrap(machine);
    const infrastructure = leaving
      ? caches.kubevirtMachines.get(
          `${machine.metadata.namespace ?? ''}/${machine.spec.infrastructureRef.name}`,
        )
      : await takeInfrastructure(machine);
    const { node, failure } = await tryNode(machine, cluster);
    if (leaving) {
      if (!machine.metadata.finalizers?.includes(MACHINE_FINALIZER)) return undefined;
      stage = await deleteMachine(context, recorder, machine, cluster);
    }
    const wait = reportMachine({
      machine,
      cluster,
      config,
      infrastructure,
      node,
      workload: workloads.caches(objectKey(cluster)),
      owner: ownersOf(machine),
      deleting: stage,
      now: clock.now(),
    });
    report(machine, clock.now(), pausedFinding([]));
    (machine.status ??= {}).observedGeneration = before.metadata.generation ?? 1;
    await saveChanges(client, machines, before, machine);
    if (failure && !leaving) throw failure as Error;
    const again = stage.requeueAfter ?? wait;
    return again === undefined ? undefined : { requeueAfter: again };
  };

  return {
    enqueue: (key) => loop.enqueue(key),
    async stop() {
      for (const watch of watches) watch.stop();
      await loop.stop();
    },
  };
}
