import {
  aggregate,
  type Conditioned,
  conditionOf,
  deletingFinding,
  type Finding,
  report,
  summarize,
  words,
} from './conditions.ts';
import type { Cluster, Machine, MachineDeployment, MachineSet, VersionCount } from './core-resources.ts';
import type { KubeadmControlPlane } from './kubeadm-resources.ts';
import type { KubevirtCluster } from './kubevirt-resources.ts';
import { CONTROL_PLANE_LABEL } from './vocabulary.ts';

/** What a Cluster's status is made of. */
export interface ClusterFacts {
  cluster: Cluster;
  infrastructure: KubevirtCluster | undefined;
  controlPlane: KubeadmControlPlane | undefined;
  deployments: readonly MachineDeployment[];
  sets: readonly MachineSet[];
  machines: readonly Machine[];
  /** Did the workload cluster answer? Undefined: it was not asked yet. */
  reachable: boolean | undefined;
  deleting: { reason: string; message: string };
  now: number;
}

type Counts = NonNullable<NonNullable<Cluster['status']>['workers']>;

function sum(values: readonly (number | undefined)[]): number | undefined {
  const known = values.filter((value) => value !== undefined);
  return known.length > 0 ? known.reduce((total, value) => total + value, 0) : undefined;
}

function defined(counts: Record<string, number | undefined>): Counts {
  return Object.fromEntries(Object.entries(counts).filter(([, value]) => value !== undefined));
}

/** How many Machines run each version, lowest version first. */
export function countVersions(machines: readonly Machine[]): VersionCount[] {
  const counts = new Map<string, number>();
  for (const machine of machines)
    if (machine.spec.version) counts.set(machine.spec.version, (counts.get(machine.spec.version) ?? 0) + 1);
  return [...counts]
    .sort(([a], [b]) => a.localeCompare(b, 'en', { numeric: true }))
    .map(([version, replicas]) => ({ version, replicas }));
}

function controlPlaneCounts({ controlPlane }: ClusterFacts): Counts {
  const status = controlPlane?.status;
  return {
    ...defined({
      desiredReplicas: controlPlane?.spec.replicas,
      replicas: status?.replicas,
      readyReplicas: status?.readyReplicas,
      availableReplicas: status?.availableReplicas,
      upToDateReplicas: status?.upToDateReplicas,
    }),
    ...(status?.versions ? { versions: status.versions } : {}),
  };
}

function workerCounts({ deployments, sets, cluster, machines }: ClusterFacts): Counts {
  const standing = sets.filter((set) =>
    set.metadata.ownerReferences?.some(
      (owner) => owner.kind === 'Cluster' && owner.uid === cluster.metadata.uid,
    ),
  );
  const groups = [...deployments, ...standing];
  const versions = countVersions(
    machines.filter((machine) => machine.metadata.labels?.[CONTROL_PLANE_LABEL] === undefined),
  );
  return {
    ...defined({
      desiredReplicas: sum(groups.map((group) => group.spec.replicas)),
      replicas: sum(groups.map((group) => group.status?.replicas)),
      readyReplicas: sum(groups.map((group) => group.status?.readyReplicas)),
      availableReplicas: sum(groups.map((group) => group.status?.availableReplicas)),
      upToDateReplicas: sum(groups.map((group) => group.status?.upToDateReplicas)),
    }),
    ...(versions.length > 0 ? { versions } : {}),
  };
}

/** Mirrors a condition of a referenced object under a name of the Cluster. */
function mirror(
  type: string,
  object: Conditioned | undefined,
  from: string,
  facts: { kind: string; known: boolean; reasons: { good: string; bad: string }; note: string },
): Finding {
  if (!object) {
    return {
      type,
      status: 'False',
      reason: facts.known ? 'Deleted' : 'DoesNotExist',
      message: `${facts.kind} ${facts.known ? 'has been deleted' : 'does not exist'}`,
    };
  }
  const condition = conditionOf(object, from);
  if (condition)
    return { type, status: condition.status, reason: condition.reason, message: condition.message };
  return facts.known
    ? { type, status: 'True', reason: facts.reasons.good }
    : { type, status: 'False', reason: facts.reasons.bad, message: facts.note };
}

function connectionFinding({ cluster, reachable }: ClusterFacts): Finding | undefined {
  const type = 'RemoteConnectionProbe';
  if (reachable) return { type, status: 'True', reason: 'ProbeSucceeded' };
  if (conditionOf(cluster, type))
    return reachable === false
      ? { type, status: 'False', reason: 'ProbeFailed', message: 'Remote connection probe failed' }
      : undefined;
  return { type, status: 'False', reason: 'ProbeFailed', message: 'Remote connection not established yet' };
}

function initializedFinding({ cluster, controlPlane }: ClusterFacts): Finding {
  const type = 'ControlPlaneInitialized';
  // Once true it stays: a control plane is initialised once.
  if (conditionOf(cluster, type)?.status === 'True') return { type, status: 'True', reason: 'Initialized' };
  if (!controlPlane)
    return {
      type,
      status: 'False',
      reason: 'DoesNotExist',
      message: `${cluster.spec.controlPlaneRef?.kind ?? ''} does not exist`,
    };
  if (controlPlane.status?.initialization?.controlPlaneInitialized)
    return { type, status: 'True', reason: 'Initialized' };
  return { type, status: 'False', reason: 'NotInitialized', message: 'Control plane not yet initialized' };
}

/** RollingOut, ScalingUp, ScalingDown: true when it is of the control plane or of a MachineDeployment. */
function operationFinding({ controlPlane, deployments }: ClusterFacts, type: string): Finding {
  const busy = [controlPlane, ...deployments].filter(
    (object) => conditionOf(object, type)?.status === 'True',
  );
  if (busy.length === 0) return { type, status: 'False', reason: `Not${type}` };
  const lines = busy.map(
    (object) =>
      `* ${object?.kind ?? ''} ${object?.metadata.name ?? ''}: ${conditionOf(object, type)?.message ?? ''}`,
  );
  return { type, status: 'True', reason: type, message: lines.join('\n') };
}

function phaseOf(cluster: Cluster): NonNullable<Cluster['status']>['phase'] {
  if (cluster.metadata.deletionTimestamp !== undefined) return 'Deleting';
  if (cluster.status?.initialization?.infrastructureProvisioned && cluster.spec.controlPlaneEndpoint?.host)
    return 'Provisioned';
  if (cluster.spec.infrastructureRef || cluster.spec.controlPlaneRef) return 'Provisioning';
  return cluster.status?.phase ?? 'Pending';
}

const MACHINES_READY = { good: 'Ready', bad: 'NotReady', unknown: 'ReadyUnknown' };
const MACHINES_UP_TO_DATE = { good: 'UpToDate', bad: 'NotUpToDate', unknown: 'UpToDateUnknown' };

function machineFindings({ machines }: ClusterFacts): Finding[] {
  const isControlPlane = (machine: Machine): boolean =>
    machine.metadata.labels?.[CONTROL_PLANE_LABEL] !== undefined;
  const groups = [
    ['ControlPlane', machines.filter(isControlPlane)],
    ['Worker', machines.filter((machine) => !isControlPlane(machine))],
  ] as const;
  return groups.flatMap(([prefix, group]) => [
    aggregate(group, 'Ready', {
      type: `${prefix}MachinesReady`,
      kind: 'Machine',
      empty: 'NoReplicas',
      reasons: MACHINES_READY,
    }),
    aggregate(
      group.filter((machine) => conditionOf(machine, 'UpToDate')),
      'UpToDate',
      {
        type: `${prefix}MachinesUpToDate`,
        kind: 'Machine',
        empty: 'NoReplicas',
        reasons: MACHINES_UP_TO_DATE,
      },
    ),
  ]);
}

/**
 * Fills in a Cluster's counts, conditions and phase, in place; returns whether the phase is another one.
 * Models cluster_controller_status.go.
 */
export function reportCluster(facts: ClusterFacts): boolean {
  const { cluster, infrastructure, controlPlane, deployments, now } = facts;
  const status = (cluster.status ??= {});
  status.controlPlane = controlPlaneCounts(facts);
  status.workers = workerCounts(facts);
  const provisioned = status.initialization?.infrastructureProvisioned ?? false;
  const initialized = status.initialization?.controlPlaneInitialized ?? false;
  const findings: (Finding | undefined)[] = [
    connectionFinding(facts),
    mirror('InfrastructureReady', infrastructure, 'Ready', {
      kind: cluster.spec.infrastructureRef?.kind ?? '',
      known: provisioned,
      reasons: { good: 'Ready', bad: 'NotReady' },
      note: `${cluster.spec.infrastructureRef?.kind ?? ''} status.initialization.provisioned is false`,
    }),
    mirror('ControlPlaneAvailable', controlPlane, 'Available', {
      kind: cluster.spec.controlPlaneRef?.kind ?? '',
      known: initialized,
      reasons: { good: 'Available', bad: 'NotAvailable' },
      note: `${cluster.spec.controlPlaneRef?.kind ?? ''} status.initialization.controlPlaneInitialized is false`,
    }),
    initializedFinding(facts),
    deployments.length === 0
      ? { type: 'WorkersAvailable', status: 'True', reason: 'NoWorkers' }
      : aggregate(deployments, 'Available', {
          type: 'WorkersAvailable',
          kind: 'MachineDeployment',
          empty: 'NoWorkers',
          reasons: words('Available'),
        }),
    ...machineFindings(facts),
    operationFinding(facts, 'RollingOut'),
    operationFinding(facts, 'ScalingUp'),
    operationFinding(facts, 'ScalingDown'),
    { type: 'Remediating', status: 'False', reason: 'NotRemediating' },
    deletingFinding(cluster, facts.deleting),
  ];
  report(cluster, now, ...findings.filter((finding) => finding !== undefined));
  report(
    cluster,
    now,
    summarize(cluster, 'Available', {
      of: [
        'Deleting',
        'RemoteConnectionProbe',
        'InfrastructureReady',
        'ControlPlaneAvailable',
        'WorkersAvailable',
      ],
      negative: ['Deleting'],
      reasons: words('Available'),
    }),
  );
  const phase = phaseOf(cluster);
  const changed = phase !== status.phase;
  if (phase) status.phase = phase;
  return changed;
}
