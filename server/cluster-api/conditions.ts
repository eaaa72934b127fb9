import { formatTime } from '#server/kube';

/** metav1.Condition. */
export interface Condition {
  type: string;
  status: 'True' | 'False' | 'Unknown';
  observedGeneration?: number;
  lastTransitionTime: string;
  reason: string;
  message: string;
}

/** What a controller says of one aspect; times and generation are filled in. */
export interface Finding {
  type: string;
  status: Condition['status'];
  reason: string;
  message?: string;
}

/** Anything that reports conditions. */
export interface Conditioned {
  metadata: { name: string; generation?: number; deletionTimestamp?: string };
  status?: { conditions?: Condition[] };
}

/** First what tells whether it works, last what goes on; the rest by name in between. */
const ORDER = [
  'Available',
  'Ready',
  'UpToDate',
  'RemoteConnectionProbe',
  'BootstrapConfigReady',
  'InfrastructureReady',
  'ControlPlaneInitialized',
  'ControlPlaneAvailable',
  'WorkersAvailable',
  'CertificatesAvailable',
  'Initialized',
  'EtcdClusterHealthy',
  'ControlPlaneComponentsHealthy',
  'NodeHealthy',
  'NodeReady',
  'NodeKubeadmLabelsAndTaintsSet',
  'EtcdPodHealthy',
  'EtcdMemberHealthy',
  'APIServerPodHealthy',
  'ControllerManagerPodHealthy',
  'SchedulerPodHealthy',
  'HealthCheckSucceeded',
  'OwnerRemediated',
  '',
  'TopologyReconciled',
  'Updating',
  'RollingOut',
  'Remediating',
  'ScalingDown',
  'ScalingUp',
  'MachinesReady',
  'ControlPlaneMachinesReady',
  'WorkerMachinesReady',
  'MachinesUpToDate',
  'ControlPlaneMachinesUpToDate',
  'WorkerMachinesUpToDate',
  'Deleting',
  'Paused',
];
const RANK = new Map(ORDER.map((type, index) => [type, index]));
const OTHER = RANK.get('') ?? 0;

function rank(type: string): number {
  return RANK.get(type) ?? OTHER;
}

export function conditionOf(object: Conditioned | undefined, type: string): Condition | undefined {
  return object?.status?.conditions?.find((condition) => condition.type === type);
}

export function isTrue(object: Conditioned | undefined, type: string): boolean {
  return conditionOf(object, type)?.status === 'True';
}

/**
 * Puts findings into an object's conditions, in place and in upstream's order; `lastTransitionTime` changes with the
 * status only. `now` is milliseconds. Models sigs.k8s.io/cluster-api/util/conditions (Set).
 */
export function report(object: Conditioned, now: number, ...findings: Finding[]): void {
  const conditions = ((object.status ??= {}).conditions ??= []);
  for (const finding of findings) {
    const index = conditions.findIndex((condition) => condition.type === finding.type);
    const old = conditions[index];
    const next: Condition = {
      lastTransitionTime: old && old.status === finding.status ? old.lastTransitionTime : formatTime(now),
      message: finding.message ?? '',
      ...(object.metadata.generation === undefined ? {} : { observedGeneration: object.metadata.generation }),
      reason: finding.reason,
      status: finding.status,
      type: finding.type,
    };
    if (index < 0) conditions.push(next);
    else conditions[index] = next;
  }
  conditions.sort((a, b) => rank(a.type) - rank(b.type) || (a.type < b.type ? -1 : 1));
}

/** A message after a colon: on the same line, or as a list of its own below. */
function indented(message: string): string {
  if (!message.includes('\n') && !message.startsWith('* ')) return ` ${message}`;
  const lines = message.split('\n').map((line) => `  ${line}`);
  return `\n${lines.join('\n')}`;
}

/**
 * One condition that sums several up: False when one is bad, Unknown when one is unknown, with a line for each that is
 * not well. Models NewSummaryCondition with the default merge strategy.
 */
export function summarize(
  object: Conditioned,
  type: string,
  options: {
    of: readonly string[];
    negative?: readonly string[];
    optional?: readonly string[];
    reasons: { good: string; bad: string; unknown: string };
  },
): Finding {
  const bad: string[] = [];
  const unknown: string[] = [];
  for (const part of options.of) {
    const condition = conditionOf(object, part);
    if (!condition) {
      if (!options.optional?.includes(part)) unknown.push(`* ${part}: Condition not yet reported`);
      continue;
    }
    const good = options.negative?.includes(part) ? 'False' : 'True';
    if (condition.status === good) continue;
    const line = condition.message
      ? `* ${part}:${indented(condition.message)}`
      : `* ${part}: ${condition.reason}`;
    (condition.status === 'Unknown' ? unknown : bad).push(line);
  }
  const { reasons } = options;
  if (bad.length > 0)
    return { type, status: 'False', reason: reasons.bad, message: [...bad, ...unknown].join('\n') };
  if (unknown.length > 0)
    return { type, status: 'Unknown', reason: reasons.unknown, message: unknown.join('\n') };
  return { type, status: 'True', reason: reasons.good };
}

function nameList(names: readonly string[], kind: string): string {
  const shown = names.slice(0, 3);
  const rest = names.length - shown.length;
  const plural = names.length > 1 ? `${kind}s` : kind;
  return `${plural} ${shown.join(', ')}${rest > 0 ? `, ... (${rest} more)` : ''}`;
}

/**
 * One condition for a group of objects that each report `from`. Models NewAggregateCondition.
 */
export function aggregate(
  objects: readonly Conditioned[],
  from: string,
  options: {
    type: string;
    kind: string;
    empty: string;
    reasons: { good: string; bad: string; unknown: string };
  },
): Finding {
  const { type, kind, reasons } = options;
  if (objects.length === 0) return { type, status: 'True', reason: options.empty };
  const groups = new Map<string, { status: Condition['status']; names: string[] }>();
  for (const object of objects) {
    const condition = conditionOf(object, from);
    const status = condition?.status ?? 'Unknown';
    if (status === 'True') continue;
    const message = condition
      ? condition.message || `${from} is ${status}`
      : `Condition ${from} not yet reported`;
    const key = `${status} ${message}`;
    const group = groups.get(key) ?? { status, names: [] };
    group.names.push(object.metadata.name);
    groups.set(key, group);
  }
  const lines = [...groups].map(([key, group]) => {
    const message = key.slice(key.indexOf(' ') + 1);
    return `* ${nameList([...group.names].sort(), kind)}:${indented(message)}`;
  });
  if (groups.size === 0) return { type, status: 'True', reason: reasons.good };
  const bad = [...groups.values()].some((group) => group.status === 'False');
  return {
    type,
    status: bad ? 'False' : 'Unknown',
    reason: bad ? reasons.bad : reasons.unknown,
    message: lines.join('\n'),
  };
}

/** The three words upstream uses for an aspect that holds, does not hold, or cannot be told: `Ready`, `NotReady`, `ReadyUnknown`. */
export function words(good: string): { good: string; bad: string; unknown: string } {
  return { good, bad: `Not${good}`, unknown: `${good}Unknown` };
}

/** Paused or not, as every controller reports it. */
export function pausedFinding(paused: readonly string[]): Finding {
  if (paused.length === 0) return { type: 'Paused', status: 'False', reason: 'NotPaused' };
  return { type: 'Paused', status: 'True', reason: 'Paused', message: paused.join(', ') };
}

/** Deleting or not; `stage` is where a deletion has got to. */
export function deletingFinding(object: Conditioned, stage: { reason: string; message: string }): Finding {
  if (object.metadata.deletionTimestamp === undefined)
    return { type: 'Deleting', status: 'False', reason: 'NotDeleting' };
  return { type: 'Deleting', status: 'True', ...stage };
}
