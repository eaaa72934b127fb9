import {
  type Controller,
  type ControllerContext,
  createEventRecorder,
  createWorkQueue,
  startReconciler,
} from '#server/client';
import {
  type Binding,
  deepEqual,
  formatTime,
  isConflict,
  isNotFound,
  type KubeObject,
  type Node,
  nodes,
  objectKey,
  type Pod,
  type PodCondition,
  pods,
} from '#server/kube';
import { type Rejection, rejectionOf } from './filters.ts';
import { describeNode, isFinished, type NodeInfo } from './node-info.ts';
import { pinnedNodes } from './pinned-nodes.ts';
import { bestNode } from './scores.ts';
import { unschedulableMessage } from './verdict.ts';

export type Scheduler = Controller;

const NAME = 'default-scheduler';
const BY_NODE = 'scheduler/node';

/**
 * Binds pods of `default-scheduler` that have no node. Give it informers of its own client; it asks for pods and nodes.
 */
export function createScheduler(context: ControllerContext): Scheduler {
  const { client, informers, clock, ids, log } = context;
  const podInformer = informers.informer(pods);
  const nodeInformer = informers.informer(nodes);
  podInformer.addIndex(BY_NODE, (pod) => (pod.spec.nodeName ? [pod.spec.nodeName] : []));
  const queue = createWorkQueue({ clock });
  const recorder = createEventRecorder({ client, component: NAME, clock, ids, log });
  /** Bound, but the informer does not show it yet: still to be counted on its node. Key → pod with its node. */
  const assumed = new Map<string, Pod>();
  /** Tried in vain; tried again when something changes. */
  const unschedulable = new Set<string>();

  const picture = (): NodeInfo[] => {
    const assumedByNode = new Map<string, Pod[]>();
    for (const pod of assumed.values()) {
      const name = pod.spec.nodeName ?? '';
      assumedByNode.set(name, [...(assumedByNode.get(name) ?? []), pod]);
    }
    return nodeInformer
      .list()
      .map((node) =>
        describeNode(node, [
          ...podInformer.byIndex(BY_NODE, node.metadata.name),
          ...(assumedByNode.get(node.metadata.name) ?? []),
        ]),
      );
  };

  const fail = async (pod: Pod, reason: string, message: string): Promise<void> => {
    unschedulable.add(objectKey(pod));
    recorder.event(pod, 'Warning', 'FailedScheduling', message);
    await setCondition(pod, { type: 'PodScheduled', status: 'False', reason, message });
  };

  const setCondition = async (
    pod: Pod,
    condition: Omit<PodCondition, 'lastTransitionTime'>,
  ): Promise<void> => {
    const before = pod.status?.conditions?.find((present) => present.type === condition.type);
    const now = formatTime(clock.now());
    const next: PodCondition = {
      ...condition,
      ...(pod.metadata.generation === undefined ? {} : { observedGeneration: pod.metadata.generation }),
      lastTransitionTime: before?.status === condition.status ? (before.lastTransitionTime ?? now) : now,
    };
    if (before && deepEqual({ ...before, lastProbeTime: undefined }, { ...next, lastProbeTime: undefined }))
      return;
    const body = { status: { conditions: [next] } };
    try {
      await client.patch(pods, refOf(pod), { type: 'strategic', body }, { subresource: 'status' });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  };

  const bind = async (pod: Pod, node: Node): Promise<void> => {
    const key = objectKey(pod);
    unschedulable.delete(key);
    assumed.set(key, { ...pod, spec: { ...pod.spec, nodeName: node.metadata.name } });
    const binding: Binding & KubeObject = {
      apiVersion: 'v1',
      kind: 'Binding',
      metadata: {
        name: pod.metadata.name,
        namespace: pod.metadata.namespace ?? 'default',
        ...(pod.metadata.uid ? { uid: pod.metadata.uid } : {}),
      },
      target: { kind: 'Node', name: node.metadata.name },
    };
    try {
      await client.createSubresource(pods, refOf(pod), 'binding', binding);
    } catch (error) {
      assumed.delete(key);
      if (isNotFound(error) || isConflict(error)) return;
      throw error;
    }
    recorder.event(pod, 'Normal', 'Scheduled', `Successfully assigned ${key} to ${node.metadata.name}`);
  };

  const schedule = async (key: string): Promise<void> => {
    const pod = podInformer.get(key);
    if (!pod || !isMine(pod) || assumed.has(key)) return;
    if (pod.spec.schedulingGates?.length) {
      await setCondition(pod, {
        type: 'PodScheduled',
        status: 'False',
        reason: 'SchedulingGated',
        message: 'Scheduling is blocked due to non-empty scheduling gates',
      });
      return;
    }
    const infos = picture();
    const { fitting, rejections } = filterNodes(pod, infos);
    const best = bestNode(pod, fitting, infos, () => ids.random());
    if (best) await bind(pod, best.node);
    else await fail(pod, 'Unschedulable', unschedulableMessage(infos.length, rejections));
  };

  const tryAgain = (): void => {
    for (const key of unschedulable) queue.add(key);
    unschedulable.clear();
  };
  const forget = (pod: Pod): void => {
    assumed.delete(objectKey(pod));
    unschedulable.delete(objectKey(pod));
  };

  let reconciler: { stop(): Promise<void> } | undefined;
  const subscriptions: { stop(): void }[] = [];
  let stopped = false;
  return {
    start() {
      subscriptions.push(
        podInformer.on({
          added: (pod) => (isMine(pod) ? queue.add(objectKey(pod)) : forget(pod)),
          updated: (old, pod) => {
            if (!isMine(pod)) forget(pod);
            else if (!deepEqual(old.spec, pod.spec) || !deepEqual(old.metadata.labels, pod.metadata.labels))
              queue.add(objectKey(pod));
            if (!isFinished(old) && isFinished(pod)) tryAgain();
          },
          deleted: (pod) => {
            forget(pod);
            if (pod.spec.nodeName) tryAgain();
          },
        }),
        nodeInformer.on({
          added: tryAgain,
          updated: (old, node) => {
            if (couldHelp(old, node)) tryAgain();
          },
        }),
      );
      void Promise.all([podInformer.synced, nodeInformer.synced]).then(
        () => {
          if (!stopped) reconciler = startReconciler({ name: NAME, queue, reconcile: schedule, log });
        },
        // The informers were stopped before they had anything: there is nothing to schedule.
        (error: unknown) => log.debug({ err: error }, 'the scheduler ended before its caches were filled'),
      );
    },
    async stop() {
      stopped = true;
      for (const subscription of subscriptions) subscription.stop();
      queue.shutDown();
      await reconciler?.stop();
      recorder.stop();
    },
  };
}

function isMine(pod: Pod): boolean {
  return (
    !pod.spec.nodeName &&
    (pod.spec.schedulerName ?? NAME) === NAME &&
    pod.metadata.deletionTimestamp === undefined &&
    !isFinished(pod)
  );
}

/** What of a node can make a rejected pod fit. Heartbeats do not. */
function couldHelp(old: Node, now: Node): boolean {
  return !(
    deepEqual(old.spec, now.spec) &&
    deepEqual(old.metadata.labels, now.metadata.labels) &&
    deepEqual(old.status?.allocatable, now.status?.allocatable)
  );
}

function refOf(pod: Pod): { namespace: string; name: string } {
  return { namespace: pod.metadata.namespace ?? 'default', name: pod.metadata.name };
}

/** Upstream's text for nodes a plugin's PreFilter left out. */
const LEFT_OUT: Rejection = {
  reasons: ["node(s) didn't satisfy plugin(s) [NodeAffinity]"],
  helpedByPreemption: false,
};

function filterNodes(pod: Pod, infos: readonly NodeInfo[]): { fitting: NodeInfo[]; rejections: Rejection[] } {
  const pinned = pinnedNodes(pod);
  const fitting: NodeInfo[] = [];
  const rejections: Rejection[] = [];
  for (const info of infos) {
    const rejection =
      pinned && !pinned.has(info.node.metadata.name) ? LEFT_OUT : rejectionOf(pod, info, infos);
    if (rejection) rejections.push(rejection);
    else fitting.push(info);
  }
  return { fitting, rejections };
}
