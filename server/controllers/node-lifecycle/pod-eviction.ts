import {
  type Controller,
  type ControllerContext,
  createEventRecorder,
  type Informer,
  type WorkQueue,
} from '#server/client';
import { type Arrange, createLoop } from '#server/controllers/machinery';
import {
  deepEqual,
  formatTime,
  isNotFound,
  type Node,
  objectKey,
  type Pod,
  pods,
  type Taint,
  tolerates,
} from '#server/kube';

const WORKERS = 2;
const FIELD_MANAGER = 'TaintManager';

const expelling = (node: Node | undefined): Taint[] =>
  node?.spec.taints?.filter(({ effect }) => effect === 'NoExecute') ?? [];

/**
 * When (milliseconds since the epoch) the pod must go for the sake of the taints; undefined when it may stay.
 * Models processPodOnNode, but counts from the taint's own time, so that a restart does not lengthen a pod's stay.
 */
export function evictionDue(pod: Pod, taints: readonly Taint[], now: number): number | undefined {
  let due: number | undefined;
  for (const taint of taints) {
    const bearing = (pod.spec.tolerations ?? []).filter((toleration) => tolerates(toleration, taint));
    if (bearing.length === 0) return now;
    const seconds = bearing
      .map(({ tolerationSeconds }) => tolerationSeconds)
      .filter((each) => each !== undefined);
    if (seconds.length === 0) continue;
    const since = taint.timeAdded ? Date.parse(taint.timeAdded) : now;
    const time = since + Math.max(0, Math.min(...seconds)) * 1000;
    due = due === undefined ? time : Math.min(due, time);
  }
  return due;
}

/** Deletes pods that do not bear their node's NoExecute taints (any longer). Keys are those of pods. */
export function createPodEviction(
  context: ControllerContext,
  nodeInformer: Informer<Node>,
  podInformer: Informer<Pod>,
  podsOn: (node: string) => Pod[],
): Controller {
  const { client, clock, ids, log } = context;
  const recorder = createEventRecorder({ client, component: 'taint-eviction-controller', clock, ids, log });
  /** Pods whose end is set, so that its cancellation can be told. */
  const scheduled = new Set<string>();

  const evict = async (pod: Pod): Promise<void> => {
    const { namespace, name, uid } = pod.metadata;
    recorder.event(pod, 'Normal', 'TaintManagerEviction', `Marking for deletion Pod ${namespace}/${name}`);
    const condition = {
      type: 'DisruptionTarget',
      status: 'True',
      reason: 'DeletionByTaintManager',
      message: 'Taint manager: deleting due to NoExecute taint',
      lastTransitionTime: formatTime(clock.now()),
    };
    const told = pod.status?.conditions?.some(
      ({ type, status }) => type === condition.type && status === 'True',
    );
    try {
      if (!told) {
        const body = { metadata: { uid }, status: { conditions: [condition] } };
        await client.patch(
          pods,
          { namespace, name },
          { type: 'strategic', body },
          { subresource: 'status', fieldManager: FIELD_MANAGER },
        );
      }
      await client.delete(pods, { namespace, name }, uid ? { preconditions: { uid } } : {});
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  };
  const reconcile = async (key: string) => {
    const pod = podInformer.get(key);
    if (!pod || pod.metadata.deletionTimestamp) {
      scheduled.delete(key);
      return undefined;
    }
    const now = clock.now();
    const due = evictionDue(pod, expelling(nodeInformer.get(pod.spec.nodeName ?? '')), now);
    if (due === undefined) {
      if (scheduled.delete(key)) {
        const { namespace, name } = pod.metadata;
        recorder.event(
          pod,
          'Normal',
          'TaintManagerEviction',
          `Cancelling deletion of Pod ${namespace}/${name}`,
        );
      }
      return undefined;
    }
    if (due > now) {
      scheduled.add(key);
      return { requeueAfter: due - now };
    }
    await evict(pod);
    scheduled.delete(key);
    return undefined;
  };
  const watch = (on: Arrange, queue: WorkQueue): void => {
    on(nodeInformer, {
      added: (node) => expelling(node).length > 0 && enqueueAll(node, queue),
      updated(old, node) {
        if (!deepEqual(expelling(old), expelling(node))) enqueueAll(node, queue);
      },
      deleted: (node) => expelling(node).length > 0 && enqueueAll(node, queue),
    });
    const isThreatened = (pod: Pod): boolean =>
      expelling(nodeInformer.get(pod.spec.nodeName ?? '')).length > 0;
    on(podInformer, {
      added: (pod) => isThreatened(pod) && queue.add(objectKey(pod)),
      updated(old, pod) {
        const changed =
          old.spec.nodeName !== pod.spec.nodeName || !deepEqual(old.spec.tolerations, pod.spec.tolerations);
        if (changed && isThreatened(pod)) queue.add(objectKey(pod));
      },
      deleted: (pod) => scheduled.has(objectKey(pod)) && queue.add(objectKey(pod)),
    });
  };
  const enqueueAll = (node: Node, queue: WorkQueue): void => {
    for (const pod of podsOn(node.metadata.name)) queue.add(objectKey(pod));
  };
  return createLoop({
    name: 'taint-eviction',
    context,
    workers: WORKERS,
    watch,
    reconcile,
    onStop: () => recorder.stop(),
  });
}
