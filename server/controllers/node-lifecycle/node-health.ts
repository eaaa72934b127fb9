import type { Clock } from '#server/base';
import { formatTime, type Lease, type Node, type NodeCondition } from '#server/kube';

/** Milliseconds of silence after which a node is Unknown: one that has spoken, and one that never has. */
const GRACE = 50_000;
const STARTUP_GRACE = 60_000;

const WATCHED = ['Ready', 'MemoryPressure', 'DiskPressure', 'PIDPressure'];

export function readyCondition(node: Node): NodeCondition | undefined {
  return node.status?.conditions?.find(({ type }) => type === 'Ready');
}

interface Health {
  /** When this controller last saw a sign of life. */
  probed: number;
  heartbeat: string | undefined;
  renewed: string | undefined;
}

/** When each node was last heard of, by this controller's own clock. */
export interface NodeHealth {
  /** The node's status was seen. */
  sawStatus(node: Node): void;
  /** The node's lease was seen. */
  sawLease(lease: Lease): void;
  isSilent(node: Node): boolean;
  /** Nobody could look for so many milliseconds: they do not count as silence. */
  excuse(milliseconds: number): void;
  /** All are given their full time anew. */
  excuseAll(): void;
  forget(name: string): void;
}

/** Models the nodeHealthMap of node_lifecycle_controller.go. */
export function createNodeHealth(clock: Pick<Clock, 'now'>): NodeHealth {
  const healths = new Map<string, Health>();
  return {
    sawStatus(node) {
      const heartbeat = readyCondition(node)?.lastHeartbeatTime;
      const known = healths.get(node.metadata.name);
      if (!known) {
        const created = Date.parse(node.metadata.creationTimestamp ?? '') || clock.now();
        const probed = readyCondition(node) ? clock.now() : created;
        healths.set(node.metadata.name, { probed, heartbeat, renewed: undefined });
      } else if (heartbeat !== known.heartbeat) {
        known.heartbeat = heartbeat;
        known.probed = clock.now();
      }
    },
    sawLease({ metadata, spec }) {
      const known = healths.get(metadata.name);
      if (!known || !spec.renewTime || spec.renewTime === known.renewed) return;
      known.renewed = spec.renewTime;
      known.probed = clock.now();
    },
    isSilent(node) {
      const known = healths.get(node.metadata.name);
      const grace = readyCondition(node) ? GRACE : STARTUP_GRACE;
      return known !== undefined && clock.now() > known.probed + grace;
    },
    excuse(milliseconds) {
      for (const health of healths.values()) health.probed += milliseconds;
    },
    excuseAll() {
      for (const health of healths.values()) health.probed = clock.now();
    },
    forget: (name) => {
      healths.delete(name);
    },
  };
}

/**
 * The conditions of a node that has fallen silent; undefined when they say so already.
 * Models the second half of tryUpdateNodeHealth.
 */
export function silentConditions(node: Node, now: number): NodeCondition[] | undefined {
  const time = formatTime(now);
  const conditions = node.status?.conditions ?? [];
  const told = conditions.map((condition): NodeCondition => {
    if (!WATCHED.includes(condition.type) || condition.status === 'Unknown') return condition;
    const message = 'Kubelet stopped posting node status.';
    return {
      ...condition,
      status: 'Unknown',
      reason: 'NodeStatusUnknown',
      message,
      lastTransitionTime: time,
    };
  });
  const missing = WATCHED.filter((type) => !conditions.some((condition) => condition.type === type));
  const never = missing.map(
    (type): NodeCondition => ({
      type,
      status: 'Unknown',
      reason: 'NodeStatusNeverUpdated',
      message: 'Kubelet never posted node status.',
      lastHeartbeatTime: node.metadata.creationTimestamp ?? time,
      lastTransitionTime: time,
    }),
  );
  const changed = never.length > 0 || told.some((condition, index) => condition !== conditions[index]);
  return changed ? [...told, ...never] : undefined;
}
