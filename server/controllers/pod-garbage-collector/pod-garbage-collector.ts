import type { Controller, ControllerContext, WorkQueue } from '#server/client';
import { type Arrange, createLoop, ensureIndex, isFinished } from '#server/controllers/machinery';
import {
  deepEqual,
  formatTime,
  isNotFound,
  type Node,
  nodes,
  objectKey,
  type Pod,
  pods,
  taints,
} from '#server/kube';

/** Milliseconds a node must have been gone before its pods are taken for lost. */
const QUARANTINE = 40_000;
/** So many ended pods are kept. */
const TERMINATED_LIMIT = 12_500;
const FIELD_MANAGER = 'PodGC';
const BY_NODE = 'pods-of-node';

const isOutOfService = (node: Node): boolean =>
  (node.spec.taints?.some(({ key }) => key === taints.outOfService) ?? false) &&
  node.status?.conditions?.find(({ type }) => type === 'Ready')?.status !== 'True';

/** Keys: `node <name>` for the pods of a node, `pod <key>` for one pod, `ended` for the number of ended ones. */
export function createPodGarbageCollector(context: ControllerContext): Controller {
  const { client, informers, clock } = context;
  const podInformer = informers.informer(pods);
  const nodeInformer = informers.informer(nodes);
  ensureIndex(podInformer, BY_NODE, ({ spec }) => (spec.nodeName ? [spec.nodeName] : []));
  /** Nodes that are not there, and since when this controller knows. */
  const missing = new Map<string, number>();

  /** A pod nobody will report on any more has failed. Models markFailedAndDeletePodWithCondition. */
  const remove = async (pod: Pod, why?: string): Promise<void> => {
    const { namespace, name, uid } = pod.metadata;
    const lastTransitionTime = formatTime(clock.now());
    const condition = {
      type: 'DisruptionTarget',
      status: 'True',
      reason: 'DeletionByPodGC',
      message: why ?? '',
      lastTransitionTime,
    };
    try {
      if (!isFinished(pod)) {
        const status = { phase: 'Failed', ...(why ? { conditions: [condition] } : {}) };
        const body = { metadata: { uid }, status };
        await client.patch(
          pods,
          { namespace, name },
          { type: 'strategic', body },
          { subresource: 'status', fieldManager: FIELD_MANAGER },
        );
      }
      await client.delete(
        pods,
        { namespace, name },
        { gracePeriodSeconds: 0, ...(uid ? { preconditions: { uid } } : {}) },
      );
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  };
  const isGone = async (name: string): Promise<boolean> => {
    try {
      await client.get(nodes, { name });
      return false;
    } catch (error) {
      if (isNotFound(error)) return true;
      throw error;
    }
  };
  const collectNode = async (name: string) => {
    const node = nodeInformer.get(name);
    const orphans = podInformer.byIndex(BY_NODE, name);
    if (node || orphans.length === 0) {
      missing.delete(name);
      const stuck =
        node && isOutOfService(node) ? orphans.filter((pod) => pod.metadata.deletionTimestamp) : [];
      for (const pod of stuck) await remove(pod);
      return undefined;
    }
    const since = missing.get(name) ?? clock.now();
    missing.set(name, since);
    const wait = since + QUARANTINE - clock.now();
    if (wait > 0) return { requeueAfter: wait };
    if (await isGone(name)) for (const pod of orphans) await remove(pod, 'PodGC: node no longer exists');
    missing.delete(name);
    return undefined;
  };
  const collectEnded = async (): Promise<void> => {
    const ended = podInformer.list().filter(isFinished);
    if (ended.length <= TERMINATED_LIMIT) return;
    const byAge = ended.sort((a, b) =>
      (a.metadata.creationTimestamp ?? '') < (b.metadata.creationTimestamp ?? '') ? -1 : 1,
    );
    for (const pod of byAge.slice(0, ended.length - TERMINATED_LIMIT)) await remove(pod);
  };
  const reconcile = async (key: string) => {
    const [what, name = ''] = key.split(' ');
    if (what === 'node') return collectNode(name);
    if (what === 'ended') return collectEnded();
    const pod = podInformer.get(name);
    if (pod?.metadata.deletionTimestamp && !pod.spec.nodeName) await remove(pod);
    return undefined;
  };
  const look = (pod: Pod, queue: WorkQueue): void => {
    const { nodeName } = pod.spec;
    if (!nodeName) {
      if (pod.metadata.deletionTimestamp) queue.add(`pod ${objectKey(pod)}`);
      return;
    }
    const node = nodeInformer.get(nodeName);
    if (!node || (pod.metadata.deletionTimestamp && isOutOfService(node))) queue.add(`node ${nodeName}`);
    if (isFinished(pod) && podInformer.list().length > TERMINATED_LIMIT) queue.add('ended');
  };
  const watch = (on: Arrange, queue: WorkQueue): void => {
    on(nodeInformer, {
      updated(old, node) {
        if (!deepEqual(old.spec.taints, node.spec.taints) && isOutOfService(node))
          queue.add(`node ${node.metadata.name}`);
      },
      deleted: ({ metadata }) => queue.add(`node ${metadata.name}`),
    });
    on(podInformer, {
      added: (pod) => nodeInformer.hasSynced && look(pod, queue),
      updated: (_, pod) => nodeInformer.hasSynced && look(pod, queue),
    });
  };
  /** What happened before anybody looked. */
  const onReady = (queue: WorkQueue): void => {
    for (const pod of podInformer.list()) look(pod, queue);
  };
  return createLoop({ name: 'pod-garbage-collector', context, watch, reconcile, onReady });
}
