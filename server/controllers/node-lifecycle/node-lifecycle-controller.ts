import type { Timer } from '#server/base';
import { type Controller, type ControllerContext, createEventRecorder, type WorkQueue } from '#server/client';
import { type Arrange, createLoop, ensureIndex, podCondition } from '#server/controllers/machinery';
import {
  formatTime,
  isNotFound,
  leases,
  type Node,
  nodes,
  type Pod,
  pods,
  wellKnownNamespaces,
} from '#server/kube';
import { createNodeHealth, readyCondition, silentConditions } from './node-health.ts';
import { nextTaints } from './node-taints.ts';
import { createPodEviction } from './pod-eviction.ts';

/** Milliseconds between two looks for silent nodes. */
const MONITOR_PERIOD = 5000;
const WORKERS = 2;
const BY_NODE = 'pods-of-node';

const isReady = (node: Node): boolean => readyCondition(node)?.status === 'True';

/** Watches over nodes and evicts from tainted ones. Keys of its own loop are names of nodes. */
export function createNodeLifecycleController(context: ControllerContext): Controller {
  const { client, informers, clock, ids, log } = context;
  const nodeInformer = informers.informer(nodes);
  const podInformer = informers.informer(pods);
  const leaseInformer = informers.informer(leases, { namespace: wellKnownNamespaces.nodeLease });
  ensureIndex(podInformer, BY_NODE, ({ spec }) => (spec.nodeName ? [spec.nodeName] : []));
  const podsOn = (node: string): Pod[] => podInformer.byIndex(BY_NODE, node);
  const recorder = createEventRecorder({ client, component: 'node-controller', clock, ids, log });
  const health = createNodeHealth(clock);
  const eviction = createPodEviction(context, nodeInformer, podInformer, podsOn);
  /** Nodes that were not ready at the last look. */
  const notReady = new Set<string>();
  /** Nodes that are not ready and whose pods were not told yet. */
  const unmarked = new Set<string>();
  /** Nodes that ceased to be ready and were not looked at since. */
  const wasReady = new Set<string>();
  let noneReady = false;
  let timer: Timer | undefined;

  const eventAbout = (node: Node, reason: string, message: string): void => {
    const { name, uid } = node.metadata;
    const metadata = { name, ...(uid ? { uid } : {}) };
    recorder.event({ apiVersion: 'v1', kind: 'Node', metadata }, 'Normal', reason, message);
  };
  const writeSilence = async (node: Node): Promise<Node> => {
    const conditions = silentConditions(node, clock.now());
    if (!conditions) return node;
    return client.update(
      nodes,
      { ...node, status: { ...node.status, conditions } },
      { subresource: 'status' },
    );
  };
  const writeTaints = async (node: Node): Promise<void> => {
    const taints = nextTaints(node, !noneReady, clock.now());
    if (!taints) return;
    const { name, uid, resourceVersion } = node.metadata;
    // The whole list goes out: nobody else's change of it may be lost.
    await client.patch(
      nodes,
      { name },
      { type: 'merge', body: { metadata: { uid, resourceVersion }, spec: { taints } } },
    );
  };
  /** Models MarkPodsNotReady: the kubelet cannot say it any more. What it says afterwards all the same stands. */
  const markPods = async (node: string): Promise<void> => {
    for (const pod of podsOn(node)) {
      const ready = podCondition(pod, 'Ready');
      if (!ready || ready.status === 'False') continue;
      const { namespace, name, uid } = pod.metadata;
      const condition = { type: 'Ready', status: 'False', lastTransitionTime: formatTime(clock.now()) };
      try {
        const body = { metadata: { uid }, status: { conditions: [condition] } };
        await client.patch(pods, { namespace, name }, { type: 'strategic', body }, { subresource: 'status' });
        recorder.event(pod, 'Warning', 'NodeNotReady', 'Node is not ready');
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
    }
  };
  const reconcile = async (name: string): Promise<void> => {
    const cached = nodeInformer.get(name);
    if (!cached) {
      notReady.delete(name);
      unmarked.delete(name);
      return;
    }
    const node = health.isSilent(cached) ? await writeSilence(cached) : cached;
    await writeTaints(node);
    const ready = readyCondition(node);
    if (!ready || ready.status === 'True') {
      notReady.delete(name);
      unmarked.delete(name);
      return;
    }
    if (!notReady.has(name)) {
      // A node that comes into being not ready is no news.
      if (isReady(cached) || wasReady.delete(name))
        eventAbout(node, 'NodeNotReady', `Node ${name} status is now: NodeNotReady`);
      notReady.add(name);
      unmarked.add(name);
    }
    if (!unmarked.delete(name)) return;
    try {
      await markPods(name);
    } catch (error) {
      unmarked.add(name);
      throw error;
    }
  };
  const judgeAll = (queue: WorkQueue): void => {
    const all = nodeInformer.list();
    const now = all.length > 0 && !all.some(isReady);
    if (now === noneReady) return;
    // Whoever comes back finds the others as unheard of as itself.
    if (noneReady) health.excuseAll();
    noneReady = now;
    for (const node of all) queue.add(node.metadata.name);
  };
  const monitor = (queue: WorkQueue): void => {
    let last = clock.now();
    const look = (): void => {
      const late = clock.now() - last - MONITOR_PERIOD;
      if (late > MONITOR_PERIOD) health.excuse(late);
      last = clock.now();
      for (const node of nodeInformer.list()) {
        if (health.isSilent(node) && readyCondition(node)?.status !== 'Unknown')
          queue.add(node.metadata.name);
      }
      timer = clock.after(MONITOR_PERIOD, look);
    };
    timer = clock.after(MONITOR_PERIOD, look);
  };
  const watch = (on: Arrange, queue: WorkQueue): void => {
    on(nodeInformer, {
      added(node) {
        const { name } = node.metadata;
        health.sawStatus(node);
        const lease = leaseInformer.get(`${wellKnownNamespaces.nodeLease}/${name}`);
        if (lease) health.sawLease(lease);
        eventAbout(node, 'RegisteredNode', `Node ${name} event: Registered Node ${name} in Controller`);
        queue.add(name);
        if (nodeInformer.hasSynced) judgeAll(queue);
      },
      updated(old, node) {
        health.sawStatus(node);
        if (isReady(old) && !isReady(node)) wasReady.add(node.metadata.name);
        if (isReady(node)) wasReady.delete(node.metadata.name);
        queue.add(node.metadata.name);
        judgeAll(queue);
      },
      deleted(node) {
        const { name } = node.metadata;
        health.forget(name);
        wasReady.delete(name);
        eventAbout(node, 'RemovingNode', `Node ${name} event: Removing Node ${name} from Controller`);
        queue.add(name);
        judgeAll(queue);
      },
    });
    on(leaseInformer, {
      added: (lease) => health.sawLease(lease),
      updated: (_, lease) => health.sawLease(lease),
    });
    on(podInformer, {
      added({ spec }) {
        // Reported ready by a node that has fallen silent since.
        if (!spec.nodeName || !notReady.has(spec.nodeName)) return;
        unmarked.add(spec.nodeName);
        queue.add(spec.nodeName);
      },
    });
  };
  const loop = createLoop({
    name: 'node-lifecycle',
    context,
    workers: WORKERS,
    watch,
    reconcile,
    onReady(queue) {
      judgeAll(queue);
      monitor(queue);
    },
    onStop() {
      timer?.cancel();
      recorder.stop();
    },
  });
  return {
    start() {
      loop.start();
      eviction.start();
    },
    async stop() {
      await Promise.all([loop.stop(), eviction.stop()]);
    },
  };
}
