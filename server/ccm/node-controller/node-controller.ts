import { errorMessage, silentLogger } from '#server/base';
import { type EventRecorder, type Informer, type Reconciler, startReconciler } from '#server/client';
import { type Node, nodes } from '#server/kube';
import { retryStaleWrites } from '../conflict-retry.ts';
import type { InstanceMetadata } from '../contract.ts';
import type { CloudController, CloudControllerContext } from '../controller.ts';
import { createControllerQueue } from '../controller-queue.ts';
import { addressesChanged, addressPatch, preferProvidedIp, withHostname } from './addresses.ts';
import { NodeSyncError } from './errors.ts';
import { initialisation, isUninitialized, type NodeModifier } from './initialisation.ts';
import { staleLabels } from './label-reconciliation.ts';
import { instanceAddresses, instanceMetadata } from './metadata.ts';

export interface CloudNodeControllerOptions {
  /** Milliseconds between two looks at all addresses. */
  statusUpdateFrequency: number;
  /** How many nodes are initialised at once. */
  concurrentSyncs: number;
  /** How many nodes' addresses are looked at at once. */
  concurrentStatusUpdates: number;
}

const COMPONENT = 'cloud-node-controller';
/** The one write of the initialisation, when others write the same node: tries, and milliseconds between them. */
const UPDATE_STEPS = 20;
const UPDATE_DELAY = 50;
const LABEL_STEPS = 5;
const LABEL_DELAY = 100;

/** What the parts of the controller share while it runs. */
interface Running extends CloudControllerContext {
  readonly informer: Informer<Node>;
  readonly recorderOfNodes: EventRecorder;
  readonly signal: AbortSignal;
  /** What to call when a node changes whose write was refused as stale, by name. */
  readonly stale: Map<string, () => void>;
}

/**
 * Starts initialising nodes that carry the taint `node.cloudprovider.kubernetes.io/uninitialized`: one PUT brings the
 * provider ID and labels and takes the taint away, a PATCH of the status brings the cloud's addresses, an event says
 * `Synced`. What fails is tried again, forever. The addresses of initialised nodes are looked at from time to time, their
 * older topology labels are copied to the present ones. Returns undefined, with a warning in the log, when the cloud
 * knows no instances. Models k8s.io/cloud-provider/controllers/node/node_controller.go.
 */
export function startCloudNodeController(
  context: CloudControllerContext,
  options: CloudNodeControllerOptions,
): CloudController | undefined {
  const { clock, cloud, log, informers } = context;
  if (!cloud.instances && !cloud.instancesV2) {
    log.warning(
      'core.go:53',
      'failed to start cloud node controller: cloud provider does not support instances',
    );
    return undefined;
  }
  const stopping = new AbortController();
  const informer = informers.informer(nodes);
  const queue = createControllerQueue({ clock });
  const recorderOfNodes = context.recorder(COMPONENT);
  const stale = new Map<string, () => void>();
  const running: Running = { ...context, informer, recorderOfNodes, signal: stopping.signal, stale };
  log.info('node_controller.go:176', 'Sending events to api server.');
  log.info('node_controller.go:185', 'Waiting for informer caches to sync');
  const handlers = informer.on({
    added: (node) => queue.add(node.metadata.name),
    updated(_, node) {
      const { name } = node.metadata;
      queue.add(name);
      stale.get(name)?.();
    },
  });
  let reconciler: Reconciler | undefined;
  const run = async (): Promise<void> => {
    await informer.synced;
    if (stopping.signal.aborted) return;
    reconciler = startReconciler({
      name: COMPONENT,
      queue,
      workers: Math.max(0, options.concurrentSyncs),
      reconcile: (name) => syncNode(running, name),
      // The queue's errors are logged below, in upstream's words.
      log: silentLogger,
      onError: (name, error) => logFailure(running, name, error),
    });
    await watchAddresses(running, options);
  };
  const finished = run().catch((error: unknown) => {
    if (!stopping.signal.aborted)
      log.error('node_controller.go:187', `failed to wait for caches to sync: ${errorMessage(error)}`);
  });
  return {
    async stop() {
      stopping.abort();
      handlers.stop();
      queue.shutDown();
      recorderOfNodes.stop();
      await reconciler?.stop();
      if (informer.hasSynced) await finished;
    },
  };
}

function logFailure({ log, signal }: Running, name: string, error: unknown): void {
  if (signal.aborted) return;
  const text = `error syncing '${name}': ${errorMessage(error)}, requeuing`;
  log.info('node_controller.go:233', text);
  log.errorS('node_controller.go:244', text, 'Unhandled Error', { logger: 'UnhandledError' });
}

async function syncNode(running: Running, name: string): Promise<void> {
  const { informer, log, recorderOfNodes, clock, metrics } = running;
  const node = informer.get(name);
  if (!node) return;
  if (!isUninitialized(node)) {
    await reconcileLabels(running, node);
    return;
  }
  log.info('node_controller.go:429', `Initializing node ${name} with cloud provider`);
  const metadata = await askCloud(running, node);
  if (!metadata) {
    log.info('node_controller.go:439', `Skip sync node ${name} because cloud provided nil metadata`);
    return;
  }
  checkProvidedIp(node, metadata);
  await initialise(running, name, metadata, initialisation(node, metadata, log));
  recorderOfNodes.event(node, 'Normal', 'Synced', 'Node synced successfully');
  metrics.initialNodeSync(age(node, clock.now()));
}

async function askCloud({ cloud, log }: Running, node: Node): Promise<InstanceMetadata | undefined> {
  try {
    return await instanceMetadata(cloud, node, log);
  } catch (error) {
    const { name } = node.metadata;
    throw new NodeSyncError(`failed to get instance metadata for node ${name}: ${errorMessage(error)}`);
  }
}

/** An address the kubelet insists on must be one of the cloud's before the taint goes. */
function checkProvidedIp(node: Node, metadata: InstanceMetadata): void {
  try {
    preferProvidedIp(node, metadata.nodeAddresses);
  } catch (error) {
    const why = `provided node ip for node "${node.metadata.name}" is not valid: ${errorMessage(error)}`;
    throw new NodeSyncError(`failed to get node modifiers from cloud provider: ${why}`);
  }
}

async function initialise(
  running: Running,
  name: string,
  metadata: InstanceMetadata,
  modify: NodeModifier,
): Promise<void> {
  const { client, informer, log, metrics, clock, stale } = running;
  let tried: string | undefined;
  // A newer node is reason enough to try again: who is written by many at its birth would lose a lot of time otherwise.
  const sooner = (wake: () => void): void => {
    if (informer.get(name)?.metadata.resourceVersion === tried) stale.set(name, wake);
    else wake();
  };
  const attempt = async (): Promise<void> => {
    const current = informer.get(name);
    if (!current) throw new NodeSyncError(`node "${name}" not found`);
    tried = current.metadata.resourceVersion;
    const initialised = modify(current);
    await client.update(nodes, initialised);
    metrics.taintRemoved(age(initialised, clock.now()));
    await writeAddresses(running, initialised, metadata.nodeAddresses);
    log.info('node_controller.go:474', `Successfully initialized node ${name} with cloud provider`);
  };
  try {
    await retryStaleWrites({ ...running, steps: UPDATE_STEPS, delay: UPDATE_DELAY, sooner }, attempt);
  } finally {
    stale.delete(name);
  }
}

/** Brings the cloud's addresses into the status of an initialised node. Never fails: the next look tries again. */
async function writeAddresses(
  { client, log }: Running,
  node: Node,
  fromCloud: InstanceMetadata['nodeAddresses'],
): Promise<void> {
  const { name } = node.metadata;
  if (isUninitialized(node)) return;
  if (fromCloud.length === 0) {
    const text = `Skipping node address update for node "${name}" since cloud provider did not return any`;
    if (log.enabled(5)) log.info('node_controller.go:369', text);
    return;
  }
  let addresses: InstanceMetadata['nodeAddresses'];
  try {
    addresses = preferProvidedIp(node, withHostname(node, fromCloud));
  } catch (error) {
    log.error(
      'node_controller.go:393',
      `Failed to update node addresses for node "${name}": ${errorMessage(error)}`,
    );
    return;
  }
  const before = node.status?.addresses ?? [];
  if (!addressesChanged(before, addresses)) return;
  const body = addressPatch(before, addresses);
  try {
    await client.patch(nodes, { name }, { type: 'strategic', body }, { subresource: 'status' });
  } catch (error) {
    const patch = JSON.stringify(JSON.stringify(body));
    const why = `failed to patch status ${patch} for node "${name}": ${errorMessage(error)}`;
    log.error('node_controller.go:403', `Error patching node with cloud ip addresses = [${why}]`);
  }
}

/** Looks at the addresses of all nodes at once and then every `statusUpdateFrequency`, until stopped. */
async function watchAddresses(running: Running, options: CloudNodeControllerOptions): Promise<void> {
  const { clock, signal, informer, log } = running;
  for (;;) {
    const begin = clock.now();
    const all = informer.list();
    const rest = all.values();
    const work = async (): Promise<void> => {
      for (const node of rest) if (!signal.aborted) await refreshAddresses(running, node);
    };
    const workers = Math.max(0, Math.min(options.concurrentStatusUpdates, all.length));
    await Promise.all(Array.from({ length: workers }, work));
    if (signal.aborted) return;
    if (log.enabled(2)) {
      log.info('node_controller.go:271', `Update ${all.length} nodes status took ${clock.now() - begin}ms.`);
    }
    await clock.sleep(options.statusUpdateFrequency, signal);
  }
}

async function refreshAddresses(running: Running, node: Node): Promise<void> {
  const { cloud, log } = running;
  if (isUninitialized(node)) {
    if (log.enabled(5)) {
      log.info(
        'node_controller.go:279',
        `This node ${node.metadata.name} is still tainted. Will not process.`,
      );
    }
    return;
  }
  try {
    await writeAddresses(running, node, (await instanceAddresses(cloud, node)) ?? []);
  } catch (error) {
    const text = `Error getting instance metadata for node addresses: ${errorMessage(error)}`;
    log.error('node_controller.go:285', text);
  }
}

/** Copies older topology labels to the present ones where these differ. */
async function reconcileLabels(running: Running, node: Node): Promise<void> {
  const { client, log } = running;
  const { name } = node.metadata;
  const stale = staleLabels(node);
  if (Object.keys(stale).length === 0) return;
  try {
    await retryStaleWrites({ ...running, steps: LABEL_STEPS, delay: LABEL_DELAY }, () =>
      client.patch(nodes, { name }, { type: 'strategic', body: { metadata: { labels: stale } } }),
    );
  } catch (error) {
    const shown = Object.entries(stale).map(([key, value]) => `${key}:${value}`);
    const text = `unable to update labels map[${shown.sort().join(' ')}] for Node "${name}": ${errorMessage(error)}`;
    log.errorS('labels.go:47', text, 'Unhandled Error', { logger: 'UnhandledError' });
    throw new NodeSyncError(`failed update labels for node ${name}`);
  }
}

/** Seconds since the node was created. */
function age(node: Node, now: number): number {
  const created = Date.parse(node.metadata.creationTimestamp ?? '');
  return Number.isNaN(created) ? 0 : Math.max(0, (now - created) / 1000);
}
