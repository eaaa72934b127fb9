import { matchesLabelSelector, type Node, type Pod, type PodAffinityTerm } from '#server/kube';
import type { NodeInfo } from './node-info.ts';

/** Does `other` belong to what a term of `pod` speaks of? Namespace selectors match the empty selector only. */
export function termSelects(term: PodAffinityTerm, pod: Pod, other: Pod): boolean {
  const inNamespace =
    term.namespaces?.includes(other.metadata.namespace ?? '') ||
    term.namespaceSelector !== undefined ||
    (!term.namespaces?.length && other.metadata.namespace === pod.metadata.namespace);
  return inNamespace && matchesLabelSelector(term.labelSelector, other.metadata.labels);
}

function sameDomain(term: { topologyKey: string }, a: Node, b: Node): boolean {
  const value = a.metadata.labels?.[term.topologyKey];
  return value !== undefined && value === b.metadata.labels?.[term.topologyKey];
}

/** How many pods a term selects in the topology domain of `node`. */
export function podsInDomain(
  term: PodAffinityTerm,
  pod: Pod,
  node: Node,
  nodes: readonly NodeInfo[],
): number {
  let count = 0;
  for (const info of nodes) {
    if (info.pods.length === 0 || !sameDomain(term, node, info.node)) continue;
    for (const other of info.pods) if (termSelects(term, pod, other)) count++;
  }
  return count;
}

/** Why the pod may not go there by required pod affinity, or undefined. Models plugins/interpodaffinity. */
export function podAffinityFailure(
  pod: Pod,
  node: Node,
  nodes: readonly NodeInfo[],
): { reason: string; helpedByPreemption: boolean } | undefined {
  const affinity = pod.spec.affinity?.podAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
  for (const term of affinity) {
    if (podsInDomain(term, pod, node, nodes) > 0) continue;
    // The first pod of a group that wants to be together may go anywhere that has the topology key.
    const first = nodes.every((info) => !info.pods.some((other) => termSelects(term, pod, other)));
    const self = termSelects(term, pod, pod);
    if (!(first && self && node.metadata.labels?.[term.topologyKey] !== undefined)) {
      return { reason: "node(s) didn't match pod affinity rules", helpedByPreemption: false };
    }
  }
  const anti = pod.spec.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
  if (anti.some((term) => podsInDomain(term, pod, node, nodes) > 0)) {
    return { reason: "node(s) didn't match pod anti-affinity rules", helpedByPreemption: true };
  }
  if (nodes.some((info) => info.pods.some((other) => rejectsNeighbour(other, info.node, pod, node)))) {
    return { reason: "node(s) didn't satisfy existing pods anti-affinity rules", helpedByPreemption: true };
  }
  return undefined;
}

function rejectsNeighbour(other: Pod, otherNode: Node, pod: Pod, node: Node): boolean {
  const terms = other.spec.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
  return terms.some((term) => sameDomain(term, otherNode, node) && termSelects(term, other, pod));
}
