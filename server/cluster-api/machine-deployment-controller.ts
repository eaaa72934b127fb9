import { createHash } from 'node:crypto';
import {
  cloneJson,
  controllerOf,
  controllerReference,
  deepEqual,
  formatLabelSelector,
  generateName,
  isAlreadyExists,
  type KubeObject,
  objectKey,
} from '#server/kube';
import { BY_CLUSTER } from './caches.ts';
import { dropFinalizer, find, remove, saveChanges, withFinalizer } from './changes.ts';
import { pausedFinding, report } from './conditions.ts';
import { type Context, pauses, type Running } from './context.ts';
import {
  type Cluster,
  type MachineDeployment,
  type MachineSet,
  type MachineTemplate,
  machineDeployments,
  machineSets,
} from './core-resources.ts';
import { kubeadmConfigTemplates } from './kubeadm-resources.ts';
import { kubevirtMachineTemplates } from './kubevirt-resources.ts';
import { startLoop } from './loop.ts';
import { reportMachineDeployment, rolloutLimits } from './machine-set-status.ts';
import { sameTemplate } from './machine-templates.ts';
import {
  CLUSTER_NAME_LABEL,
  DEPLOYMENT_NAME_LABEL,
  MACHINE_DEPLOYMENT_FINALIZER,
  MACHINE_SET_FINALIZER,
  MANAGER,
  REVISION_ANNOTATION,
  TEMPLATE_HASH_LABEL,
} from './vocabulary.ts';

/** A number that stands for a template, as a label value. */
function templateHash(template: MachineTemplate): string {
  const digest = createHash('sha256').update(JSON.stringify(template)).digest();
  return String(digest.readUInt32BE(0));
}

function revisionOf(object: KubeObject): number {
  return Number(object.metadata.annotations?.[REVISION_ANNOTATION] ?? 0);
}

/** Fills in what upstream's webhook defaults: selector and template labels that belong together. In place. */
function applyDefaults(deployment: MachineDeployment): void {
  const { spec, metadata } = deployment;
  const labels = { [CLUSTER_NAME_LABEL]: spec.clusterName, [DEPLOYMENT_NAME_LABEL]: metadata.name };
  metadata.labels = { ...metadata.labels, [CLUSTER_NAME_LABEL]: spec.clusterName };
  spec.replicas ??= 1;
  if (!spec.selector.matchExpressions?.length)
    spec.selector = { ...spec.selector, matchLabels: { ...spec.selector.matchLabels, ...labels } };
  spec.template.metadata = {
    ...spec.template.metadata,
    labels: { ...spec.template.metadata?.labels, ...spec.selector.matchLabels, ...labels },
  };
}

/**
 * MachineDeployment: one MachineSet per template; scales it, and rolls from old ones to the new.
 * Models core/reconcilers/machinedeployment (RollingUpdate and OnDelete; no in-place updates, no remediation).
 */
export function startMachineDeploymentController(context: Context): Running {
  const { client, caches, clock, ids, log } = context;
  const recorder = context.recorder('machinedeployment-controller');
  const loop = startLoop({
    name: 'machinedeployment',
    clock,
    log,
    ready: () => context.ready(),
    reconcile: (key) => reconcile(key),
  });
  const enqueue = (object: MachineDeployment): void => loop.enqueue(objectKey(object));
  const ofSet = (set: KubeObject): void => {
    const owner = controllerOf(set);
    if (owner?.kind === 'MachineDeployment') loop.enqueue(`${set.metadata.namespace ?? ''}/${owner.name}`);
  };
  const ofMachine = (machine: KubeObject): void => {
    const name = machine.metadata.labels?.[DEPLOYMENT_NAME_LABEL];
    if (name) loop.enqueue(`${machine.metadata.namespace ?? ''}/${name}`);
  };
  const ofCluster = (cluster: Cluster): void => {
    for (const deployment of caches.machineDeployments.byIndex(BY_CLUSTER, objectKey(cluster)))
      enqueue(deployment);
  };
  const watches = [
    caches.machineDeployments.on({ added: enqueue, updated: (_, now) => enqueue(now) }),
    caches.machineSets.on({ added: ofSet, updated: (_, now) => ofSet(now), deleted: ofSet }),
    caches.machines.on({ added: ofMachine, updated: (_, now) => ofMachine(now), deleted: ofMachine }),
    caches.clusters.on({
      added: ofCluster,
      updated: (old, now) => {
        if (old.spec.paused !== now.spec.paused) ofCluster(now);
      },
    }),
  ];

  const clusterKey = (deployment: MachineDeployment): string =>
    `${deployment.metadata.namespace ?? ''}/${deployment.spec.clusterName}`;
  const liveSets = async (deployment: MachineDeployment): Promise<MachineSet[]> => {
    const { items } = await client.list(machineSets, {
      namespace: deployment.metadata.namespace,
      labelSelector: `${DEPLOYMENT_NAME_LABEL}=${deployment.metadata.name}`,
    });
    return items.filter((set) => controllerOf(set)?.uid === deployment.metadata.uid);
  };
  const machinesOf = (deployment: MachineDeployment) =>
    caches.machines
      .byIndex(BY_CLUSTER, clusterKey(deployment))
      .filter((machine) => machine.metadata.labels?.[DEPLOYMENT_NAME_LABEL] === deployment.metadata.name);

  const createSet = async (
    deployment: MachineDeployment,
    olds: readonly MachineSet[],
    replicas: number,
  ): Promise<MachineSet> => {
    const suffix = ids.suffix(5);
    const { template, selector, clusterName } = deployment.spec;
    const hash = { [TEMPLATE_HASH_LABEL]: `${templateHash(template)}-${suffix}` };
    const revision = Math.max(0, ...olds.map(revisionOf)) + 1;
    const set: MachineSet = {
      apiVersion: 'cluster.x-k8s.io/v1beta2',
      kind: 'MachineSet',
      metadata: {
        name: generateName(`${deployment.metadata.name}-`, suffix),
        ...(deployment.metadata.namespace ? { namespace: deployment.metadata.namespace } : {}),
        labels: { ...template.metadata?.labels, ...hash },
        annotations: { [REVISION_ANNOTATION]: String(revision) },
        ownerReferences: [controllerReference(deployment)],
        finalizers: [MACHINE_SET_FINALIZER],
      },
      spec: {
        clusterName,
        replicas,
        selector: { ...selector, matchLabels: { ...selector.matchLabels, ...hash } },
        template: {
          ...template,
          metadata: { ...template.metadata, labels: { ...template.metadata?.labels, ...hash } },
        },
        ...(deployment.spec.deletion ? { deletion: deployment.spec.deletion } : {}),
      },
    };
    const made = await client.create(machineSets, set, MANAGER);
    recorder.event(
      deployment,
      'Normal',
      'SuccessfulCreate',
      `Created MachineSet ${objectKey(made)} with ${replicas} replicas`,
    );
    return made;
  };

  const scaleSet = async (
    deployment: MachineDeployment,
    set: MachineSet,
    replicas: number,
  ): Promise<void> => {
    const was = set.spec.replicas ?? 1;
    if (was === replicas) return;
    await client.patch(
      machineSets,
      { namespace: set.metadata.namespace, name: set.metadata.name },
      { type: 'merge', body: { spec: { replicas } } },
      MANAGER,
    );
    recorder.event(
      deployment,
      'Normal',
      'SuccessfulScale',
      `Scaled ${replicas > was ? 'up' : 'down'} MachineSet ${set.metadata.name}: ${was} -> ${replicas}`,
    );
  };

  /** Machines of the new set come and of the old ones go, within the limits of the rollout. */
  const roll = async (
    deployment: MachineDeployment,
    current: MachineSet,
    olds: readonly MachineSet[],
  ): Promise<void> => {
    const wanted = deployment.spec.replicas ?? 1;
    const { surge, unavailable } = rolloutLimits(deployment);
    const size = (set: MachineSet): number => set.spec.replicas ?? 1;
    const total = [current, ...olds].reduce((sum, set) => sum + size(set), 0);
    const onDelete = deployment.spec.rollout?.strategy?.type === 'OnDelete';
    const oldTotal = total - size(current);
    if (size(current) > wanted) return scaleSet(deployment, current, wanted);
    const room = Math.max(0, wanted + (onDelete ? 0 : surge) - total);
    const next = Math.min(wanted, size(current) + room);
    if (next > size(current)) await scaleSet(deployment, current, next);
    if (oldTotal === 0 || onDelete) return;
    const available = [current, ...olds].reduce((sum, set) => sum + (set.status?.availableReplicas ?? 0), 0);
    let spare = Math.max(0, available - (wanted - unavailable));
    // Machines of old sets that never became available are given up first: they cost nothing.
    for (const set of olds) {
      const broken = Math.max(0, size(set) - (set.status?.availableReplicas ?? 0));
      const less = Math.min(size(set), broken + spare);
      spare -= Math.max(0, less - broken);
      if (less > 0) await scaleSet(deployment, set, size(set) - less);
    }
  };

  const synchronize = async (deployment: MachineDeployment): Promise<void> => {
    const sets = await liveSets(deployment);
    const matching = sets
      .filter((set) => sameTemplate(set.spec.template, deployment.spec.template))
      .sort((a, b) => revisionOf(b) - revisionOf(a));
    const wanted = deployment.spec.replicas ?? 1;
    const [found] = matching;
    const olds = sets.filter((set) => set !== found);
    if (deployment.spec.paused && !found) return;
    const busy = olds.reduce((sum, set) => sum + (set.spec.replicas ?? 1), 0);
    const first =
      busy === 0 ? wanted : Math.max(0, Math.min(wanted, wanted + rolloutLimits(deployment).surge - busy));
    const current = found ?? (await createSet(deployment, olds, first));
    deployment.metadata.annotations = {
      ...deployment.metadata.annotations,
      [REVISION_ANNOTATION]: String(revisionOf(current)),
    };
    if (!deepEqual(current.spec.deletion, deployment.spec.deletion) && deployment.spec.deletion) {
      await client.patch(
        machineSets,
        { namespace: current.metadata.namespace, name: current.metadata.name },
        { type: 'merge', body: { spec: { deletion: deployment.spec.deletion } } },
        MANAGER,
      );
    }
    await roll(deployment, current, olds);
    for (const set of olds)
      if ((set.spec.replicas ?? 1) === 0 && (set.status?.replicas ?? 0) === 0 && busy === 0)
        await remove(client, machineSets, set);
  };

  const missingTemplates = async (deployment: MachineDeployment): Promise<string[]> => {
    const { bootstrap, infrastructureRef } = deployment.spec.template.spec;
    const { namespace } = deployment.metadata;
    const missing: string[] = [];
    if (
      bootstrap.configRef &&
      !(await find(client, kubeadmConfigTemplates, namespace, bootstrap.configRef.name))
    )
      missing.push(bootstrap.configRef.kind);
    if (!(await find(client, kubevirtMachineTemplates, namespace, infrastructureRef.name)))
      missing.push(infrastructureRef.kind);
    return missing;
  };

  const takeDown = async (deployment: MachineDeployment): Promise<void> => {
    const sets = await liveSets(deployment);
    for (const set of sets) await remove(client, machineSets, set);
    if (sets.length === 0) dropFinalizer(deployment, MACHINE_DEPLOYMENT_FINALIZER);
  };

  const provide = async (deployment: MachineDeployment): Promise<void> => {
    try {
      await synchronize(deployment);
    } catch (error) {
      // Another attempt made the set meanwhile; its event brings us back.
      if (!isAlreadyExists(error)) throw error;
    }
  };

  const reconcile = async (key: string): Promise<void> => {
    let before = caches.machineDeployments.get(key);
    const cluster = before && caches.clusters.get(clusterKey(before));
    if (!before || !cluster) return;
    const paused = pauses(cluster, before);
    if (paused.length > 0) {
      const object = cloneJson(before);
      report(object, clock.now(), pausedFinding(paused));
      await saveChanges(client, machineDeployments, before, object);
      return;
    }
    const leaving = before.metadata.deletionTimestamp !== undefined;
    if (leaving && !before.metadata.finalizers?.includes(MACHINE_DEPLOYMENT_FINALIZER)) return;
    if (!leaving)
      before = await withFinalizer(client, machineDeployments, before, MACHINE_DEPLOYMENT_FINALIZER);
    const deployment = cloneJson(before);
    let missing: string[] = [];
    if (leaving) await takeDown(deployment);
    else {
      applyDefaults(deployment);
      if (!deployment.metadata.ownerReferences?.length)
        deployment.metadata.ownerReferences = [
          {
            apiVersion: cluster.apiVersion,
            kind: 'Cluster',
            name: cluster.metadata.name,
            uid: cluster.metadata.uid ?? '',
          },
        ];
      missing = await missingTemplates(deployment);
      await provide(deployment);
    }
    (deployment.status ??= {}).selector = formatLabelSelector(deployment.spec.selector);
    reportMachineDeployment({ deployment, machines: machinesOf(deployment), missing, now: clock.now() });
    report(deployment, clock.now(), pausedFinding([]));
    deployment.status.observedGeneration = before.metadata.generation ?? 1;
    await saveChanges(client, machineDeployments, before, deployment);
  };

  return {
    enqueue: (key) => loop.enqueue(key),
    async stop() {
      for (const watch of watches) watch.stop();
      await loop.stop();
    },
  };
}
