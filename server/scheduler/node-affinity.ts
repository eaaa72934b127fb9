import type { Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod } from '#server/kube';

/** nodeSelector and required node affinity. Models k8s.io/component-helpers/scheduling/corev1/nodeaffinity. */
export function matchesNode(pod: Pod, node: Node): boolean {
  const labels = node.metadata.labels ?? {};
  for (const [key, value] of Object.entries(pod.spec.nodeSelector ?? {})) if (labels[key] !== value) return false;
  const required = pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return required === undefined || matchesSelector(required, node);
}

/** Terms are alternatives; a term without requirements matches nothing. */
function matchesSelector(selector: NodeSelector, node: Node): boolean {
  return selector.nodeSelectorTerms.some((term) => matchesTerm(term, node));
}

export function matchesTerm(term: NodeSelectorTerm, node: Node): boolean {
  const expressions = term.matchExpressions ?? [];
  const fields = term.matchFields ?? [];
  if (expressions.length + fields.length === 0) return false;
  return (
    expressions.every((requirement) => matchesRequirement(requirement, node.metadata.labels?.[requirement.key])) &&
    fields.every((requirement) => matchesRequirement(requirement, requirement.key === 'metadata.name' ? node.metadata.name : undefined))
  );
}

function matchesRequirement({ operator, values = [] }: NodeSelectorRequirement, actual: string | undefined): boolean {
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
      return actual !== undefined && /^-?\d+$/.test(actual) && Number(actual) > Number(values[0]);
    case 'Lt':
      return actual !== undefined && /^-?\d+$/.test(actual) && Number(actual) < Number(values[0]);
    default:
      return false;
  }
}

/** Node names a pod is pinned to by matchFields (DaemonSet pods are), or undefined when any node will do. */
export function pinnedNodes(pod: Pod): ReadonlySet<string> | undefined {
  const terms = pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  if (!terms || terms.length === 0) return undefined;
  const names = new Set<string>();
  for (const term of terms) {
    const byName = term.matchFields?.find((field) => field.key === 'metadata.name' && field.operator === 'In');
    if (!byName) return undefined;
    for (const name of byName.values ?? []) names.add(name);
  }
  return names;
}
