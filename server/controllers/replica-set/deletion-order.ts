import { isReady, podCondition } from '#server/controllers/machinery';
import type { Pod } from '#server/kube';

const DELETION_COST = 'controller.kubernetes.io/pod-deletion-cost';
const PHASES: Record<string, number> = { Pending: 0, Unknown: 1, Running: 2 };

/** A pod and how many pods of the same workload share its node: of crowded pods the first goes. */
interface Ranked {
  pod: Pod;
  neighbours: number;
}

function deletionCost(pod: Pod): number {
  const cost = pod.metadata.annotations?.[DELETION_COST];
  return cost !== undefined && /^(0|-?[1-9]\d*)$/.test(cost) ? Number(cost) : 0;
}

function readySince(pod: Pod): number {
  const ready = podCondition(pod, 'Ready');
  return ready?.status === 'True' && ready.lastTransitionTime ? Date.parse(ready.lastTransitionTime) : 0;
}

/** Restarts of regular containers and of restartable init containers (sidecars), the most of each. */
function maxRestarts(pod: Pod): { regular: number; sidecar: number } {
  const sidecars = new Set(
    pod.spec.initContainers
      ?.filter((container) => container.restartPolicy === 'Always')
      .map((container) => container.name),
  );
  const most = (counts: number[]): number => Math.max(0, ...counts);
  return {
    regular: most((pod.status?.containerStatuses ?? []).map((status) => status.restartCount)),
    sidecar: most(
      (pod.status?.initContainerStatuses ?? [])
        .filter(({ name }) => sidecars.has(name))
        .map((status) => status.restartCount),
    ),
  };
}

/** Ages are compared by their order of magnitude, so that of pods of like age any may go. */
function compareAges(a: number, b: number, now: number): number {
  const magnitude = (time: number): number => (now > time ? Math.trunc(Math.log2((now - time) * 1e6)) : -1);
  return magnitude(a) - magnitude(b);
}

function compareUids(a: Pod, b: Pod): number {
  return (a.metadata.uid ?? '') < (b.metadata.uid ?? '') ? -1 : 1;
}

function compare(
  { pod: a, neighbours: crowdA }: Ranked,
  { pod: b, neighbours: crowdB }: Ranked,
  now: number,
): number {
  const assigned = Number(Boolean(a.spec.nodeName)) - Number(Boolean(b.spec.nodeName));
  if (assigned !== 0) return assigned;
  const phase = (PHASES[a.status?.phase ?? ''] ?? 0) - (PHASES[b.status?.phase ?? ''] ?? 0);
  if (phase !== 0) return phase;
  const ready = Number(isReady(a)) - Number(isReady(b));
  if (ready !== 0) return ready;
  const cost = deletionCost(a) - deletionCost(b);
  if (cost !== 0) return cost;
  if (crowdA !== crowdB) return crowdB - crowdA;
  if (isReady(a) && isReady(b) && readySince(a) !== readySince(b)) {
    return compareAges(readySince(a), readySince(b), now) || compareUids(a, b);
  }
  const [restartsA, restartsB] = [maxRestarts(a), maxRestarts(b)];
  if (restartsA.regular !== restartsB.regular) return restartsB.regular - restartsA.regular;
  if (restartsA.sidecar !== restartsB.sidecar) return restartsB.sidecar - restartsA.sidecar;
  const born = (pod: Pod): number => Date.parse(pod.metadata.creationTimestamp ?? '') || 0;
  if (born(a) !== born(b)) return compareAges(born(a), born(b), now) || compareUids(a, b);
  return 0;
}

/**
 * The `count` pods to delete of `pods`. Goes first: what has no node, is pending, is not ready, is cheap by its
 * deletion-cost annotation, shares its node with many of `related` (active pods of the same workload), became ready or
 * was created lately, or restarted often.
 * Models ActivePodsWithRanks of kubernetes/pkg/controller/controller_utils.go.
 */
export function podsToDelete(
  pods: readonly Pod[],
  related: readonly Pod[],
  count: number,
  now: number,
): Pod[] {
  if (count >= pods.length) return [...pods];
  const onNode = new Map<string, number>();
  for (const { spec } of related)
    if (spec.nodeName) onNode.set(spec.nodeName, (onNode.get(spec.nodeName) ?? 0) + 1);
  return pods
    .map((pod) => ({ pod, neighbours: onNode.get(pod.spec.nodeName ?? '') ?? 0 }))
    .sort((a, b) => compare(a, b, now))
    .slice(0, count)
    .map(({ pod }) => pod);
}
