import { type Node, type Pod, podMatchesNode, quantityToMilli, untoleratedTaint } from '#server/kube';

export interface Rejection {
  readonly reason: string;
  readonly message: string;
}

/**
 * Whether this node takes the pod, seeing the pods it runs already; undefined: yes.
 * Models pkg/kubelet/lifecycle/predicate.go (node selector and affinity, resources, pod count, NoExecute taints).
 */
export function admit(pod: Pod, node: Node | undefined, others: readonly Pod[]): Rejection | undefined {
  if (!node) return undefined;
  if (!podMatchesNode(pod, node)) {
    return {
      reason: 'NodeAffinity',
      message:
        "Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
    };
  }
  const isStatic = pod.metadata.annotations?.['kubernetes.io/config.source'] === 'file';
  const taint = untoleratedTaint(node.spec?.taints, pod.spec.tolerations, ['NoExecute']);
  if (taint && !isStatic) {
    return {
      reason: 'TaintToleration',
      message: 'Pod was rejected: Predicate TaintToleration failed: node(s) had untolerated taint(s)',
    };
  }
  const allocatable = node.status?.allocatable ?? {};
  const pods = allocatable.pods;
  if (pods !== undefined && BigInt(others.length + 1) * 1000n > quantityToMilli(pods)) {
    return outOf('pods', 1n, BigInt(others.length), quantityToMilli(pods) / 1000n);
  }
  for (const resource of ['cpu', 'memory', 'ephemeral-storage']) {
    const capacity = allocatable[resource];
    const requested = requestOf(pod, resource);
    if (capacity === undefined || requested === 0n) continue;
    const used = others.reduce((sum, other) => sum + requestOf(other, resource), 0n);
    const unit = resource === 'cpu' ? 1n : 1000n;
    if (requested + used > quantityToMilli(capacity))
      return outOf(resource, requested / unit, used / unit, quantityToMilli(capacity) / unit);
  }
  return undefined;
}

function outOf(resource: string, requested: bigint, used: bigint, capacity: bigint): Rejection {
  return {
    reason: `OutOf${resource}`,
    message: `Pod was rejected: Node didn't have enough resource: ${resource}, requested: ${requested}, used: ${used}, capacity: ${capacity}`,
  };
}

/** What a pod asks for, in thousandths. */
function requestOf(pod: Pod, resource: string): bigint {
  const of = (container: Pod['spec']['containers'][number]): bigint => {
    const quantity = container.resources?.requests?.[resource] ?? container.resources?.limits?.[resource];
    return quantity === undefined ? 0n : quantityToMilli(quantity);
  };
  const main = pod.spec.containers.reduce((sum, container) => sum + of(container), 0n);
  let sidecars = 0n;
  let most = 0n;
  for (const container of pod.spec.initContainers ?? []) {
    if (container.restartPolicy === 'Always') sidecars += of(container);
    else if (of(container) + sidecars > most) most = of(container) + sidecars;
  }
  return main + sidecars > most ? main + sidecars : most;
}
