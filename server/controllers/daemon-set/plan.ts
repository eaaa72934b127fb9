import { isAvailable, isReady } from '#server/controllers/machinery';
import {
  type DaemonSet,
  type DaemonSetStatus,
  deepEqual,
  type Node,
  type Pod,
  resolveIntOrPercent,
} from '#server/kube';
import { fits, isUpdated } from './daemon-pod.ts';

/** A DaemonSet and what there is of it. */
export interface View {
  set: DaemonSet;
  nodes: readonly Node[];
  /** Its pods by the node they are on or pinned to. */
  podsOn: ReadonlyMap<string, readonly Pod[]>;
  /** Of the current revision. */
  hash: string;
  now: number;
}

/** Pods to create (by node) and to delete. */
export interface Changes {
  create: string[];
  remove: Pod[];
  /** Pods that have ended and are to be replaced. */
  ended: Pod[];
}

function oldestFirst(a: Pod, b: Pod): number {
  const bound = Number(Boolean(b.spec.nodeName)) - Number(Boolean(a.spec.nodeName));
  const [bornA, bornB] = [a.metadata.creationTimestamp ?? '', b.metadata.creationTimestamp ?? ''];
  return bound || (bornA < bornB ? -1 : bornA > bornB ? 1 : a.metadata.name < b.metadata.name ? -1 : 1);
}

/** Absolute numbers of a rolling update; never both 0. */
function limits({ set, nodes }: View): { surge: number; unavailable: number } {
  const desired = nodes.filter((node) => fits(set, node).run).length;
  const { maxSurge = 0, maxUnavailable = 0 } = set.spec.updateStrategy?.rollingUpdate ?? {};
  const surge = resolveIntOrPercent(maxSurge, desired, true);
  const unavailable = resolveIntOrPercent(maxUnavailable, desired, true);
  return { surge, unavailable: surge === 0 && unavailable === 0 ? 1 : unavailable };
}

function allowsSurge(view: View): boolean {
  return view.set.spec.updateStrategy?.type === 'RollingUpdate' && limits(view).surge > 0;
}

const available = ({ set, now }: View, pod: Pod): boolean =>
  isAvailable(pod, set.spec.minReadySeconds ?? 0, now);

/** Of several pods on one node: which are too many. */
function surplus(view: View, running: readonly Pod[]): Pod[] {
  const sorted = [...running].sort(oldestFirst);
  if (!allowsSurge(view)) return sorted.slice(1);
  const [updated, ...moreUpdated] = sorted.filter((pod) => isUpdated(view.set, pod, view.hash));
  const [old, ...moreOld] = sorted.filter((pod) => !isUpdated(view.set, pod, view.hash));
  const replaced = updated && old && (!isReady(old) || available(view, updated)) ? [old] : [];
  return [...moreUpdated, ...moreOld, ...replaced];
}

/** What must change whatever the update strategy. Models manage and podsShouldBeOnNode. */
export function manage(view: View): Changes {
  const { set, nodes, podsOn } = view;
  const changes: Changes = { create: [], remove: [], ended: [] };
  const known = new Set<string>();
  for (const node of nodes) {
    known.add(node.metadata.name);
    const { run, stay } = fits(set, node);
    const pods = podsOn.get(node.metadata.name) ?? [];
    const alive = pods.filter((pod) => !pod.metadata.deletionTimestamp);
    if (run && pods.length === 0) changes.create.push(node.metadata.name);
    else if (!stay) changes.remove.push(...alive);
    else {
      const ended = (pod: Pod): boolean =>
        pod.status?.phase === 'Failed' || pod.status?.phase === 'Succeeded';
      changes.ended.push(...alive.filter(ended));
      changes.remove.push(
        ...surplus(
          view,
          alive.filter((pod) => !ended(pod)),
        ),
      );
    }
  }
  // Pinned to a node that is gone and never bound: no kubelet and no collector will take them.
  for (const [name, pods] of podsOn) {
    if (known.has(name)) continue;
    changes.remove.push(...pods.filter((pod) => !pod.spec.nodeName && !pod.metadata.deletionTimestamp));
  }
  return changes;
}

/** The one pod of each revision on a node; undefined when there are more than that. */
function pairOn({ set, hash }: View, pods: readonly Pod[]): { updated?: Pod; old?: Pod } | undefined {
  const alive = pods.filter((pod) => !pod.metadata.deletionTimestamp);
  const [updated, secondUpdated] = alive.filter((pod) => isUpdated(set, pod, hash));
  const [old, secondOld] = alive.filter((pod) => !isUpdated(set, pod, hash));
  if (secondUpdated || secondOld) return undefined;
  return { ...(updated ? { updated } : {}), ...(old ? { old } : {}) };
}

function replaceInPlace(view: View, maxUnavailable: number): Changes {
  let unavailable = 0;
  const broken: Pod[] = [];
  const candidates: Pod[] = [];
  for (const pods of view.podsOn.values()) {
    const { updated, old } = pairOn(view, pods) ?? {};
    if (old && !updated) {
      if (available(view, old)) candidates.push(old);
      else {
        broken.push(old);
        unavailable++;
      }
    } else if (!updated || old || !available(view, updated)) unavailable++;
  }
  return {
    create: [],
    remove: [...broken, ...candidates.slice(0, Math.max(0, maxUnavailable - unavailable))],
    ended: [],
  };
}

function surgeBeside(view: View, maxSurge: number): Changes {
  let surging = 0;
  const remove: Pod[] = [];
  const broken: string[] = [];
  const candidates: string[] = [];
  for (const [node, pods] of view.podsOn) {
    const pair = pairOn(view, pods);
    if (!pair) surging++;
    else if (pair.old && !pair.updated) (available(view, pair.old) ? candidates : broken).push(node);
    else if (pair.old && pair.updated) {
      if (available(view, pair.updated)) remove.push(pair.old);
      else surging++;
    }
  }
  return { create: [...broken, ...candidates.slice(0, Math.max(0, maxSurge - surging))], remove, ended: [] };
}

/** The next step of a rolling update. Models rollingUpdate of kubernetes/pkg/controller/daemon/update.go. */
export function rollingUpdate(view: View): Changes {
  const { surge, unavailable } = limits(view);
  return surge > 0 ? surgeBeside(view, surge) : replaceInPlace(view, unavailable);
}

/** The status that tells of the view; undefined when the DaemonSet's own does. Models updateDaemonSetStatus. */
export function nextStatus(view: View, observesGeneration: boolean): DaemonSetStatus | undefined {
  const { set, nodes, podsOn, hash } = view;
  const counts = { desired: 0, current: 0, misscheduled: 0, ready: 0, available: 0, updated: 0 };
  for (const node of nodes) {
    const [pod] = [...(podsOn.get(node.metadata.name) ?? [])].sort(oldestFirst);
    if (!fits(set, node).run) {
      if (pod) counts.misscheduled++;
      continue;
    }
    counts.desired++;
    if (!pod) continue;
    counts.current++;
    if (isReady(pod)) counts.ready++;
    if (available(view, pod)) counts.available++;
    if (isUpdated(set, pod, hash)) counts.updated++;
  }
  const unavailable = counts.desired - counts.available;
  const generation = observesGeneration ? set.metadata.generation : set.status?.observedGeneration;
  const { collisionCount, conditions } = set.status ?? {};
  const status: DaemonSetStatus = {
    currentNumberScheduled: counts.current,
    numberMisscheduled: counts.misscheduled,
    desiredNumberScheduled: counts.desired,
    numberReady: counts.ready,
    ...(generation ? { observedGeneration: generation } : {}),
    ...(counts.updated ? { updatedNumberScheduled: counts.updated } : {}),
    ...(counts.available ? { numberAvailable: counts.available } : {}),
    ...(unavailable ? { numberUnavailable: unavailable } : {}),
    ...(collisionCount === undefined ? {} : { collisionCount }),
    ...(conditions ? { conditions } : {}),
  };
  return deepEqual(status, set.status) ? undefined : status;
}
