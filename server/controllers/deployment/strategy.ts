import { type Deployment, type ReplicaSet, resolveIntOrPercent } from '#server/kube';

/** How many replicas a Deployment or ReplicaSet asks for. */
export function wanted(object: Deployment | ReplicaSet): number {
  return object.spec.replicas ?? 1;
}

/** The sum of what ReplicaSets ask for. */
export function totalWanted(sets: readonly ReplicaSet[]): number {
  return sets.reduce((sum, set) => sum + wanted(set), 0);
}

export function totalAvailable(sets: readonly ReplicaSet[]): number {
  return sets.reduce((sum, set) => sum + (set.status?.availableReplicas ?? 0), 0);
}

export function isRollingUpdate(deployment: Deployment): boolean {
  return (deployment.spec.strategy?.type ?? 'RollingUpdate') === 'RollingUpdate';
}

/** Pods above and below `replicas` that a rollout may have; never both 0, or it could not move. */
function fences(deployment: Deployment): { surge: number; unavailable: number } {
  const { maxSurge = 0, maxUnavailable = 0 } = deployment.spec.strategy?.rollingUpdate ?? {};
  const surge = resolveIntOrPercent(maxSurge, wanted(deployment), true);
  const unavailable = resolveIntOrPercent(maxUnavailable, wanted(deployment), false);
  return { surge, unavailable: surge === 0 && unavailable === 0 ? 1 : unavailable };
}

export function maxSurge(deployment: Deployment): number {
  return isRollingUpdate(deployment) ? fences(deployment).surge : 0;
}

export function maxUnavailable(deployment: Deployment): number {
  if (!isRollingUpdate(deployment) || wanted(deployment) === 0) return 0;
  return Math.min(fences(deployment).unavailable, wanted(deployment));
}

/** The size the new ReplicaSet may grow to now, given what all sets (it included) ask for. Models NewRSNewReplicas. */
export function newSetSize(deployment: Deployment, all: readonly ReplicaSet[], size: number): number {
  if (!isRollingUpdate(deployment)) return wanted(deployment);
  const room = wanted(deployment) + maxSurge(deployment) - totalWanted(all);
  return room <= 0 ? size : size + Math.min(room, wanted(deployment) - size);
}

/** A ReplicaSet and the size it is to have. */
export interface Resize {
  set: ReplicaSet;
  size: number;
}

/**
 * How the old ReplicaSets shrink now: first pods that are not available anyway, then as many as availability allows.
 * `old` are those that ask for pods, oldest first. Models reconcileOldReplicaSets of rolling.go.
 */
export function shrinkOldSets(
  deployment: Deployment,
  old: readonly ReplicaSet[],
  current: ReplicaSet,
): Resize[] {
  const minAvailable = wanted(deployment) - maxUnavailable(deployment);
  const notYetAvailable = wanted(current) - (current.status?.availableReplicas ?? 0);
  const allowed = totalWanted([...old, current]) - minAvailable - notYetAvailable;
  if (totalWanted(old) === 0 || allowed <= 0) return [];
  const sizes = new Map(old.map((set) => [set, wanted(set)]));
  const shrink = (set: ReplicaSet, atMost: number): number => {
    const size = sizes.get(set) ?? 0;
    const by = Math.max(0, Math.min(size, atMost));
    sizes.set(set, size - by);
    return by;
  };
  let unhealthy = allowed;
  for (const set of old)
    unhealthy -= shrink(set, Math.min(unhealthy, wanted(set) - (set.status?.availableReplicas ?? 0)));
  let healthy = totalAvailable([...old, current]) - minAvailable;
  for (const set of old) if (healthy > 0) healthy -= shrink(set, healthy);
  return old
    .map((set) => ({ set, size: sizes.get(set) ?? 0 }))
    .filter(({ set, size }) => size !== wanted(set));
}
