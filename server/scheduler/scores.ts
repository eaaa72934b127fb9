import { nodeSelectorTermMatches, type Pod, tolerates } from '#server/kube';
import { type NodeInfo, podRequests } from './node-info.ts';
import { podsInDomain } from './pod-affinity.ts';

/** Points a scorer gives at most, before its weight. */
const MAX_SCORE = 100;

/** Raw points by node; `inverse`: fewer are better. */
interface Scorer {
  weight: number;
  inverse?: boolean;
  /** Already between 0 and 100: not stretched over the candidates. */
  absolute?: boolean;
  score(pod: Pod, info: NodeInfo, nodes: readonly NodeInfo[]): number;
}

/** The default profile's scorers with their weights. A new one is a row. */
const SCORERS: readonly Scorer[] = [
  { weight: 3, inverse: true, score: untoleratedPreferences },
  { weight: 2, score: preferredNodeAffinity },
  { weight: 2, score: preferredPodAffinity },
  { weight: 1, absolute: true, score: leastAllocated },
  { weight: 1, absolute: true, score: balancedAllocation },
];

/** Picks the best of the nodes the pod fits on; `random` (0 ≤ r < 1) decides among equals. Models pkg/scheduler selectHost. */
export function bestNode(
  pod: Pod,
  candidates: readonly NodeInfo[],
  nodes: readonly NodeInfo[],
  random: () => number,
): NodeInfo | undefined {
  if (candidates.length <= 1) return candidates[0];
  const totals = candidates.map(() => 0);
  for (const scorer of SCORERS) {
    const raw = candidates.map((info) => scorer.score(pod, info, nodes));
    const [least, most] = [Math.min(...raw), Math.max(...raw)];
    for (const [index, points] of raw.entries()) {
      const stretched = scorer.absolute
        ? points
        : most === least
          ? 0
          : ((points - least) * MAX_SCORE) / (most - least);
      totals[index] =
        (totals[index] ?? 0) + scorer.weight * (scorer.inverse ? MAX_SCORE - stretched : stretched);
    }
  }
  const top = Math.max(...totals);
  const equals = candidates.filter((_info, index) => (totals[index] ?? 0) > top - 1e-9);
  return equals[Math.floor(random() * equals.length)];
}

function untoleratedPreferences(pod: Pod, { node }: NodeInfo): number {
  return (node.spec.taints ?? []).filter(
    (taint) =>
      taint.effect === 'PreferNoSchedule' &&
      !pod.spec.tolerations?.some((toleration) => tolerates(toleration, taint)),
  ).length;
}

function preferredNodeAffinity(pod: Pod, { node }: NodeInfo): number {
  const preferred = pod.spec.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
  return preferred.reduce(
    (sum, { weight, preference }) => sum + (nodeSelectorTermMatches(preference, node) ? weight : 0),
    0,
  );
}

function preferredPodAffinity(pod: Pod, { node }: NodeInfo, nodes: readonly NodeInfo[]): number {
  const near = pod.spec.affinity?.podAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
  const far = pod.spec.affinity?.podAntiAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
  const points = (terms: typeof near): number =>
    terms.reduce(
      (sum, { weight, podAffinityTerm }) => sum + weight * podsInDomain(podAffinityTerm, pod, node, nodes),
      0,
    );
  return points(near) - points(far);
}

/** Shares of cpu and memory in use if the pod came here, 0 to 1. */
function shares(pod: Pod, info: NodeInfo): number[] {
  const requests = podRequests(pod);
  return ['cpu', 'memory'].map((name) => {
    const total = Number(info.allocatable.get(name) ?? 0n);
    const used = Number((info.requested.get(name) ?? 0n) + (requests.get(name) ?? 0n));
    return total === 0 ? 1 : Math.min(1, used / total);
  });
}

function leastAllocated(pod: Pod, info: NodeInfo): number {
  const used = shares(pod, info);
  return (used.reduce((sum, share) => sum + (1 - share), 0) / used.length) * MAX_SCORE;
}

function balancedAllocation(pod: Pod, info: NodeInfo): number {
  const [cpu = 0, memory = 0] = shares(pod, info);
  return (1 - Math.abs(cpu - memory) / 2) * MAX_SCORE;
}
