import { isAvailable, isReady } from '#server/controllers/machinery';
import {
  deepEqual,
  formatTime,
  matchesLabels,
  type Pod,
  type ReplicaSet,
  type ReplicaSetCondition,
  type ReplicaSetStatus,
} from '#server/kube';

export interface Observed {
  /** Claimed pods that count as replicas. */
  active: readonly Pod[];
  /** Claimed pods being deleted. */
  terminating: readonly Pod[];
  /** Why pods could not be created or deleted, if so. */
  failure: { message: string } | undefined;
  now: number;
}

function conditionsOf(set: ReplicaSet, { active, failure, now }: Observed): ReplicaSetCondition[] {
  const old = set.status?.conditions ?? [];
  const failed = old.some((condition) => condition.type === 'ReplicaFailure');
  if (!failure) return failed ? old.filter((condition) => condition.type !== 'ReplicaFailure') : old;
  const missing = (set.spec.replicas ?? 1) - active.length;
  if (failed || missing === 0) return old;
  const condition = {
    type: 'ReplicaFailure',
    status: 'True',
    lastTransitionTime: formatTime(now),
    reason: missing > 0 ? 'FailedCreate' : 'FailedDelete',
    message: failure.message,
  };
  return [...old, condition];
}

/**
 * The status that tells what was observed; undefined when the ReplicaSet's own says so already.
 * Models calculateStatus and updateReplicaSetStatus of kubernetes/pkg/controller/replicaset/replica_set_utils.go.
 */
export function nextStatus(set: ReplicaSet, observed: Observed): ReplicaSetStatus | undefined {
  const { active, terminating, now } = observed;
  const templateLabels = set.spec.template?.metadata?.labels ?? {};
  const count = (holds: (pod: Pod) => boolean): number => active.filter(holds).length;
  const counts = {
    fullyLabeledReplicas: count((pod) => matchesLabels(templateLabels, pod.metadata.labels)),
    readyReplicas: count(isReady),
    availableReplicas: count((pod) => isAvailable(pod, set.spec.minReadySeconds ?? 0, now)),
  };
  const conditions = conditionsOf(set, observed);
  const status: ReplicaSetStatus = {
    replicas: active.length,
    ...(counts.fullyLabeledReplicas ? { fullyLabeledReplicas: counts.fullyLabeledReplicas } : {}),
    ...(counts.readyReplicas ? { readyReplicas: counts.readyReplicas } : {}),
    ...(counts.availableReplicas ? { availableReplicas: counts.availableReplicas } : {}),
    terminatingReplicas: terminating.length,
    ...(set.metadata.generation === undefined ? {} : { observedGeneration: set.metadata.generation }),
    ...(conditions.length > 0 ? { conditions } : {}),
  };
  return deepEqual(status, set.status) ? undefined : status;
}
