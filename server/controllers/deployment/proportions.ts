import { annotations, type Deployment, type ReplicaSet } from '#server/kube';
import { newestFirst, oldestFirst } from './revisions.ts';
import { maxSurge, type Resize, totalWanted, wanted } from './strategy.ts';

function roundAwayFromZero(value: number): number {
  return value < 0 ? Math.ceil(value - 0.5) : Math.floor(value + 0.5);
}

/** How many replicas a set gains (or loses, negative) when the Deployment's size changes by its share. */
function share(deployment: Deployment, set: ReplicaSet, left: number): number {
  if (wanted(set) === 0 || left === 0) return 0;
  const before =
    Number(set.metadata.annotations?.[annotations.maxReplicas] ?? 0) || (deployment.status?.replicas ?? 0);
  const size = (wanted(set) * (wanted(deployment) + maxSurge(deployment))) / before;
  const fraction = wanted(deployment) === 0 ? -wanted(set) : roundAwayFromZero(size) - wanted(set);
  return left > 0 ? Math.min(fraction, left) : Math.max(fraction, left);
}

/**
 * Shares a change of size out among the ReplicaSets of a rollout under way, the larger ones first; what rounding leaves
 * goes to the largest. Every set is in the result, so that its size annotations follow.
 * Models the proportional branch of scale in kubernetes/pkg/controller/deployment/sync.go.
 */
export function proportionalSizes(deployment: Deployment, active: readonly ReplicaSet[]): Resize[] {
  const allowed = wanted(deployment) > 0 ? wanted(deployment) + maxSurge(deployment) : 0;
  const toAdd = allowed - totalWanted(active);
  const byAge = toAdd > 0 ? newestFirst : oldestFirst;
  const sets = [...active].sort((a, b) => wanted(b) - wanted(a) || byAge(a, b));
  let added = 0;
  const resizes = sets.map((set) => {
    const by = share(deployment, set, toAdd - added);
    added += by;
    return { set, size: wanted(set) + by };
  });
  const [largest] = resizes;
  if (largest) largest.size = Math.max(0, largest.size + toAdd - added);
  return resizes;
}
