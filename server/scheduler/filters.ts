import { matchesLabelSelector, type Pod, podMatchesNode, untoleratedTaint } from '#server/kube';
import { type NodeInfo, podRequests } from './node-info.ts';
import { podAffinityFailure } from './pod-affinity.ts';

/** Why a node will not do. `helpedByPreemption`: evicting somebody could change that. */
export interface Rejection {
  reasons: string[];
  helpedByPreemption: boolean;
}

type Filter = (pod: Pod, info: NodeInfo, nodes: readonly NodeInfo[]) => Rejection | undefined;

/** Effects that keep a pod away. */
const HARD = ['NoSchedule', 'NoExecute'];

const never = (reason: string): Rejection => ({ reasons: [reason], helpedByPreemption: false });

/** The default profile's filters in their order; the first that rejects a node gives its reasons. A new one is a row. */
const FILTERS: readonly Filter[] = [
  nodeUnschedulable,
  nodeName,
  taintToleration,
  nodeAffinity,
  nodePorts,
  nodeResourcesFit,
  topologySpread,
  interPodAffinity,
];

/** The first filter's verdict against this node, or undefined when the pod fits. */
export function rejectionOf(pod: Pod, info: NodeInfo, nodes: readonly NodeInfo[]): Rejection | undefined {
  for (const filter of FILTERS) {
    const rejection = filter(pod, info, nodes);
    if (rejection) return rejection;
  }
  return undefined;
}

function nodeUnschedulable(pod: Pod, { node }: NodeInfo): Rejection | undefined {
  if (!node.spec.unschedulable) return undefined;
  const taint = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' };
  return untoleratedTaint([taint], pod.spec.tolerations, HARD)
    ? never('node(s) were unschedulable')
    : undefined;
}

function nodeName(pod: Pod, { node }: NodeInfo): Rejection | undefined {
  return !pod.spec.nodeName || pod.spec.nodeName === node.metadata.name
    ? undefined
    : never("node(s) didn't match the requested node name");
}

function taintToleration(pod: Pod, { node }: NodeInfo): Rejection | undefined {
  return untoleratedTaint(node.spec.taints, pod.spec.tolerations, HARD)
    ? never('node(s) had untolerated taint(s)')
    : undefined;
}

function nodeAffinity(pod: Pod, { node }: NodeInfo): Rejection | undefined {
  return podMatchesNode(pod, node) ? undefined : never("node(s) didn't match Pod's node affinity/selector");
}

interface HostPort {
  ip: string;
  protocol: string;
  port: number;
}

function hostPorts(pod: Pod): HostPort[] {
  return [
    ...pod.spec.containers,
    ...(pod.spec.initContainers ?? []).filter((container) => container.restartPolicy === 'Always'),
  ].flatMap((container) =>
    (container.ports ?? [])
      .filter((port) => (port.hostPort ?? 0) > 0)
      .map((port) => ({
        ip: port.hostIP || '0.0.0.0',
        protocol: port.protocol ?? 'TCP',
        port: port.hostPort ?? 0,
      })),
  );
}

function nodePorts(pod: Pod, { pods }: NodeInfo): Rejection | undefined {
  const wanted = hostPorts(pod);
  if (wanted.length === 0) return undefined;
  const used = pods.flatMap(hostPorts);
  const clash = wanted.some((want) =>
    used.some(
      (use) =>
        use.port === want.port &&
        use.protocol === want.protocol &&
        (use.ip === want.ip || use.ip === '0.0.0.0' || want.ip === '0.0.0.0'),
    ),
  );
  return clash
    ? { reasons: ["node(s) didn't have free ports for the requested pod ports"], helpedByPreemption: true }
    : undefined;
}

function nodeResourcesFit(pod: Pod, { allocatable, requested }: NodeInfo): Rejection | undefined {
  const reasons: string[] = [];
  let resolvable = true;
  for (const [name, amount] of podRequests(pod)) {
    if (amount === 0n) continue;
    const total = allocatable.get(name) ?? 0n;
    if (amount + (requested.get(name) ?? 0n) <= total) continue;
    reasons.push(name === 'pods' ? 'Too many pods' : `Insufficient ${name}`);
    if (amount > total) resolvable = false;
  }
  return reasons.length > 0 ? { reasons, helpedByPreemption: resolvable } : undefined;
}

/** Models plugins/podtopologyspread for DoNotSchedule constraints, with the default inclusion policies. */
function topologySpread(pod: Pod, info: NodeInfo, nodes: readonly NodeInfo[]): Rejection | undefined {
  for (const constraint of pod.spec.topologySpreadConstraints ?? []) {
    if (constraint.whenUnsatisfiable !== 'DoNotSchedule') continue;
    const domain = info.node.metadata.labels?.[constraint.topologyKey];
    if (domain === undefined)
      return never("node(s) didn't match pod topology spread constraints (missing required label)");
    const counts = new Map<string, number>();
    for (const other of nodes) {
      const key = other.node.metadata.labels?.[constraint.topologyKey];
      if (key === undefined || !podMatchesNode(pod, other.node)) continue;
      const matching = other.pods.filter(
        (candidate) =>
          candidate.metadata.namespace === pod.metadata.namespace &&
          matchesLabelSelector(constraint.labelSelector, candidate.metadata.labels),
      ).length;
      counts.set(key, (counts.get(key) ?? 0) + matching);
    }
    const self = matchesLabelSelector(constraint.labelSelector, pod.metadata.labels) ? 1 : 0;
    const least = counts.size < (constraint.minDomains ?? 1) ? 0 : Math.min(...counts.values());
    if ((counts.get(domain) ?? 0) + self - least > constraint.maxSkew) {
      return { reasons: ["node(s) didn't match pod topology spread constraints"], helpedByPreemption: true };
    }
  }
  return undefined;
}

function interPodAffinity(pod: Pod, { node }: NodeInfo, nodes: readonly NodeInfo[]): Rejection | undefined {
  const failure = podAffinityFailure(pod, node, nodes);
  return failure && { reasons: [failure.reason], helpedByPreemption: failure.helpedByPreemption };
}
