import type {
  Node,
  NodeSelector,
  NodeSelectorRequirement,
  NodeSelectorTerm,
  Pod,
  Taint,
  Toleration,
} from './types.generated.ts';

/** Whether the toleration bears the taint. Models Toleration.ToleratesTaint of k8s.io/api/core/v1. */
export function tolerates(toleration: Toleration, taint: Taint): boolean {
  if (toleration.effect && toleration.effect !== taint.effect) return false;
  if (toleration.key && toleration.key !== taint.key) return false;
  switch (toleration.operator ?? 'Equal') {
    case '':
    case 'Equal':
      // Validation lets nobody leave the key out here; what got by it bears nothing.
      return Boolean(toleration.key) && (toleration.value ?? '') === (taint.value ?? '');
    case 'Exists':
      return true;
    default:
      return false;
  }
}

/** The first of the taints with one of the effects that none of the tolerations bears. */
export function untoleratedTaint(
  taints: readonly Taint[] | undefined,
  tolerations: readonly Toleration[] | undefined,
  effects: readonly string[],
): Taint | undefined {
  return taints?.find(
    (taint) =>
      effects.includes(taint.effect) && !tolerations?.some((toleration) => tolerates(toleration, taint)),
  );
}

/** Same key and effect: at most one such taint can be on a node. */
export function sameTaint(a: Pick<Taint, 'key' | 'effect'>, b: Pick<Taint, 'key' | 'effect'>): boolean {
  return a.key === b.key && a.effect === b.effect;
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

/** Whether any term of the selector matches the node; a term without requirements matches none. */
export function nodeSelectorMatches(selector: NodeSelector, node: Node): boolean {
  return (selector.nodeSelectorTerms ?? []).some((term) => nodeSelectorTermMatches(term, node));
}

export function nodeSelectorTermMatches(
  { matchExpressions = [], matchFields = [] }: NodeSelectorTerm,
  node: Node,
): boolean {
  if (matchExpressions.length === 0 && matchFields.length === 0) return false;
  return (
    matchExpressions.every((requirement) =>
      requirementMatches(requirement, node.metadata.labels?.[requirement.key]),
    ) &&
    matchFields.every((requirement) =>
      requirementMatches(requirement, requirement.key === 'metadata.name' ? node.metadata.name : undefined),
    )
  );
}

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
      return isInteger(actual) && Number(actual) > Number(values[0]);
    case 'Lt':
      return isInteger(actual) && Number(actual) < Number(values[0]);
    default:
      return false;
  }
}

function isInteger(text: string | undefined): text is string {
  return text !== undefined && /^-?\d+$/.test(text);
}
