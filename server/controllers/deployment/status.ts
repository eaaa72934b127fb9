import {
  type Deployment,
  type DeploymentCondition,
  type DeploymentStatus,
  formatTime,
  type ReplicaSet,
} from '#server/kube';
import { maxUnavailable, totalAvailable, totalWanted, wanted } from './strategy.ts';

export const REASONS = {
  updated: 'ReplicaSetUpdated',
  created: 'NewReplicaSetCreated',
  found: 'FoundNewReplicaSet',
  available: 'NewReplicaSetAvailable',
  createError: 'ReplicaSetCreateError',
  timedOut: 'ProgressDeadlineExceeded',
  paused: 'DeploymentPaused',
  resumed: 'DeploymentResumed',
} as const;

/** The value that means no deadline, and no limit. */
const MAX_INT32 = 2 ** 31 - 1;

export function hasDeadline({ spec }: Deployment): boolean {
  return spec.progressDeadlineSeconds !== undefined && spec.progressDeadlineSeconds !== MAX_INT32;
}

export function conditionOf(
  status: DeploymentStatus | undefined,
  type: string,
): DeploymentCondition | undefined {
  return status?.conditions?.find((condition) => condition.type === type);
}

export function condition(
  type: string,
  status: string,
  reason: string,
  message: string,
  now: number,
): DeploymentCondition {
  const time = formatTime(now);
  return { type, status, lastUpdateTime: time, lastTransitionTime: time, reason, message };
}

/** `conditions` without those of a type. */
export function without(conditions: readonly DeploymentCondition[], type: string): DeploymentCondition[] {
  return conditions.filter((one) => one.type !== type);
}

/** Puts a condition last unless one of its status and reason is there; a kept status keeps its transition time. */
export function withCondition(
  conditions: readonly DeploymentCondition[],
  next: DeploymentCondition,
): DeploymentCondition[] {
  const old = conditions.find(({ type }) => type === next.type);
  if (old && old.status === next.status && old.reason === next.reason) return [...conditions];
  const kept =
    old?.status === next.status && old.lastTransitionTime
      ? { lastTransitionTime: old.lastTransitionTime }
      : {};
  return [...without(conditions, next.type), { ...next, ...kept }];
}

function sum(sets: readonly ReplicaSet[], of: (set: ReplicaSet) => number | undefined): number {
  return sets.reduce((total, set) => total + (of(set) ?? 0), 0);
}

/** Counts, and the Available condition. Models calculateStatus of sync.go. */
function counted(
  deployment: Deployment,
  all: readonly ReplicaSet[],
  current: ReplicaSet | undefined,
  now: number,
): DeploymentStatus {
  const available = totalAvailable(all);
  const unavailable = Math.max(0, totalWanted(all) - available);
  const enough = available >= wanted(deployment) - maxUnavailable(deployment);
  const replicas = sum(all, (set) => set.status?.replicas);
  const updated = current?.status?.replicas ?? 0;
  const ready = sum(all, (set) => set.status?.readyReplicas);
  const known = all.every((set) => set.status?.terminatingReplicas !== undefined);
  const { collisionCount, conditions = [] } = deployment.status ?? {};
  return {
    ...(deployment.metadata.generation === undefined
      ? {}
      : { observedGeneration: deployment.metadata.generation }),
    ...(replicas ? { replicas } : {}),
    ...(updated ? { updatedReplicas: updated } : {}),
    ...(ready ? { readyReplicas: ready } : {}),
    ...(available ? { availableReplicas: available } : {}),
    ...(unavailable ? { unavailableReplicas: unavailable } : {}),
    ...(known ? { terminatingReplicas: sum(all, (set) => set.status?.terminatingReplicas) } : {}),
    ...(collisionCount === undefined ? {} : { collisionCount }),
    conditions: withCondition(
      conditions,
      enough
        ? condition(
            'Available',
            'True',
            'MinimumReplicasAvailable',
            'Deployment has minimum availability.',
            now,
          )
        : condition(
            'Available',
            'False',
            'MinimumReplicasUnavailable',
            'Deployment does not have minimum availability.',
            now,
          ),
    ),
  };
}

/** All replicas are of the current template and available, and the status speaks of the current spec. */
export function isComplete(deployment: Deployment, status: DeploymentStatus | undefined): boolean {
  const { updatedReplicas = 0, replicas = 0, availableReplicas = 0, observedGeneration = 0 } = status ?? {};
  return (
    updatedReplicas === wanted(deployment) &&
    replicas === wanted(deployment) &&
    availableReplicas === wanted(deployment) &&
    observedGeneration >= (deployment.metadata.generation ?? 0)
  );
}

function hasProgressed(old: DeploymentStatus | undefined, next: DeploymentStatus): boolean {
  const numbers = ({
    replicas = 0,
    updatedReplicas = 0,
    readyReplicas = 0,
    availableReplicas = 0,
  }: DeploymentStatus = {}) => ({
    updated: updatedReplicas,
    outdated: replicas - updatedReplicas,
    ready: readyReplicas,
    available: availableReplicas,
  });
  const [before, after] = [numbers(old), numbers(next)];
  return (
    after.updated > before.updated ||
    after.outdated < before.outdated ||
    after.ready > before.ready ||
    after.available > before.available
  );
}

/** When (milliseconds since the epoch) the rollout will have taken too long without progress. */
function deadline(deployment: Deployment, progressing: DeploymentCondition): number {
  return Date.parse(progressing.lastUpdateTime ?? '') + (deployment.spec.progressDeadlineSeconds ?? 0) * 1000;
}

function hasTimedOut(deployment: Deployment, status: DeploymentStatus, now: number): boolean {
  const progressing = conditionOf(status, 'Progressing');
  if (!progressing || progressing.reason === REASONS.available) return false;
  return progressing.reason === REASONS.timedOut || deadline(deployment, progressing) < now;
}

function progress(
  deployment: Deployment,
  status: DeploymentStatus,
  current: ReplicaSet | undefined,
  now: number,
): DeploymentCondition[] {
  const conditions = status.conditions ?? [];
  const old = conditionOf(deployment.status, 'Progressing');
  const subject = current
    ? `ReplicaSet "${current.metadata.name}"`
    : `Deployment "${deployment.metadata.name}"`;
  if (isComplete(deployment, status)) {
    const message = `${subject} has successfully progressed.`;
    return withCondition(conditions, condition('Progressing', 'True', REASONS.available, message, now));
  }
  if (hasProgressed(deployment.status, status)) {
    // Every sign of progress moves lastUpdateTime, which the deadline counts from.
    const moved = condition('Progressing', 'True', REASONS.updated, `${subject} is progressing.`, now);
    const kept =
      old?.status === 'True' && old.lastTransitionTime ? { lastTransitionTime: old.lastTransitionTime } : {};
    return [...without(conditions, 'Progressing'), { ...moved, ...kept }];
  }
  if (!hasTimedOut(deployment, status, now)) return conditions;
  const message = `${subject} has timed out progressing.`;
  return withCondition(conditions, condition('Progressing', 'False', REASONS.timedOut, message, now));
}

function replicaFailure(
  all: readonly ReplicaSet[],
  current: ReplicaSet | undefined,
): DeploymentCondition | undefined {
  const failureOf = (set: ReplicaSet | undefined) =>
    set?.status?.conditions?.find(({ type }) => type === 'ReplicaFailure');
  const failure = failureOf(current) ?? all.map(failureOf).find((found) => found !== undefined);
  if (!failure) return undefined;
  const { lastTransitionTime } = failure;
  return { ...failure, ...(lastTransitionTime ? { lastUpdateTime: lastTransitionTime } : {}) };
}

/** The status while the size changes or the Deployment is paused: counts only. Models syncDeploymentStatus. */
export function scalingStatus(
  deployment: Deployment,
  all: readonly ReplicaSet[],
  current: ReplicaSet | undefined,
  now: number,
): DeploymentStatus {
  return counted(deployment, all, current, now);
}

/** The status during and after a rollout: counts, progress and failures. Models syncRolloutStatus of progress.go. */
export function rolloutStatus(
  deployment: Deployment,
  all: readonly ReplicaSet[],
  current: ReplicaSet | undefined,
  now: number,
): DeploymentStatus {
  const status = counted(deployment, all, current, now);
  const old = conditionOf(deployment.status, 'Progressing');
  const settled =
    (status.replicas ?? 0) === (status.updatedReplicas ?? 0) && old?.reason === REASONS.available;
  let conditions = status.conditions ?? [];
  if (!hasDeadline(deployment)) conditions = without(conditions, 'Progressing');
  else if (!settled) conditions = progress(deployment, status, current, now);
  const failure = replicaFailure(all, current);
  conditions = failure ? withCondition(conditions, failure) : without(conditions, 'ReplicaFailure');
  return { ...status, conditions };
}

/**
 * Milliseconds until the rollout, if nothing happens, must be judged against its deadline; undefined when there is none.
 * Models requeueStuckDeployment.
 */
export function nextProgressCheck(
  deployment: Deployment,
  status: DeploymentStatus,
  now: number,
): number | undefined {
  const progressing = conditionOf(deployment.status, 'Progressing');
  if (!hasDeadline(deployment) || !progressing) return undefined;
  if (isComplete(deployment, status) || progressing.reason === REASONS.timedOut) return undefined;
  return Math.max(0, deadline(deployment, progressing) - now) + 1000;
}

/**
 * The conditions of a Deployment that was paused or resumed since the last look; undefined when it was not. So that time
 * spent paused is not held against it. Models checkPausedConditions.
 */
export function pausedConditions(deployment: Deployment, now: number): DeploymentCondition[] | undefined {
  const old = conditionOf(deployment.status, 'Progressing');
  if (!hasDeadline(deployment) || old?.reason === REASONS.timedOut) return undefined;
  const paused = deployment.spec.paused ?? false;
  if (paused === (old?.reason === REASONS.paused)) return undefined;
  const next = paused
    ? condition('Progressing', 'Unknown', REASONS.paused, 'Deployment is paused', now)
    : condition('Progressing', 'Unknown', REASONS.resumed, 'Deployment is resumed', now);
  return withCondition(deployment.status?.conditions ?? [], next);
}
