import { type Controller, type ControllerContext, createEventRecorder, type WorkQueue } from '#server/client';
import {
  type Arrange,
  availableAfter,
  claim,
  createExpectations,
  createLoop,
  createPodControl,
  isFinished,
  isNamespaceTerminating,
  slowStart,
} from '#server/controllers/machinery';
import {
  type ControllerRevision,
  controllerOf,
  controllerRevisions,
  type DaemonSet,
  type DaemonSetStatus,
  daemonSets,
  deepEqual,
  isNotFound,
  labels,
  matchesLabelSelector,
  type Node,
  nodes,
  objectKey,
  type Pod,
  pods,
} from '#server/kube';
import { fits, targetNode, templateFor } from './daemon-pod.ts';
import { createFailedPodBackoff } from './failed-pods.ts';
import { settleHistory } from './history.ts';
import { type Changes, manage, nextStatus, rollingUpdate, type View } from './plan.ts';

/** The most pods created or deleted in one pass. */
const BURST = 250;
const WORKERS = 2;
const DEFAULT_HISTORY = 10;

/** Keeps daemons on their nodes. Models DaemonSetsController of kubernetes/pkg/controller/daemon. */
export function createDaemonSetController(context: ControllerContext): Controller {
  const { client, informers, clock, ids, log } = context;
  const setInformer = informers.informer(daemonSets);
  const podInformer = informers.informer(pods);
  const nodeInformer = informers.informer(nodes);
  const revisionInformer = informers.informer(controllerRevisions);
  const recorder = createEventRecorder({ client, component: 'daemonset-controller', clock, ids, log });
  const control = createPodControl(client, recorder);
  const expectations = createExpectations(clock);
  const backoff = createFailedPodBackoff(clock);

  const podsByNode = async (set: DaemonSet): Promise<Map<string, Pod[]>> => {
    const matches = (pod: Pod): boolean => matchesLabelSelector(set.spec.selector, pod.metadata.labels);
    const options = { client, resource: pods, owner: set, ownerResource: daemonSets, matches };
    const byNode = new Map<string, Pod[]>();
    for (const pod of await claim(options, podInformer.list(set.metadata.namespace ?? ''))) {
      if (isFinished(pod) && pod.metadata.deletionTimestamp) continue;
      const node = targetNode(pod);
      if (node === undefined) continue;
      byNode.set(node, [...(byNode.get(node) ?? []), pod]);
    }
    return byNode;
  };
  const view = async (set: DaemonSet, hash: string): Promise<View> => {
    const all = nodeInformer.list().sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
    return { set, nodes: all, podsOn: await podsByNode(set), hash, now: clock.now() };
  };
  /** Pods that ended, once their back-off allows; the key comes back for the others. */
  const replaceable = (set: DaemonSet, ended: readonly Pod[], queue: WorkQueue): Pod[] =>
    ended.filter((pod) => {
      const { namespace, name } = pod.metadata;
      const node = pod.spec.nodeName ?? '';
      if (pod.status?.phase === 'Succeeded') {
        const message = `Found succeeded daemon pod ${namespace}/${name} on node ${node}, will try to delete it`;
        recorder.event(set, 'Normal', 'SucceededDaemonPod', message);
        return true;
      }
      const wait = backoff.waitFor(`${set.metadata.uid}/${set.status?.observedGeneration ?? 0}/${node}`);
      if (wait > 0) {
        queue.addAfter(objectKey(set), wait);
        return false;
      }
      const message = `Found failed daemon pod ${namespace}/${name} on node ${node}, will try to kill it`;
      recorder.event(set, 'Warning', 'FailedDaemonPod', message);
      return true;
    });
  const remove = async (set: DaemonSet, pod: Pod): Promise<void> => {
    try {
      await control.delete(set, pod);
    } catch (error) {
      expectations.deletionObserved(objectKey(set), pod.metadata.uid ?? '');
      if (!isNotFound(error)) throw error;
    }
  };
  const create = async (set: DaemonSet, node: string, hash: string): Promise<void> => {
    try {
      await control.create(set, templateFor(set, node, hash));
    } catch (error) {
      expectations.creationObserved(objectKey(set));
      if (!isNamespaceTerminating(error)) throw error;
    }
  };
  /** Models syncNodes. */
  const apply = async (set: DaemonSet, changes: Changes, hash: string): Promise<void> => {
    const key = objectKey(set);
    const missing = changes.create.slice(0, BURST);
    const doomed = changes.remove.slice(0, BURST);
    if (missing.length + doomed.length === 0) return;
    expectations.expect(
      key,
      missing.length,
      doomed.map((pod) => pod.metadata.uid ?? ''),
    );
    let tried = 0;
    const { failure } = await slowStart(missing.length, (index) => {
      tried++;
      return create(set, missing[index] ?? '', hash);
    });
    for (; tried < missing.length; tried++) expectations.creationObserved(key);
    const removed = await Promise.allSettled(doomed.map((pod) => remove(set, pod)));
    const failed = removed.find((result) => result.status === 'rejected');
    if (failure) throw failure.error;
    if (failed) throw failed.reason;
  };
  const update = async (set: DaemonSet, hash: string, queue: WorkQueue): Promise<void> => {
    const now = await view(set, hash);
    const { create: missing, remove: doomed, ended } = manage(now);
    await apply(
      set,
      { create: missing, remove: [...doomed, ...replaceable(set, ended, queue)], ended: [] },
      hash,
    );
    if (set.spec.updateStrategy?.type !== 'RollingUpdate' || !expectations.satisfied(objectKey(set))) return;
    await apply(set, rollingUpdate(await view(set, hash)), hash);
  };
  /** Models cleanupHistory: revisions with living pods stay. */
  const forgetRevisions = async (
    set: DaemonSet,
    hash: string,
    old: readonly ControllerRevision[],
  ): Promise<void> => {
    const surplus = old.length - (set.spec.revisionHistoryLimit ?? DEFAULT_HISTORY);
    if (surplus <= 0) return;
    const living = new Set([hash]);
    for (const on of (await podsByNode(set)).values())
      for (const pod of on) living.add(pod.metadata.labels?.[labels.controllerRevisionHash] ?? '');
    const idle = old.filter(
      ({ metadata }) => !living.has(metadata.labels?.[labels.controllerRevisionHash] ?? ''),
    );
    for (const revision of idle.sort((a, b) => a.revision - b.revision).slice(0, surplus)) {
      try {
        await client.delete(controllerRevisions, {
          namespace: revision.metadata.namespace,
          name: revision.metadata.name,
        });
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
    }
  };
  const writeStatus = async (set: DaemonSet, status: DaemonSetStatus | undefined): Promise<void> => {
    if (status) await client.update(daemonSets, { ...set, status }, { subresource: 'status' });
  };
  const reconcile = async (key: string, queue: WorkQueue) => {
    const set = setInformer.get(key);
    if (!set) {
      expectations.forget(key);
      return undefined;
    }
    if (deepEqual(set.spec.selector, {})) {
      const message = 'This daemon set is selecting all pods. A non-empty selector is required.';
      recorder.event(set, 'Warning', 'SelectingAll', message);
      return undefined;
    }
    if (set.metadata.deletionTimestamp) return undefined;
    const { hash, old } = await settleHistory(
      client,
      set,
      revisionInformer.list(set.metadata.namespace ?? ''),
    );
    if (!expectations.satisfied(key)) {
      await writeStatus(set, nextStatus(await view(set, hash), false));
      return undefined;
    }
    let failure: { error: unknown } | undefined;
    try {
      await update(set, hash, queue);
      await forgetRevisions(set, hash, old);
    } catch (error) {
      failure = { error };
    }
    const last = await view(set, hash);
    await writeStatus(set, nextStatus(last, failure === undefined));
    if (failure) throw failure.error;
    const minReady = set.spec.minReadySeconds ?? 0;
    const waits = [...last.podsOn.values()].flat().map((pod) => availableAfter(pod, minReady, last.now) ?? 0);
    const pending = waits.filter((wait) => wait > 0);
    return pending.length > 0 ? { requeueAfter: Math.min(...pending) } : undefined;
  };
  const watch = (on: Arrange, queue: WorkQueue): void => {
    on(setInformer, {
      added: (set) => queue.add(objectKey(set)),
      updated: (_, set) => queue.add(objectKey(set)),
      deleted(set) {
        expectations.forget(objectKey(set));
        queue.add(objectKey(set));
      },
    });
    watchPods(on, queue);
    watchNodes(on, queue);
    on(revisionInformer, {
      added: (revision) => enqueueOwner(revision, queue),
      updated: (_, revision) => enqueueOwner(revision, queue),
      deleted: (revision) => enqueueOwner(revision, queue),
    });
  };
  const ownerOf = (object: Pod | ControllerRevision): DaemonSet | undefined => {
    const reference = controllerOf(object);
    if (reference?.kind !== 'DaemonSet') return undefined;
    const set = setInformer.get(`${object.metadata.namespace}/${reference.name}`);
    return set?.metadata.uid === reference.uid ? set : undefined;
  };
  const enqueueOwner = (object: Pod | ControllerRevision, queue: WorkQueue): void => {
    const set = ownerOf(object);
    if (set) queue.add(objectKey(set));
  };
  const watchPods = (on: Arrange, queue: WorkQueue): void => {
    const gone = (pod: Pod): void => {
      const set = ownerOf(pod);
      if (!set) return;
      expectations.deletionObserved(objectKey(set), pod.metadata.uid ?? '');
      queue.add(objectKey(set));
    };
    const offer = (pod: Pod): void => {
      for (const set of setInformer.list(pod.metadata.namespace ?? '')) {
        if (matchesLabelSelector(set.spec.selector, pod.metadata.labels)) queue.add(objectKey(set));
      }
    };
    on(podInformer, {
      added(pod) {
        if (pod.metadata.deletionTimestamp) return gone(pod);
        if (!controllerOf(pod)) return offer(pod);
        const set = ownerOf(pod);
        if (!set) return undefined;
        expectations.creationObserved(objectKey(set));
        return queue.add(objectKey(set));
      },
      updated(old, pod) {
        if (pod.metadata.deletionTimestamp) return gone(pod);
        if (controllerOf(old)?.uid !== controllerOf(pod)?.uid) enqueueOwner(old, queue);
        if (controllerOf(pod)) return enqueueOwner(pod, queue);
        if (controllerOf(old) || !deepEqual(old.metadata.labels, pod.metadata.labels)) offer(pod);
        return undefined;
      },
      deleted: gone,
    });
  };
  const watchNodes = (on: Arrange, queue: WorkQueue): void => {
    const facts = ({ metadata, spec }: Node): unknown => [metadata.labels, spec.taints];
    on(nodeInformer, {
      added(node) {
        for (const set of setInformer.list()) if (fits(set, node).run) queue.add(objectKey(set));
      },
      updated(old, node) {
        if (deepEqual(facts(old), facts(node))) return;
        for (const set of setInformer.list())
          if (!deepEqual(fits(set, old), fits(set, node))) queue.add(objectKey(set));
      },
      deleted(node) {
        for (const set of setInformer.list()) if (fits(set, node).run) queue.add(objectKey(set));
      },
    });
  };
  return createLoop({
    name: 'daemon-set',
    context,
    workers: WORKERS,
    watch,
    reconcile,
    onStop: () => recorder.stop(),
  });
}
