import { countVersions } from './cluster-status.ts';
import { aggregate, conditionOf, deletingFinding, type Finding, isTrue, report } from './conditions.ts';
import type { Cluster, Machine } from './core-resources.ts';
import type { KubeadmControlPlane } from './kubeadm-resources.ts';
import { CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL } from './vocabulary.ts';

const COMPONENTS = ['APIServerPodHealthy', 'ControllerManagerPodHealthy', 'SchedulerPodHealthy'];
const ETCD = ['EtcdPodHealthy', 'EtcdMemberHealthy'];

/** What a KubeadmControlPlane's status is made of. */
export interface ControlPlaneFacts {
  controlPlane: KubeadmControlPlane;
  cluster: Cluster;
  machines: readonly Machine[];
  templateMissing: boolean;
  deleting: { reason: string; message: string };
  now: number;
}

/** One condition over a part of the conditions of all Machines. Models aggregateConditionsFromMachinesToKCP. */
function healthFinding(
  { machines, controlPlane }: ControlPlaneFacts,
  type: string,
  parts: readonly string[],
  waiting: string,
): Finding {
  if (!controlPlane.status?.initialization?.controlPlaneInitialized)
    return { type, status: 'Unknown', reason: 'InspectionFailed', message: waiting };
  const lines: string[] = [];
  let bad = false;
  for (const machine of machines.filter((candidate) => candidate.spec.providerID)) {
    for (const part of parts) {
      const condition = conditionOf(machine, part);
      if (condition?.status === 'True') continue;
      bad ||= condition?.status === 'False';
      lines.push(
        `* Machine ${machine.metadata.name}:\n  * ${part}: ${condition?.message || condition?.reason || 'Condition not yet reported'}`,
      );
    }
  }
  if (lines.length === 0) return { type, status: 'True', reason: 'Healthy' };
  return {
    type,
    status: bad ? 'False' : 'Unknown',
    reason: bad ? 'NotHealthy' : 'HealthUnknown',
    message: lines.join('\n'),
  };
}

function availableFinding({ controlPlane, machines }: ControlPlaneFacts): Finding {
  const type = 'Available';
  const no = (message: string): Finding => ({ type, status: 'False', reason: 'NotAvailable', message });
  if (!controlPlane.status?.initialization?.controlPlaneInitialized)
    return no('Control plane not yet initialized');
  const healthy = machines.filter((machine) =>
    [...COMPONENTS, ...ETCD].every((part) => isTrue(machine, part)),
  );
  const quorum = Math.floor(machines.length / 2) + 1;
  const etcd = machines.filter((machine) => isTrue(machine, 'EtcdMemberHealthy')).length;
  const lines: string[] = [];
  if (controlPlane.metadata.deletionTimestamp !== undefined)
    lines.push('* Control plane metadata.deletionTimestamp is set');
  if (!isTrue(controlPlane, 'CertificatesAvailable'))
    lines.push('* Control plane certificates are not available');
  if (etcd < quorum)
    lines.push(
      `* ${etcd} of ${machines.length} etcd members ${etcd === 1 ? 'is' : 'are'} healthy, at least ${quorum} healthy member${quorum === 1 ? '' : 's'} required for etcd quorum`,
    );
  if (healthy.length === 0)
    lines.push('* There are no Machines with healthy control plane components, at least 1 required');
  return lines.length === 0 ? { type, status: 'True', reason: 'Available' } : no(lines.join('\n'));
}

function scalingFindings({ controlPlane, machines, templateMissing }: ControlPlaneFacts): Finding[] {
  const current = machines.length;
  const desired =
    controlPlane.metadata.deletionTimestamp === undefined ? (controlPlane.spec.replicas ?? 1) : 0;
  const missing = templateMissing
    ? `${controlPlane.spec.machineTemplate.spec.infrastructureRef.kind} does not exist`
    : '';
  const up: Finding =
    current < desired
      ? {
          type: 'ScalingUp',
          status: 'True',
          reason: 'ScalingUp',
          message: `Scaling up from ${current} to ${desired} replicas${missing ? ` is blocked because:\n* ${missing}` : ''}`,
        }
      : {
          type: 'ScalingUp',
          status: 'False',
          reason: 'NotScalingUp',
          message: missing ? `Scaling up would be blocked because ${missing}` : '',
        };
  const down: Finding =
    current > desired
      ? {
          type: 'ScalingDown',
          status: 'True',
          reason: 'ScalingDown',
          message: `Scaling down from ${current} to ${desired} replicas`,
        }
      : { type: 'ScalingDown', status: 'False', reason: 'NotScalingDown' };
  return [up, down];
}

function rollingOutFinding(machines: readonly Machine[]): Finding {
  const outdated = machines.filter((machine) => conditionOf(machine, 'UpToDate')?.status === 'False');
  if (outdated.length === 0) return { type: 'RollingOut', status: 'False', reason: 'NotRollingOut' };
  const why = [
    ...new Set(
      outdated.flatMap((machine) =>
        (conditionOf(machine, 'UpToDate')?.message ?? '').split('\n').filter(Boolean),
      ),
    ),
  ].sort();
  return {
    type: 'RollingOut',
    status: 'True',
    reason: 'RollingOut',
    message: [`Rolling out ${outdated.length} not up-to-date replicas`, ...why].join('\n'),
  };
}

/** Fills in counts and conditions of a KubeadmControlPlane, in place. Models status.go of the control plane provider. */
export function reportControlPlane(facts: ControlPlaneFacts): void {
  const { controlPlane, cluster, machines, now } = facts;
  const status = (controlPlane.status ??= {});
  status.selector = `${CLUSTER_NAME_LABEL}=${cluster.metadata.name},${CONTROL_PLANE_LABEL}`;
  const count = (type: string): number => machines.filter((machine) => isTrue(machine, type)).length;
  Object.assign(status, {
    replicas: machines.length,
    readyReplicas: count('Ready'),
    availableReplicas: count('Available'),
    upToDateReplicas: count('UpToDate'),
  });
  const versions = countVersions(machines);
  if (versions[0]) Object.assign(status, { versions, version: versions[0].version });
  const waiting = cluster.status?.initialization?.infrastructureProvisioned
    ? 'Waiting for Cluster control plane to be initialized'
    : 'Waiting for Cluster status.infrastructureReady to be true';
  const initialized = status.initialization?.controlPlaneInitialized ?? false;
  report(
    controlPlane,
    now,
    initialized
      ? { type: 'Initialized', status: 'True', reason: 'Initialized' }
      : { type: 'Initialized', status: 'False', reason: 'NotInitialized' },
    healthFinding(facts, 'EtcdClusterHealthy', ETCD, waiting),
    healthFinding(facts, 'ControlPlaneComponentsHealthy', COMPONENTS, waiting),
    rollingOutFinding(machines),
    ...scalingFindings(facts),
    aggregate(machines, 'Ready', {
      type: 'MachinesReady',
      kind: 'Machine',
      empty: 'NoReplicas',
      reasons: { good: 'Ready', bad: 'NotReady', unknown: 'ReadyUnknown' },
    }),
    aggregate(
      machines.filter((machine) => conditionOf(machine, 'UpToDate')),
      'UpToDate',
      {
        type: 'MachinesUpToDate',
        kind: 'Machine',
        empty: 'NoReplicas',
        reasons: { good: 'UpToDate', bad: 'NotUpToDate', unknown: 'UpToDateUnknown' },
      },
    ),
    { type: 'Remediating', status: 'False', reason: 'NotRemediating' },
    deletingFinding(controlPlane, facts.deleting),
    availableFinding(facts),
  );
}
