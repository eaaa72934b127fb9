import { formatTime, taints as keys, type Node, sameTaint, type Taint } from '#server/kube';

/** Which status of a condition makes which taint. */
const BY_CONDITION: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  Ready: { False: keys.notReady, Unknown: keys.unreachable },
  MemoryPressure: { True: keys.memoryPressure },
  DiskPressure: { True: keys.diskPressure },
  NetworkUnavailable: { True: keys.networkUnavailable },
  PIDPressure: { True: keys.pidPressure },
};
const OWN_NO_SCHEDULE: ReadonlySet<string> = new Set([
  ...Object.values(BY_CONDITION).flatMap((byStatus) => Object.values(byStatus)),
  keys.unschedulable,
]);
const OWN_NO_EXECUTE: ReadonlySet<string> = new Set([keys.notReady, keys.unreachable]);

function isOwn({ key, effect }: Taint): boolean {
  return (
    (effect === 'NoSchedule' && OWN_NO_SCHEDULE.has(key)) ||
    (effect === 'NoExecute' && OWN_NO_EXECUTE.has(key))
  );
}

/**
 * The taints a node is to have: what its conditions and `spec.unschedulable` call for, and those of others as they are.
 * `evicts`: whether a node that is not ready gets the NoExecute taint, too. Undefined when it has just these.
 * Models doNoScheduleTaintingPass, processTaintBaseEviction and markNodeAsReachable.
 */
export function nextTaints(node: Node, evicts: boolean, now: number): Taint[] | undefined {
  const existing = node.spec.taints ?? [];
  const wanted: Taint[] = [];
  for (const { type, status } of node.status?.conditions ?? []) {
    const key = BY_CONDITION[type]?.[status];
    if (!key) continue;
    wanted.push({ key, effect: 'NoSchedule' });
    if (evicts && type === 'Ready') wanted.push({ key, effect: 'NoExecute' });
  }
  if (node.spec.unschedulable) wanted.push({ key: keys.unschedulable, effect: 'NoSchedule' });
  const kept = existing.filter((taint) => !isOwn(taint) || wanted.some((each) => sameTaint(each, taint)));
  const added = wanted.filter((taint) => !existing.some((each) => sameTaint(each, taint)));
  if (kept.length === existing.length && added.length === 0) return undefined;
  return [...kept, ...added.map((taint) => ({ ...taint, timeAdded: formatTime(now) }))];
}
