import { ConnectionError } from '#server/client';
import { cloneJson, configMaps, controllerOf, isNotFound, type KubeObject, objectKey } from '#server/kube';
import { BY_CLUSTER } from './caches.ts';
import { dropFinalizer, remove, saveChanges, withFinalizer } from './changes.ts';
import { type ClusterCertificates, ensureCertificates, ensureKubeconfig } from './cluster-secrets.ts';
import { isTrue, pausedFinding, report } from './conditions.ts';
import { type Context, pauses, type Running } from './context.ts';
import { CONTROL_PLANE_GATES } from './control-plane-health.ts';
import { reportControlPlane } from './control-plane-status.ts';
import { type Cluster, type Machine, machines } from './core-resources.ts';
import {
  type KubeadmConfigSpec,
  type KubeadmControlPlane,
  kubeadmControlPlanes,
} from './kubeadm-resources.ts';
import { kubevirtMachineTemplates } from './kubevirt-resources.ts';
import { startLoop } from './loop.ts';
import { adoptTemplate, orderMachine } from './machine-templates.ts';
import {
  CLUSTER_NAME_LABEL,
  CONTROL_PLANE_FINALIZER,
  CONTROL_PLANE_LABEL,
  CONTROL_PLANE_NAME_LABEL,
  DELETE_MACHINE_ANNOTATION,
} from './vocabulary.ts';

/** How soon to look again whether the control plane answers, first and at most, milliseconds. */
const FIRST_PROBE = 20;
const LAST_PROBE = 10_000;

type Outcome = { requeueAfter: number } | undefined;

/**
 * KubeadmControlPlane: certificates, the kubeconfig, and control plane Machines one at a time.
 * Models controlplane/kubeadm/reconcilers/kubeadmcontrolplane (no remediation, no in-place updates).
 */
export function startControlPlaneController(context: Context): Running {
  const { client, caches, workloads, clock, ids, log } = context;
  const recorder = context.recorder('kubeadmcontrolplane-controller');
  const loop = startLoop({
    name: 'kubeadmcontrolplane',
    clock,
    log,
    ready: () => context.ready(),
    reconcile: (key) => reconcile(key),
  });
  const enqueue = (object: KubeadmControlPlane): void => loop.enqueue(objectKey(object));
  const ofCluster = (cluster: Cluster): void => {
    if (cluster.spec.controlPlaneRef?.kind === 'KubeadmControlPlane')
      loop.enqueue(`${cluster.metadata.namespace ?? ''}/${cluster.spec.controlPlaneRef.name}`);
  };
  const ownerKey = (machine: KubeObject): string | undefined => {
    const owner = controllerOf(machine);
    return owner?.kind === 'KubeadmControlPlane'
      ? `${machine.metadata.namespace ?? ''}/${owner.name}`
      : undefined;
  };
  const ofMachine = (machine: KubeObject): void => {
    const key = ownerKey(machine);
    if (key) loop.enqueue(key);
  };
  const ofChange = (old: Machine, now: Machine): void => {
    const key = ownerKey(now);
    if (!key) return;
    // Only what lets the control plane take its next step is urgent.
    if (
      old.status?.initialization?.infrastructureProvisioned !==
      now.status?.initialization?.infrastructureProvisioned
    )
      loop.enqueue(key);
    else loop.enqueueSoon(key);
  };
  const watches = [
    caches.controlPlanes.on({ added: enqueue, updated: (_, now) => enqueue(now) }),
    caches.machines.on({
      added: ofMachine,
      updated: ofChange,
      deleted: (machine) => {
        ofMachine(machine);
        // Workers that went may have been what a deletion waits for.
        const cluster = caches.clusters.get(
          `${machine.metadata.namespace ?? ''}/${machine.spec.clusterName}`,
        );
        if (cluster) ofCluster(cluster);
      },
    }),
    caches.clusters.on({
      added: ofCluster,
      updated: (old, now) => {
        const moved =
          old.status?.initialization?.infrastructureProvisioned !==
            now.status?.initialization?.infrastructureProvisioned ||
          old.spec.controlPlaneEndpoint?.host !== now.spec.controlPlaneEndpoint?.host;
        if (moved || old.spec.paused !== now.spec.paused) ofCluster(now);
      },
    }),
  ];
  /** Probes of control planes that do not answer yet: how often. */
  const probes = new Map<string, number>();
  /** Authorities that were seen, by UID of the control plane: one that is there is never made anew. */
  const authorities = new Map<string, ClusterCertificates>();
  const checked = new Map<string, string>();

  const machinesOf = (controlPlane: KubeadmControlPlane, cluster: Cluster): Machine[] =>
    caches.machines
      .byIndex(BY_CLUSTER, objectKey(cluster))
      .filter((machine) => controllerOf(machine)?.uid === controlPlane.metadata.uid);

  /** Machines as the API has them now: a cache that is behind must not make us create one twice. */
  const liveMachines = async (controlPlane: KubeadmControlPlane, cluster: Cluster): Promise<Machine[]> => {
    const labelSelector = `${CLUSTER_NAME_LABEL}=${cluster.metadata.name},${CONTROL_PLANE_LABEL}`;
    const { items } = await client.list(machines, { namespace: cluster.metadata.namespace, labelSelector });
    return items.filter((machine) => controllerOf(machine)?.uid === controlPlane.metadata.uid);
  };

  const configSpec = (controlPlane: KubeadmControlPlane, join: boolean): KubeadmConfigSpec => {
    const { initConfiguration, joinConfiguration, ...rest } = cloneJson(
      controlPlane.spec.kubeadmConfigSpec ?? {},
    );
    const common = { ...rest, clusterConfiguration: rest.clusterConfiguration ?? {} };
    return join
      ? {
          ...common,
          joinConfiguration: { ...joinConfiguration, controlPlane: joinConfiguration?.controlPlane ?? {} },
        }
      : { ...common, initConfiguration: initConfiguration ?? {} };
  };

  const create = async (
    controlPlane: KubeadmControlPlane,
    cluster: Cluster,
    present: readonly Machine[],
  ): Promise<boolean> => {
    const { machineTemplate, version } = controlPlane.spec;
    const gates = [
      ...CONTROL_PLANE_GATES.map((conditionType) => ({ conditionType })),
      ...(machineTemplate.spec.readinessGates ?? []),
    ];
    const made = await orderMachine(
      {
        client,
        ids,
        owner: controlPlane,
        clusterName: cluster.metadata.name,
        labels: {
          ...machineTemplate.metadata?.labels,
          [CONTROL_PLANE_LABEL]: '',
          [CONTROL_PLANE_NAME_LABEL]: controlPlane.metadata.name,
        },
        annotations: { ...machineTemplate.metadata?.annotations },
        infrastructure: machineTemplate.spec.infrastructureRef,
        bootstrap: { spec: configSpec(controlPlane, present.length > 0) },
        spec: {
          version,
          readinessGates: gates,
          ...(machineTemplate.spec.deletion ? { deletion: machineTemplate.spec.deletion } : {}),
        },
      },
      new Set(present.map((machine) => machine.metadata.name)),
    );
    return made !== undefined;
  };

  /** Is every Machine in a state in which another may be added or taken away? Models preflight checks. */
  const isStable = (present: readonly Machine[]): boolean =>
    present.every(
      (machine) =>
        machine.metadata.deletionTimestamp === undefined &&
        machine.status?.nodeRef &&
        CONTROL_PLANE_GATES.every((gate) => isTrue(machine, gate)),
    );

  const nextToGo = (present: readonly Machine[], outdated: readonly Machine[]): Machine | undefined => {
    const marked = present.filter(
      (machine) => machine.metadata.annotations?.[DELETE_MACHINE_ANNOTATION] !== undefined,
    );
    const eligible = [marked, outdated, present].find((group) => group.length > 0) ?? [];
    return [...eligible].sort((a, b) =>
      (a.metadata.creationTimestamp ?? '').localeCompare(b.metadata.creationTimestamp ?? ''),
    )[0];
  };

  /** One step towards the wanted number of Machines of the wanted version. Returns whether the template was there. */
  const scale = async (controlPlane: KubeadmControlPlane, cluster: Cluster): Promise<boolean> => {
    const wanted = controlPlane.spec.replicas ?? 1;
    const cached = machinesOf(controlPlane, cluster);
    const stale = (list: readonly Machine[]): Machine[] =>
      list.filter((machine) => machine.spec.version !== controlPlane.spec.version);
    if (cached.length === wanted && stale(cached).length === 0) return true;
    const present = await liveMachines(controlPlane, cluster);
    const outdated = stale(present);
    if (present.length === 0) return wanted > 0 ? create(controlPlane, cluster, present) : true;
    if (!controlPlane.status?.initialization?.controlPlaneInitialized || !isStable(present)) return true;
    const surge = outdated.length > 0 ? 1 : 0;
    if (present.length < wanted + surge) return create(controlPlane, cluster, present);
    if (present.length > wanted) {
      const machine = nextToGo(present, outdated);
      if (machine) await remove(client, machines, machine);
    }
    return true;
  };

  /** Does the workload cluster have what `kubeadm init` leaves behind? Undefined: not known, ask again later. */
  const isInitialized = async (cluster: Cluster): Promise<boolean | undefined> => {
    try {
      await workloads.attempt(objectKey(cluster), (workload) =>
        workload.get(configMaps, { namespace: 'kube-system', name: 'kubeadm-config' }),
      );
      return true;
    } catch (error) {
      if (error instanceof ConnectionError || isNotFound(error)) return undefined;
      throw error;
    }
  };

  const probe = async (
    key: string,
    controlPlane: KubeadmControlPlane,
    cluster: Cluster,
    present: readonly Machine[],
  ): Promise<Outcome> => {
    if (controlPlane.status?.initialization?.controlPlaneInitialized) return undefined;
    if (
      !present.some(
        (machine) =>
          machine.status?.initialization?.infrastructureProvisioned &&
          machine.metadata.deletionTimestamp === undefined,
      )
    )
      return undefined;
    if (await isInitialized(cluster)) {
      probes.delete(key);
      controlPlane.status = { ...controlPlane.status, initialization: { controlPlaneInitialized: true } };
      return undefined;
    }
    const tries = probes.get(key) ?? 0;
    probes.set(key, tries + 1);
    return { requeueAfter: Math.min(LAST_PROBE, FIRST_PROBE * 2 ** tries) };
  };

  const provide = async (
    key: string,
    controlPlane: KubeadmControlPlane,
    cluster: Cluster,
  ): Promise<{ outcome: Outcome; templateMissing: boolean }> => {
    const nothing = { outcome: undefined, templateMissing: false };
    const template = controlPlane.spec.machineTemplate.spec.infrastructureRef.name;
    const present = machinesOf(controlPlane, cluster);
    if (present.length === 0) await adoptTemplate(client, kubevirtMachineTemplates, template, cluster);
    if (!cluster.status?.initialization?.infrastructureProvisioned) return nothing;
    const uid = controlPlane.metadata.uid ?? '';
    const certificates = authorities.get(uid) ?? (await ensureCertificates(context, cluster, controlPlane));
    if (!controlPlane.status?.initialization?.controlPlaneInitialized) authorities.set(uid, certificates);
    else authorities.delete(uid);
    report(controlPlane, clock.now(), { type: 'CertificatesAvailable', status: 'True', reason: 'Available' });
    if (!cluster.spec.controlPlaneEndpoint?.host) return nothing;
    const { kubeconfigServer } = context;
    const renewed = await ensureKubeconfig(context, {
      cluster,
      owner: controlPlane,
      ca: certificates.ca,
      kubeconfigServer,
      checked,
    });
    if (renewed) workloads.renew(objectKey(cluster));
    const outcome = await probe(key, controlPlane, cluster, present);
    try {
      return { outcome, templateMissing: !(await scale(controlPlane, cluster)) };
    } catch (error) {
      const first = present.length === 0;
      recorder.event(
        controlPlane,
        'Warning',
        first ? 'FailedInitialization' : 'FailedScaleUp',
        `Failed to create ${first ? 'initial' : 'additional'} control plane Machine for cluster ${objectKey(cluster)}${first ? ' control plane' : ''}: ${error instanceof Error ? error.message : String(error)}`,
      );
      throw error;
    }
  };

  const takeDown = async (
    controlPlane: KubeadmControlPlane,
    cluster: Cluster,
  ): Promise<{ reason: string; message: string }> => {
    const all = caches.machines.byIndex(BY_CLUSTER, objectKey(cluster));
    const workers = all.filter((machine) => machine.metadata.labels?.[CONTROL_PLANE_LABEL] === undefined);
    if (workers.length > 0)
      return {
        reason: 'WaitingForWorkersDeletion',
        message: `* Worker Machines: ${workers
          .map((machine) => machine.metadata.name)
          .sort()
          .join(', ')}`,
      };
    const own = await liveMachines(controlPlane, cluster);
    for (const machine of own) await remove(client, machines, machine);
    if (own.length > 0)
      return {
        reason: 'WaitingForMachineDeletion',
        message: `Deleting ${own.length} Machine${own.length === 1 ? '' : 's'}`,
      };
    dropFinalizer(controlPlane, CONTROL_PLANE_FINALIZER);
    return { reason: 'DeletionCompleted', message: 'Deletion completed' };
  };

  const clusterOf = (controlPlane: KubeadmControlPlane): Cluster | undefined => {
    const owner = controlPlane.metadata.ownerReferences?.find((reference) => reference.kind === 'Cluster');
    const cluster = owner && caches.clusters.get(`${controlPlane.metadata.namespace ?? ''}/${owner.name}`);
    return cluster?.metadata.uid === owner?.uid ? cluster : undefined;
  };

  const reconcile = async (key: string): Promise<Outcome> => {
    let before = caches.controlPlanes.get(key);
    const cluster = before && clusterOf(before);
    if (!before || !cluster) return undefined;
    const paused = pauses(cluster, before);
    if (paused.length > 0) {
      const object = cloneJson(before);
      report(object, clock.now(), pausedFinding(paused));
      await saveChanges(client, kubeadmControlPlanes, before, object);
      return undefined;
    }
    const leaving = before.metadata.deletionTimestamp !== undefined;
    if (leaving && !before.metadata.finalizers?.includes(CONTROL_PLANE_FINALIZER)) return undefined;
    if (!leaving) before = await withFinalizer(client, kubeadmControlPlanes, before, CONTROL_PLANE_FINALIZER);
    const controlPlane = cloneJson(before);
    let deleting = { reason: 'Deleting', message: '' };
    let done: { outcome: Outcome; templateMissing: boolean } = { outcome: undefined, templateMissing: false };
    if (leaving) deleting = await takeDown(controlPlane, cluster);
    else done = await provide(key, controlPlane, cluster);
    reportControlPlane({
      controlPlane,
      cluster,
      machines: machinesOf(controlPlane, cluster),
      templateMissing: done.templateMissing,
      deleting,
      now: clock.now(),
    });
    report(controlPlane, clock.now(), pausedFinding([]));
    (controlPlane.status ??= {}).observedGeneration = before.metadata.generation ?? 1;
    await saveChanges(client, kubeadmControlPlanes, before, controlPlane);
    return done.outcome;
  };

  return {
    enqueue: (key) => loop.enqueue(key),
    async stop() {
      for (const watch of watches) watch.stop();
      await loop.stop();
    },
  };
}
