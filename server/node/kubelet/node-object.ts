import {
  canonicalQuantity,
  deepEqual,
  formatTime,
  type Node,
  type NodeAddress,
  type NodeCondition,
  quantityToMilli,
  type Taint,
} from '#server/kube';
import type { KubeletHost } from './contract.ts';
import type { KubeletFlags } from './flags.ts';
import { NETWORK_NOT_READY, type RuntimeState } from './runtime-state.ts';

export const KUBELET_VERSION = 'v1.36.3';
export const KUBELET_PORT = 10250;
export const PROVIDED_NODE_IP = 'alpha.kubernetes.io/provided-node-ip';
export const ATTACH_DETACH = 'volumes.kubernetes.io/controller-managed-attach-detach';
const UNINITIALIZED: Taint = {
  key: 'node.cloudprovider.kubernetes.io/uninitialized',
  value: 'true',
  effect: 'NoSchedule',
};
/** Hard eviction thresholds and reservations a kubeadm node has by default: memory.available<100Mi. */
const MEMORY_RESERVED = 100 * 1024 * 1024;
/** nodefs.available<10% */
const STORAGE_KEPT = 0.9;
/** `nodeStatusMaxImages` */
const MAX_IMAGES = 50;

export interface NodeImage {
  readonly names: readonly string[];
  readonly sizeBytes: number;
}

/** What the status is made of besides the host. */
export interface NodeFacts {
  readonly host: KubeletHost;
  readonly flags: KubeletFlags;
  readonly hostname: string;
  readonly runtime: RuntimeState;
  readonly images: readonly NodeImage[];
  readonly now: number;
}

/** The Node a kubelet creates when there is none. Models pkg/kubelet/kubelet_node_status.go initialNode. */
export function initialNode(nodeName: string, facts: NodeFacts): Node {
  const { flags, host, hostname } = facts;
  const taints = [...flags.registerWithTaints, ...(flags.externalCloudProvider ? [UNINITIALIZED] : [])];
  const node: Node = {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: nodeName,
      labels: { ...defaultLabels(hostname, host.architecture), ...flags.nodeLabels },
      annotations: { [ATTACH_DETACH]: 'true' },
    },
    spec: {
      ...(flags.providerId ? { providerID: flags.providerId } : {}),
      ...(taints.length > 0 ? { taints: [...taints] } : {}),
    },
  };
  return withStatus(node, facts);
}

export function defaultLabels(hostname: string, architecture: string): Record<string, string> {
  return {
    'beta.kubernetes.io/arch': architecture,
    'beta.kubernetes.io/os': 'linux',
    'kubernetes.io/arch': architecture,
    'kubernetes.io/hostname': hostname,
    'kubernetes.io/os': 'linux',
  };
}

/**
 * The node with the status (and the annotation) this kubelet would report now; the input is not changed.
 * Models pkg/kubelet/nodestatus/setters.go.
 */
export function withStatus(node: Node, facts: NodeFacts): Node {
  const { host, flags } = facts;
  const next: Node = { ...node, metadata: { ...node.metadata } };
  if (flags.externalCloudProvider && flags.nodeIp) {
    next.metadata.annotations = { ...next.metadata.annotations, [PROVIDED_NODE_IP]: flags.nodeIp };
  }
  const capacity = {
    cpu: host.capacity.cpu,
    // As the API server writes them: what it stored is compared with this.
    'ephemeral-storage': canonicalQuantity(host.capacity.ephemeralStorage),
    'hugepages-1Gi': '0',
    'hugepages-2Mi': '0',
    memory: canonicalQuantity(host.capacity.memory),
    pods: host.capacity.pods,
  };
  next.status = {
    ...next.status,
    capacity: { ...next.status?.capacity, ...capacity },
    allocatable: { ...next.status?.allocatable, ...allocatable(host) },
    conditions: conditions(next.status?.conditions ?? [], facts),
    addresses: addresses(next.status?.addresses ?? [], facts),
    daemonEndpoints: { kubeletEndpoint: { Port: KUBELET_PORT } },
    nodeInfo: {
      machineID: host.machineId,
      systemUUID: host.systemUuid,
      bootID: host.bootId,
      kernelVersion: host.kernelVersion,
      osImage: host.osImage,
      containerRuntimeVersion: host.containerRuntimeVersion,
      kubeletVersion: KUBELET_VERSION,
      kubeProxyVersion: '',
      operatingSystem: 'linux',
      architecture: host.architecture,
    },
    images: facts.images
      .slice(0, MAX_IMAGES)
      .map((image) => ({ names: [...image.names], sizeBytes: image.sizeBytes })),
  };
  return next;
}

function allocatable(host: KubeletHost): Record<string, string> {
  const memory = Number(quantityToMilli(host.capacity.memory) / 1000n) - MEMORY_RESERVED;
  const storage = Number(quantityToMilli(host.capacity.ephemeralStorage) / 1000n) * STORAGE_KEPT;
  return {
    cpu: host.capacity.cpu,
    'ephemeral-storage': String(Math.floor(storage)),
    'hugepages-1Gi': '0',
    'hugepages-2Mi': '0',
    memory: canonicalQuantity(`${Math.max(0, Math.floor(memory / 1024))}Ki`),
    pods: host.capacity.pods,
  };
}

/** With an external cloud the CCM owns the addresses once it wrote them; until then only what the flags say. */
function addresses(existing: readonly NodeAddress[], facts: NodeFacts): NodeAddress[] {
  const { flags, host, hostname } = facts;
  const named: NodeAddress = { type: 'Hostname', address: hostname };
  if (!flags.externalCloudProvider) return [{ type: 'InternalIP', address: flags.nodeIp ?? host.ip }, named];
  const fromCloud = existing.some((address) => address.type !== 'Hostname');
  if (fromCloud) return existing.map((address) => ({ ...address }));
  const ip = flags.nodeIp ?? (flags.nodeIpUnspecified ? host.ip : undefined);
  return ip === undefined ? [named] : [{ type: 'InternalIP', address: ip }, named];
}

function conditions(existing: readonly NodeCondition[], facts: NodeFacts): NodeCondition[] {
  const now = formatTime(facts.now);
  const networkReady = facts.runtime.networkReady;
  const wanted: Pick<NodeCondition, 'type' | 'status' | 'reason' | 'message'>[] = [
    {
      type: 'MemoryPressure',
      status: 'False',
      reason: 'KubeletHasSufficientMemory',
      message: 'kubelet has sufficient memory available',
    },
    {
      type: 'DiskPressure',
      status: 'False',
      reason: 'KubeletHasNoDiskPressure',
      message: 'kubelet has no disk pressure',
    },
    {
      type: 'PIDPressure',
      status: 'False',
      reason: 'KubeletHasSufficientPID',
      message: 'kubelet has sufficient PID available',
    },
    networkReady
      ? { type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'kubelet is posting ready status' }
      : { type: 'Ready', status: 'False', reason: 'KubeletNotReady', message: NETWORK_NOT_READY },
  ];
  const made = wanted.map((condition): NodeCondition => {
    const before = existing.find((other) => other.type === condition.type);
    const kept = before?.status === condition.status ? before.lastTransitionTime : undefined;
    return { ...condition, lastHeartbeatTime: now, lastTransitionTime: kept ?? now };
  });
  return [...existing.filter((other) => !wanted.some((condition) => condition.type === other.type)), ...made];
}

/** Whether the status says something new: heartbeat times alone do not. Models nodeStatusHasChanged. */
export function statusDiffers(before: Node, after: Node): boolean {
  const plain = (node: Node): unknown => ({
    annotation: node.metadata.annotations?.[PROVIDED_NODE_IP],
    status: {
      ...node.status,
      conditions: (node.status?.conditions ?? [])
        .map(({ type, status, reason, message }) => ({ type, status, reason, message }))
        .sort((a, b) => a.type.localeCompare(b.type)),
    },
  });
  return !deepEqual(plain(before), plain(after));
}
