import { errorMessage } from '#server/base';
import {
  type Controller,
  type ControllerContext,
  createEventRecorder,
  type Informer,
  type WorkQueue,
} from '#server/client';
import {
  type Arrange,
  availableAfter,
  claim,
  createExpectations,
  createLoop,
  createPodControl,
  ensureIndex,
  isActive,
  isNamespaceTerminating,
  isReady,
  isTerminating,
  slowStart,
} from '#server/controllers/machinery';
import {
  controllerOf,
  deepEqual,
  isConflict,
  isNotFound,
  matchesLabelSelector,
  objectKey,
  type Pod,
  pods,
  type ReplicaSet,
  type ReplicaSetStatus,
  replicaSets,
} from '#server/kube';
import { podsToDelete } from './deletion-order.ts';
import { nextStatus } from './status.ts';

/** The most pods created or deleted in one pass. */
const BURST = 500;
const WORKERS = 2;
const BY_CONTROLLER = 'controller-uid';
const BY_NAMESPACE_ORPHAN = 'orphan-namespace';

/** Something the API refused. */
interface Failure {
  error: unknown;
}

function indexPods(informer: Informer<Pod>): void {
  ensureIndex(informer, BY_CONTROLLER, (pod) => {
    const uid = controllerOf(pod)?.uid;
    return uid ? [uid] : [];
  });
  ensureIndex(informer, BY_NAMESPACE_ORPHAN, (pod) =>
    controllerOf(pod) ? [] : [pod.metadata.namespace ?? ''],
  );
}

/** What other parts of the controller know of the cluster. */
function createLookups(setInformer: Informer<ReplicaSet>, podInformer: Informer<Pod>) {
  const selects = (set: ReplicaSet, pod: Pod): boolean =>
    matchesLabelSelector(set.spec.selector, pod.metadata.labels);
  return {
    selects,
    /** The ReplicaSet that controls the pod, if it is one and still that one. */
    controllerOfPod(pod: Pod): ReplicaSet | undefined {
      const reference = controllerOf(pod);
      if (reference?.kind !== 'ReplicaSet') return undefined;
      const set = setInformer.get(`${pod.metadata.namespace}/${reference.name}`);
      return set?.metadata.uid === reference.uid ? set : undefined;
    },
    /** ReplicaSets that may want to adopt the pod. */
    candidatesFor: (pod: Pod): ReplicaSet[] =>
      setInformer.list(pod.metadata.namespace ?? '').filter((set) => selects(set, pod)),
    owned: (set: ReplicaSet): Pod[] => podInformer.byIndex(BY_CONTROLLER, set.metadata.uid ?? ''),
    orphans: (set: ReplicaSet): Pod[] =>
      podInformer.byIndex(BY_NAMESPACE_ORPHAN, set.metadata.namespace ?? ''),
    /** Active pods of all ReplicaSets with the same controller, as of one Deployment. */
    related(set: ReplicaSet): Pod[] {
      const uid = controllerOf(set)?.uid;
      const siblings = uid
        ? setInformer.list(set.metadata.namespace ?? '').filter((other) => controllerOf(other)?.uid === uid)
        : [set];
      return siblings
        .flatMap((sibling) => podInformer.byIndex(BY_CONTROLLER, sibling.metadata.uid ?? ''))
        .filter(isActive);
    },
  };
}

/** Keeps ReplicaSets at their size. Models ReplicaSetController of kubernetes/pkg/controller/replicaset. */
export function createReplicaSetController(context: ControllerContext): Controller {
  const { client, informers, clock, ids, log } = context;
  const setInformer = informers.informer(replicaSets);
  const podInformer = informers.informer(pods);
  indexPods(podInformer);
  const lookups = createLookups(setInformer, podInformer);
  const expectations = createExpectations(clock);
  const recorder = createEventRecorder({ client, component: 'replicaset-controller', clock, ids, log });
  const control = createPodControl(client, recorder);

  const create = async (set: ReplicaSet, missing: number): Promise<Failure | undefined> => {
    const key = objectKey(set);
    const count = Math.min(missing, BURST);
    const template = set.spec.template ?? {};
    expectations.expect(key, count, []);
    let tried = 0;
    const { failure } = await slowStart(count, async () => {
      tried++;
      try {
        await control.create(set, template);
      } catch (refusal) {
        expectations.creationObserved(key);
        if (!isNamespaceTerminating(refusal)) throw refusal;
      }
    });
    for (; tried < count; tried++) expectations.creationObserved(key);
    return failure;
  };
  const remove = async (
    set: ReplicaSet,
    active: readonly Pod[],
    surplus: number,
  ): Promise<Failure | undefined> => {
    const key = objectKey(set);
    const doomed = podsToDelete(active, lookups.related(set), Math.min(surplus, BURST), clock.now());
    expectations.expect(
      key,
      0,
      doomed.map((pod) => pod.metadata.uid ?? ''),
    );
    const results = await Promise.allSettled(
      doomed.map(async (pod) => {
        try {
          await control.delete(set, pod);
        } catch (refusal) {
          expectations.deletionObserved(key, pod.metadata.uid ?? '');
          if (!isNotFound(refusal)) throw refusal;
        }
      }),
    );
    const failed = results.find((result) => result.status === 'rejected');
    return failed && { error: failed.reason };
  };
  const writeStatus = async (set: ReplicaSet, status: ReplicaSetStatus): Promise<void> => {
    try {
      await client.update(replicaSets, { ...set, status }, { subresource: 'status' });
    } catch (error) {
      if (!isConflict(error)) throw error;
      const live = await client.get(replicaSets, {
        namespace: set.metadata.namespace,
        name: set.metadata.name,
      });
      if (live.metadata.uid !== set.metadata.uid || deepEqual(live.status, status)) return;
      await client.update(replicaSets, { ...live, status }, { subresource: 'status' });
    }
  };
  const reconcile = async (key: string) => {
    const set = setInformer.get(key);
    if (!set) {
      expectations.forget(key);
      return undefined;
    }
    const mayAct = expectations.satisfied(key);
    const matches = (pod: Pod): boolean => lookups.selects(set, pod);
    const all = [...lookups.owned(set), ...lookups.orphans(set)];
    const options = { client, resource: pods, owner: set, ownerResource: replicaSets, matches };
    const active = await claim(options, all.filter(isActive));
    const difference = active.length - (set.spec.replicas ?? 1);
    let failed: Failure | undefined;
    if (mayAct && !set.metadata.deletionTimestamp) {
      if (difference < 0) failed = await create(set, -difference);
      else if (difference > 0) failed = await remove(set, active, difference);
    }
    const terminating = lookups.owned(set).filter((pod) => isTerminating(pod) && matches(pod));
    const failure = failed && { message: errorMessage(failed.error) };
    const now = clock.now();
    const status = nextStatus(set, { active, terminating, failure, now });
    if (status) await writeStatus(set, status);
    if (failed) throw failed.error;
    const waits = active
      .map((pod) => availableAfter(pod, set.spec.minReadySeconds ?? 0, now) ?? 0)
      .filter((wait) => wait > 0);
    return waits.length > 0 ? { requeueAfter: Math.min(...waits) } : undefined;
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
  };
  const watchPods = (on: Arrange, queue: WorkQueue): void => {
    const gone = (pod: Pod): void => {
      const set = lookups.controllerOfPod(pod);
      if (!set) return;
      expectations.deletionObserved(objectKey(set), pod.metadata.uid ?? '');
      queue.add(objectKey(set));
    };
    const offer = (pod: Pod): void => {
      for (const set of lookups.candidatesFor(pod)) queue.add(objectKey(set));
    };
    on(podInformer, {
      added(pod) {
        // A restart may show a pod for the first time when it is on its way out.
        if (pod.metadata.deletionTimestamp) return gone(pod);
        if (!controllerOf(pod)) return offer(pod);
        const set = lookups.controllerOfPod(pod);
        if (!set) return undefined;
        expectations.creationObserved(objectKey(set));
        return queue.add(objectKey(set));
      },
      updated(old, pod) {
        const relabelled = !deepEqual(old.metadata.labels, pod.metadata.labels);
        if (pod.metadata.deletionTimestamp) {
          gone(pod);
          if (relabelled) gone(old);
          return;
        }
        const before = controllerOf(old)?.uid;
        const after = controllerOf(pod)?.uid;
        if (before !== after) {
          const set = lookups.controllerOfPod(old);
          if (set) queue.add(objectKey(set));
        }
        if (!after) {
          if (relabelled || before !== after) offer(pod);
          return;
        }
        const set = lookups.controllerOfPod(pod);
        if (!set) return;
        queue.add(objectKey(set));
        // Becoming available is no event: look again when it is due.
        const wait = isReady(old)
          ? 0
          : (availableAfter(pod, set.spec.minReadySeconds ?? 0, clock.now()) ?? 0);
        if (wait > 0) queue.addAfter(objectKey(set), wait);
      },
      deleted: gone,
    });
  };
  return createLoop({
    name: 'replica-set',
    context,
    workers: WORKERS,
    watch,
    reconcile,
    onStop: () => recorder.stop(),
  });
}
