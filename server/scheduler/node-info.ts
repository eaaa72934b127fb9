import { type Node, type Pod, quantityToMilli } from '#server/kube';

/** Amounts by resource name, in thousandths. */
export type Amounts = ReadonlyMap<string, bigint>;

/** A node as the filters see it: what it offers and who runs there, assumed pods among them. */
export interface NodeInfo {
  readonly node: Node;
  readonly pods: readonly Pod[];
  readonly allocatable: Amounts;
  readonly requested: Amounts;
}

/** Builds the picture of one node. Finished pods need nothing any more. */
export function describeNode(node: Node, pods: readonly Pod[]): NodeInfo {
  const running = pods.filter((pod) => !isFinished(pod));
  const requested = new Map<string, bigint>();
  for (const pod of running) {
    for (const [name, amount] of podRequests(pod)) requested.set(name, (requested.get(name) ?? 0n) + amount);
  }
  return { node, pods: running, allocatable: amounts(node.status?.allocatable ?? {}), requested };
}

export function isFinished(pod: Pod): boolean {
  return pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';
}

function amounts(list: Readonly<Record<string, string>>): Map<string, bigint> {
  return new Map(Object.entries(list).map(([name, quantity]) => [name, quantityToMilli(quantity)]));
}

const requestsOf = new WeakMap<Pod['spec'], Amounts>();

/**
 * What a pod asks for: the sum of its containers, or its largest init container together with the restartable ones
 * before it, whichever is more; plus overhead; plus one pod. Models k8s.io/component-helpers/resource.PodRequests.
 */
export function podRequests(pod: Pod): Amounts {
  const known = requestsOf.get(pod.spec);
  if (known) return known;
  const total = new Map<string, bigint>();
  for (const container of pod.spec.containers) add(total, amounts(container.resources?.requests ?? {}));
  const sidecars = new Map<string, bigint>();
  const peak = new Map<string, bigint>();
  for (const container of pod.spec.initContainers ?? []) {
    const own = amounts(container.resources?.requests ?? {});
    if (container.restartPolicy === 'Always') {
      add(total, own);
      add(sidecars, own);
      max(peak, sidecars);
    } else {
      const during = new Map(sidecars);
      add(during, own);
      max(peak, during);
    }
  }
  max(total, peak);
  add(total, amounts(pod.spec.overhead ?? {}));
  total.set('pods', 1000n);
  requestsOf.set(pod.spec, total);
  return total;
}

function add(into: Map<string, bigint>, more: Amounts): void {
  for (const [name, amount] of more) into.set(name, (into.get(name) ?? 0n) + amount);
}

function max(into: Map<string, bigint>, other: Amounts): void {
  for (const [name, amount] of other) if (amount > (into.get(name) ?? 0n)) into.set(name, amount);
}
