import type { Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod } from '#server/kube';

function requirementMatches(
  { operator, values = [] }: NodeSelectorRequirement,
  actual: string | undefined,
): boolean {
  switch (operator) {
    case 'In':
      return actual !== undefined && values.includes(actual);
    case 'NotIn':
      return actual === undefined || !values.includes(actual);
    case 'Exists':
      return actual !== undefined;
    case 'DoesNotExist':
      return actual === undefined;
    case 'Gt':
      return actual !== undefined && Number(actual) > Number(values[0]);
    case 'Lt':
      return actual !== undefined && Number(actual) < Number(values[0]);
    default:
      return false;
  }
}

function termMatches({ matchExpressions = [], matchFields = [] }: NodeSelectorTerm, node: Node): boolean {
  if (matchExpressions.length === 0 && matchFields.length === 0) return false;
  const field = (key: string): string | undefined =>
    key === 'metadata.name' ? node.metadata.name : undefined;
  return (
    matchExpressions.every((requirement) =>
      requirementMatches(requirement, node.metadata.labels?.[requirement.key]),
    ) && matchFields.every((requirement) => requirementMatches(requirement, field(requirement.key)))
  );
}

/** Whether any term of the selector matches the node; a term without requirements matches none. */
export function nodeSelectorMatches(selector: NodeSelector, node: Node): boolean {
  return (selector.nodeSelectorTerms ?? []).some((term) => termMatches(term, node));
}

/**
 * Whether the pod's nodeSelector and required node affinity let it run on the node.
 * Models GetRequiredNodeAffinity of k8s.io/component-helpers/scheduling/corev1/nodeaffinity.
 */
export function podMatchesNode(pod: Pick<Pod, 'spec'>, node: Node): boolean {
  for (const [key, value] of Object.entries(pod.spec.nodeSelector ?? {})) {
    if (node.metadata.labels?.[key] !== value) return false;
  }
  const required = pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return !required || nodeSelectorMatches(required, node);
}
