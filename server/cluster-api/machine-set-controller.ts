import { cloneJson, controllerOf, formatLabelSelector, type KubeObject, objectKey } from '#server/kube';
import { BY_CLUSTER } from './caches.ts';
import { dropFinalizer, find, remove, saveChanges, withFinalizer } from './changes.ts';
import { isTrue, pausedFinding, report } from './conditions.ts';
import { type Context, pauses, type Running } from './context.ts';
import {
  type Cluster,
  type DeletionOrder,
  type Machine,
  type MachineSet,
  machineSets,
  machines,
} from './core-resources.ts';
import { kubeadmConfigTemplates } from './kubeadm-resources.ts';
import { kubevirtMachineTemplates } from './kubevirt-resources.ts';
import { startLoop } from './loop.ts';
import { reportMachineSet } from './machine-set-status.ts';
import { adoptTemplate, orderMachine } from './machine-templates.ts';
import {
  CLUSTER_NAME_LABEL,
  DELETE_MACHINE_ANNOTATION,
  MACHINE_SET_FINALIZER,
  SET_NAME_LABEL,
} from './vocabulary.ts';

/** How urgent a Machine's deletion is, 0 to 100. Models machineset_deletion_order.go. */
function priority(machine: Machine, order: DeletionOrder, now: number): number {
  if (machine.metadata.deletionTimestamp !== undefined) return 100;
  if (machine.metadata.annotations?.[DELETE_MACHINE_ANNOTATION] !== undefined) return 80;
  if (isTrue(machine, 'Updating')) return 75;
  if (!machine.status?.nodeRef || !isTrue(machine, 'NodeHealthy')) return 50;
  if (order === 'Random') return 20;
  // Older Machines weigh more, up to 20 after ten days; Newest turns that round.
  const days = (now - Date.parse(machine.metadata.creationTimestamp ?? '')) / (24 * 60 * 60 * 1000);
  const age = 20 * (1 - Math.exp(-days / 10));
  return order === 'Oldest' ? age : 20 - age;
}

/** Machines in the order in which they are given up. */
export function deletionOrder(present: readonly Machine[], order: DeletionOrder, now: number): Machine[] {
  return [...present].sort(
    (a, b) =>
      priority(b, order, now) - priority(a, order, now) || a.metadata.name.localeCompare(b.metadata.name),
  );
}

/**
 * MachineSet: keeps a number of Machines. Models core/reconcilers/machineset (no remediation, no adoption of Machines it has not made).
 */
export function startMachineSetController(context: Context): Running {
  const { client, caches, clock, ids, log } = context;
  const recorder = context.recorder('machineset-controller');
  const loop = startLoop({
    name: 'machineset',
    clock,
    log,
    ready: () => context.ready(),
    reconcile: (key) => reconcile(key),
  });
  const enqueue = (object: MachineSet): void => loop.enqueue(objectKey(object));
  const ofMachine = (machine: KubeObject): void => {
    const owner = controllerOf(machine);
    if (owner?.kind === 'MachineSet') loop.enqueue(`${machine.metadata.namespace ?? ''}/${owner.name}`);
  };
  const ofCluster = (cluster: Cluster): void => {
    for (const set of caches.machineSets.byIndex(BY_CLUSTER, objectKey(cluster))) enqueue(set);
  };
  const watches = [
    caches.machineSets.on({ added: enqueue, updated: (_, now) => enqueue(now) }),
    caches.machines.on({ added: ofMachine, updated: (_, now) => ofMachine(now), deleted: ofMachine }),
    caches.clusters.on({
      added: ofCluster,
      updated: (old, now) => {
        if (old.spec.paused !== now.spec.paused) ofCluster(now);
      },
    }),
    caches.controlPlanes.on({
      updated: (old, now) => {
        const moved =
          old.status?.version !== now.status?.version ||
          old.spec.version !== now.spec.version ||
          old.status?.initialization?.controlPlaneInitialized !==
            now.status?.initialization?.controlPlaneInitialized;
        for (const cluster of moved ? caches.clusters.byIndex('controlPlane', objectKey(now)) : [])
          ofCluster(cluster);
      },
    }),
  ];

  const machinesOf = (set: MachineSet): Machine[] =>
    caches.machines
      .byIndex(BY_CLUSTER, `${set.metadata.namespace ?? ''}/${set.spec.clusterName}`)
      .filter((machine) => controllerOf(machine)?.uid === set.metadata.uid);

  const liveMachines = async (set: MachineSet): Promise<Machine[]> => {
    const { items } = await client.list(machines, {
      namespace: set.metadata.namespace,
      labelSelector: `${CLUSTER_NAME_LABEL}=${set.spec.clusterName}`,
    });
    return items.filter((machine) => controllerOf(machine)?.uid === set.metadata.uid);
  };

  /** Why no Machine may be added now; empty when one may. Models machineset_preflight.go. */
  const preflight = (cluster: Cluster): string[] => {
    if (!cluster.spec.controlPlaneRef) return [];
    const controlPlane = caches.controlPlanes.get(
      `${cluster.metadata.namespace ?? ''}/${cluster.spec.controlPlaneRef.name}`,
    );
    if (!controlPlane?.status?.version || !controlPlane.status.initialization?.controlPlaneInitialized) {
      return [
        `${cluster.spec.controlPlaneRef.kind} ${cluster.spec.controlPlaneRef.name} is provisioning ("ControlPlaneIsStable" preflight check failed)`,
      ];
    }
    if (controlPlane.status.version !== controlPlane.spec.version) {
      return [
        `${cluster.spec.controlPlaneRef.kind} ${cluster.spec.controlPlaneRef.name} is upgrading ("ControlPlaneIsStable" preflight check failed)`,
      ];
    }
    return [];
  };

  const createOne = async (set: MachineSet, present: Set<string>): Promise<boolean> => {
    const { template, clusterName } = set.spec;
    const ref = template.spec.bootstrap.configRef;
    const config = ref && (await find(client, kubeadmConfigTemplates, set.metadata.namespace, ref.name));
    if (!config) return false;
    const { bootstrap: _, infrastructureRef, clusterName: _name, ...spec } = template.spec;
    const machine = await orderMachine(
      {
        client,
        ids,
        owner: set,
        clusterName,
        labels: { ...template.metadata?.labels, [SET_NAME_LABEL]: set.metadata.name },
        annotations: { ...template.metadata?.annotations },
        infrastructure: infrastructureRef,
        bootstrap: { spec: cloneJson(config.spec.template.spec), ...(ref ? { from: ref } : {}) },
        spec,
      },
      present,
    );
    if (!machine) return false;
    present.add(machine.metadata.name);
    recorder.event(set, 'Normal', 'SuccessfulCreate', `Created Machine "${machine.metadata.name}"`);
    return true;
  };

  const scaleUp = async (set: MachineSet, cluster: Cluster): Promise<string[]> => {
    const blocked = preflight(cluster);
    if (blocked.length > 0) return blocked;
    const present = new Set((await liveMachines(set)).map((machine) => machine.metadata.name));
    while (present.size < (set.spec.replicas ?? 1)) if (!(await createOne(set, present))) break;
    return [];
  };

  const scaleDown = async (set: MachineSet): Promise<void> => {
    const present = await liveMachines(set);
    const surplus = deletionOrder(present, set.spec.deletion?.order ?? 'Random', clock.now()).slice(
      0,
      Math.max(0, present.length - (set.spec.replicas ?? 1)),
    );
    for (const machine of surplus.filter((candidate) => candidate.metadata.deletionTimestamp === undefined)) {
      await remove(client, machines, machine);
      recorder.event(set, 'Normal', 'SuccessfulDelete', `Deleted Machine "${machine.metadata.name}"`);
    }
  };

  /** Machines whose deletion has begun do not count: the set makes another at once. */
  const scale = async (set: MachineSet, cluster: Cluster): Promise<string[]> => {
    const present = machinesOf(set);
    const wanted = set.spec.replicas ?? 1;
    if (present.length < wanted) return scaleUp(set, cluster);
    if (present.length > wanted) await scaleDown(set);
    return [];
  };

  const adoptTemplates = async (set: MachineSet, cluster: Cluster): Promise<string[]> => {
    const { bootstrap, infrastructureRef } = set.spec.template.spec;
    const there = [
      bootstrap.configRef
        ? await adoptTemplate(client, kubeadmConfigTemplates, bootstrap.configRef.name, cluster)
        : true,
      await adoptTemplate(client, kubevirtMachineTemplates, infrastructureRef.name, cluster),
    ];
    const kinds = [bootstrap.configRef?.kind ?? '', infrastructureRef.kind];
    return kinds.filter((_, index) => !there[index]);
  };

  const takeDown = async (set: MachineSet): Promise<void> => {
    const present = await liveMachines(set);
    for (const machine of present) await remove(client, machines, machine);
    if (present.length === 0) dropFinalizer(set, MACHINE_SET_FINALIZER);
  };

  const reconcile = async (key: string): Promise<void> => {
    let before = caches.machineSets.get(key);
    const cluster =
      before && caches.clusters.get(`${before.metadata.namespace ?? ''}/${before.spec.clusterName}`);
    if (!before || !cluster) return;
    const paused = pauses(cluster, before);
    if (paused.length > 0) {
      const object = cloneJson(before);
      report(object, clock.now(), pausedFinding(paused));
      await saveChanges(client, machineSets, before, object);
      return;
    }
    const leaving = before.metadata.deletionTimestamp !== undefined;
    if (leaving && !before.metadata.finalizers?.includes(MACHINE_SET_FINALIZER)) return;
    if (!leaving) before = await withFinalizer(client, machineSets, before, MACHINE_SET_FINALIZER);
    const set = cloneJson(before);
    set.metadata.labels = { ...set.metadata.labels, [CLUSTER_NAME_LABEL]: set.spec.clusterName };
    let missing: string[] = [];
    let blocked: string[] = [];
    if (leaving) await takeDown(set);
    else {
      if (!controllerOf(set))
        set.metadata.ownerReferences = [
          {
            apiVersion: cluster.apiVersion,
            kind: 'Cluster',
            name: cluster.metadata.name,
            uid: cluster.metadata.uid ?? '',
          },
        ];
      missing = await adoptTemplates(set, cluster);
      blocked = await scale(set, cluster);
    }
    (set.status ??= {}).selector = formatLabelSelector(set.spec.selector);
    reportMachineSet({ set, machines: machinesOf(set), missing, blocked, now: clock.now() });
    report(set, clock.now(), pausedFinding([]));
    set.status.observedGeneration = before.metadata.generation ?? 1;
    await saveChanges(client, machineSets, before, set);
  };

  return {
    enqueue: (key) => loop.enqueue(key),
    async stop() {
      for (const watch of watches) watch.stop();
      await loop.stop();
    },
  };
}
