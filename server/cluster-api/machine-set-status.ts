import { resolveIntOrPercent } from '#server/kube';
import { countVersions } from './cluster-status.ts';
import { aggregate, conditionOf, deletingFinding, type Finding, isTrue, report } from './conditions.ts';
import type { Machine, MachineDeployment, MachineSet } from './core-resources.ts';

/** Fills in what MachineSets and MachineDeployments count of their Machines, in place. */
function countMachines(status: NonNullable<MachineSet['status']>, machines: readonly Machine[]): void {
  const count = (type: string): number => machines.filter((machine) => isTrue(machine, type)).length;
  Object.assign(status, {
    replicas: machines.length,
    readyReplicas: count('Ready'),
    availableReplicas: count('Available'),
    upToDateReplicas: count('UpToDate'),
  });
  const versions = countVersions(machines);
  if (versions.length > 0) status.versions = versions;
  else delete status.versions;
}

function machineFindings(machines: readonly Machine[]): Finding[] {
  return [
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
  ];
}

function scalingFindings(
  current: number,
  desired: number,
  missing: readonly string[],
  blocked: readonly string[],
): Finding[] {
  const absent =
    missing.length > 0 ? `${missing.join(' and ')} ${missing.length > 1 ? 'do' : 'does'} not exist` : '';
  const reasons = [...blocked, ...(absent ? [absent] : [])].map((text) => `* ${text}`);
  const up: Finding =
    current < desired
      ? {
          type: 'ScalingUp',
          status: 'True',
          reason: 'ScalingUp',
          message: `Scaling up from ${current} to ${desired} replicas${reasons.length > 0 ? ` is blocked because:\n${reasons.join('\n')}` : ''}`,
        }
      : {
          type: 'ScalingUp',
          status: 'False',
          reason: 'NotScalingUp',
          message: absent ? `Scaling up would be blocked because ${absent}` : '',
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

function deletingMessage(count: number): string {
  return count > 0 ? `Deleting ${count} Machine${count === 1 ? '' : 's'}` : 'Deletion completed';
}

/** Fills in counts and conditions of a MachineSet, in place. Models machineset_controller_status.go. */
export function reportMachineSet({
  set,
  machines,
  missing,
  blocked,
  now,
}: {
  set: MachineSet;
  machines: readonly Machine[];
  missing: readonly string[];
  blocked: readonly string[];
  now: number;
}): void {
  countMachines((set.status ??= {}), machines);
  const desired = set.metadata.deletionTimestamp === undefined ? (set.spec.replicas ?? 1) : 0;
  report(
    set,
    now,
    ...scalingFindings(machines.length, desired, missing, blocked),
    ...machineFindings(machines),
    deletingFinding(set, { reason: 'Deleting', message: deletingMessage(machines.length) }),
  );
}

/** How many Machines of a deployment may be too many, and too few, during a rollout. */
export function rolloutLimits(deployment: MachineDeployment): { surge: number; unavailable: number } {
  const replicas = deployment.spec.replicas ?? 1;
  const limits = deployment.spec.rollout?.strategy?.rollingUpdate;
  const surge = resolveIntOrPercent(limits?.maxSurge ?? 1, replicas, true);
  const unavailable = resolveIntOrPercent(limits?.maxUnavailable ?? 0, replicas, false);
  return surge === 0 && unavailable === 0 ? { surge, unavailable: 1 } : { surge, unavailable };
}

function availableFinding(deployment: MachineDeployment): Finding {
  const replicas = deployment.spec.replicas ?? 1;
  const available = deployment.status?.availableReplicas ?? 0;
  const needed = replicas - (replicas > 0 ? rolloutLimits(deployment).unavailable : 0);
  if (available >= needed) return { type: 'Available', status: 'True', reason: 'Available' };
  const limit = deployment.spec.rollout?.strategy?.rollingUpdate?.maxUnavailable;
  const why =
    limit === undefined
      ? ''
      : ` (spec.strategy.rollout.maxUnavailable is ${limit}, spec.replicas is ${replicas})`;
  return {
    type: 'Available',
    status: 'False',
    reason: 'NotAvailable',
    message: `${available} available replicas, at least ${needed} required${why}`,
  };
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

function phaseOf(
  deployment: MachineDeployment,
  current: number,
): NonNullable<MachineDeployment['status']>['phase'] {
  if (deployment.metadata.deletionTimestamp !== undefined) return 'ScalingDown';
  const desired = deployment.spec.replicas ?? 1;
  if (current > desired) return 'ScalingDown';
  if (current < desired) return 'ScalingUp';
  return (deployment.status?.readyReplicas ?? 0) === desired ? 'Running' : 'ScalingUp';
}

/** Fills in counts, conditions and phase of a MachineDeployment, in place. Models machinedeployment_status.go. */
export function reportMachineDeployment({
  deployment,
  machines,
  missing,
  now,
}: {
  deployment: MachineDeployment;
  machines: readonly Machine[];
  missing: readonly string[];
  now: number;
}): void {
  const status = (deployment.status ??= {});
  countMachines(status, machines);
  const desired = deployment.metadata.deletionTimestamp === undefined ? (deployment.spec.replicas ?? 1) : 0;
  report(
    deployment,
    now,
    availableFinding(deployment),
    rollingOutFinding(machines),
    ...scalingFindings(machines.length, desired, missing, []),
    ...machineFindings(machines),
    deletingFinding(deployment, { reason: 'Deleting', message: deletingMessage(machines.length) }),
  );
  const phase = phaseOf(deployment, machines.length);
  if (phase) status.phase = phase;
}
