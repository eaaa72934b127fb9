import { type Clock, errorMessage, type Ids, type Logger, type Timer } from '#server/base';
import type { Client, EventRecorder, Informer } from '#server/client';
import {
  formatMicroTime,
  isAlreadyExists,
  isConflict,
  isNotFound,
  type Lease,
  leases,
  type Node,
  nodes,
} from '#server/kube';
import {
  ATTACH_DETACH,
  defaultLabels,
  initialNode,
  type NodeFacts,
  PROVIDED_NODE_IP,
  statusDiffers,
  withStatus,
} from './node-object.ts';
import { rest, untilDone } from './retry.ts';

/** nodeStatusReportFrequency */
const REPORT_INTERVAL = 5 * 60_000;
const LEASE_NAMESPACE = 'kube-node-lease';
const LEASE_SECONDS = 40;
const LEASE_RENEWAL = 10_000;
/** A change is reported at once, but so many within a second are enough: somebody may be writing the opposite. */
const MAX_SYNCS_A_SECOND = 20;
const UPDATE_TRIES = 5;
/** What a change of a condition is told as. */
const CONDITION_EVENTS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  MemoryPressure: { False: 'NodeHasSufficientMemory', True: 'NodeHasInsufficientMemory' },
  DiskPressure: { False: 'NodeHasNoDiskPressure', True: 'NodeHasDiskPressure' },
  PIDPressure: { False: 'NodeHasSufficientPID', True: 'NodeHasInsufficientPID' },
  Ready: { False: 'NodeNotReady', True: 'NodeReady' },
};

export interface NodeAgent {
  readonly registered: Promise<void>;
  start(): void;
  /** Something the status is made of changed. */
  changed(): void;
  stop(): Promise<void>;
}

export interface NodeAgentOptions {
  readonly nodeName: string;
  readonly client: Client;
  readonly node: Informer<Node>;
  readonly recorder: EventRecorder;
  readonly facts: () => NodeFacts;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Logger;
}

/**
 * Keeps the Node object and its Lease: creates or reconciles the Node once, then reports its status on every change and
 * every five minutes. A Node deleted meanwhile is not created again. Models pkg/kubelet/kubelet_node_status.go and
 * component-helpers/apimachinery/lease.
 */
export function createNodeAgent(options: NodeAgentOptions): NodeAgent {
  const { nodeName, client, clock, ids, log } = options;
  const stopping = new AbortController();
  let markRegistered: () => void = () => undefined;
  const registered = new Promise<void>((resolve) => {
    markRegistered = resolve;
  });
  let lastReport = 0;
  let reportTimer: Timer | undefined;
  let syncing: Promise<void> | undefined;
  let dirty = false;
  let isRegistered = false;
  let known: Node | undefined;

  const fail = (what: string) => (error: unknown) =>
    log.debug({ node: nodeName, err: errorMessage(error) }, what);

  const tryRegister = async (): Promise<void> => {
    const wanted = initialNode(nodeName, options.facts());
    if (!options.facts().flags.registerNode) return;
    try {
      known = await client.create(nodes, wanted);
      lastReport = clock.now();
      return;
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
    const existing = await client.get(nodes, { name: nodeName });
    known = await reconcileExisting(existing);
  };
  const reconcileExisting = async (existing: Node): Promise<Node> => {
    const facts = options.facts();
    const labels = defaultLabels(facts.hostname, facts.host.architecture);
    const stale = Object.entries(labels).filter(([key, value]) => existing.metadata.labels?.[key] !== value);
    const annotated = existing.metadata.annotations?.[ATTACH_DETACH] === 'true';
    if (stale.length === 0 && annotated) return existing;
    return client.patch(
      nodes,
      { name: nodeName },
      {
        type: 'strategic',
        body: {
          metadata: {
            ...(stale.length > 0 ? { labels: Object.fromEntries(stale) } : {}),
            ...(annotated ? {} : { annotations: { [ATTACH_DETACH]: 'true' } }),
          },
        },
      },
    );
  };
  const report = async (force: boolean): Promise<void> => {
    const current = newer(options.node.get(nodeName), known) ?? (await client.get(nodes, { name: nodeName }));
    const wanted = withStatus(current, options.facts());
    if (!force && !statusDiffers(current, wanted)) return;
    const rebooted =
      current.status?.nodeInfo?.bootID && current.status.nodeInfo.bootID !== wanted.status?.nodeInfo?.bootID;
    if (rebooted) {
      options.recorder.event(
        nodeReference(nodeName, options.nodeName),
        'Warning',
        'Rebooted',
        `Node ${nodeName} has been rebooted, boot id: ${wanted.status?.nodeInfo?.bootID}`,
      );
    }
    const annotation = wanted.metadata.annotations?.[PROVIDED_NODE_IP];
    if (annotation !== undefined && current.metadata.annotations?.[PROVIDED_NODE_IP] !== annotation) {
      await client.patch(
        nodes,
        { name: nodeName },
        { type: 'strategic', body: { metadata: { annotations: { [PROVIDED_NODE_IP]: annotation } } } },
      );
    }
    known = await client.patch(nodes, { name: nodeName }, statusPatch(current, wanted), {
      subresource: 'status',
    });
    lastReport = clock.now();
    announce(wanted);
  };
  const announced = new Map<string, string>();
  const announce = (node: Node): void => {
    for (const { type, status } of node.status?.conditions ?? []) {
      const reason = CONDITION_EVENTS[type]?.[status];
      if (reason === undefined || announced.get(type) === reason) continue;
      announced.set(type, reason);
      options.recorder.event(
        nodeReference(nodeName, nodeName),
        'Normal',
        reason,
        `Node ${nodeName} status is now: ${reason}`,
      );
    }
  };
  let window = { since: 0, count: 0 };
  const pace = async (): Promise<void> => {
    if (clock.now() - window.since >= 1_000) window = { since: clock.now(), count: 0 };
    window.count += 1;
    if (window.count > MAX_SYNCS_A_SECOND) await rest(clock, 1_000, stopping.signal);
    else await new Promise<void>((resolve) => setImmediate(resolve));
  };
  const sync = async (): Promise<void> => {
    while (dirty && !stopping.signal.aborted) {
      dirty = false;
      const due = clock.now() >= lastReport + REPORT_INTERVAL;
      for (let tries = 0; tries < UPDATE_TRIES; tries += 1) {
        try {
          await report(due);
          break;
        } catch (error) {
          fail('node status could not be reported')(error);
          if (isNotFound(error) || stopping.signal.aborted) break;
          known = undefined;
          await rest(clock, isConflict(error) ? 0 : 1_000 * (tries + 1), stopping.signal);
        }
      }
      armReport();
      if (dirty) await pace();
    }
  };
  const changed = (): void => {
    if (!isRegistered || stopping.signal.aborted) return;
    dirty = true;
    syncing ??= sync().finally(() => {
      syncing = undefined;
      if (dirty) changed();
    });
  };
  const armReport = (): void => {
    reportTimer?.cancel();
    // Spread, so that a thousand nodes do not report in the same moment.
    const wait = Math.max(1_000, lastReport + REPORT_INTERVAL - clock.now()) + ids.random() * 5_000;
    reportTimer = clock.after(wait, changed);
  };
  const lease = createLeaseKeeper({
    ...options,
    signal: stopping.signal,
    nodeUid: () => newer(options.node.get(nodeName), known)?.metadata.uid,
  });

  return {
    registered,
    start() {
      void untilDone(clock, stopping.signal, tryRegister, fail('node could not be registered')).then(
        (done) => {
          if (!done) return;
          isRegistered = true;
          markRegistered();
          options.recorder.event(
            nodeReference(nodeName, nodeName),
            'Normal',
            'Starting',
            'Starting kubelet.',
          );
          if (known) announce(known);
          changed();
          lease.start();
          options.node.on({
            added: changed,
            updated: (_before, now) =>
              statusDiffers(now, withStatus(now, options.facts())) ? changed() : undefined,
          });
        },
      );
    },
    changed,
    async stop() {
      stopping.abort();
      reportTimer?.cancel();
      lease.stop();
      await syncing;
    },
  };
}

function newer(a: Node | undefined, b: Node | undefined): Node | undefined {
  if (!a || !b || a.metadata.uid !== b.metadata.uid) return a ?? b;
  return Number(a.metadata.resourceVersion ?? 0) >= Number(b.metadata.resourceVersion ?? 0) ? a : b;
}

/** Events about a node carry its name as uid, as the kubelet writes them. */
export function nodeReference(name: string, uid: string): Pick<Node, 'apiVersion' | 'kind' | 'metadata'> {
  return { apiVersion: 'v1', kind: 'Node', metadata: { name, uid } };
}

function statusPatch(current: Node, wanted: Node): { type: 'strategic'; body: object } {
  const status = wanted.status ?? {};
  const sameAddresses =
    JSON.stringify(current.status?.addresses ?? []) === JSON.stringify(status.addresses ?? []);
  const { addresses, ...others } = status;
  return {
    type: 'strategic',
    body: {
      metadata: { uid: current.metadata.uid },
      // Addresses are replaced as a list: merging by type would keep what is gone.
      status: {
        ...others,
        ...(sameAddresses ? {} : { addresses: [...(addresses ?? []), { $patch: 'replace' }] }),
      },
    },
  };
}

function createLeaseKeeper(
  options: NodeAgentOptions & { signal: AbortSignal; nodeUid: () => string | undefined },
): { start(): void; stop(): void } {
  const { nodeName, client, clock, ids, log, signal } = options;
  let timer: Timer | undefined;
  let latest: Lease | undefined;
  const ref = { namespace: LEASE_NAMESPACE, name: nodeName };
  const owner = (): Lease['metadata']['ownerReferences'] => {
    const uid = options.nodeUid();
    return uid === undefined ? undefined : [{ apiVersion: 'v1', kind: 'Node', name: nodeName, uid }];
  };
  const renew = async (): Promise<void> => {
    const owners = owner();
    const spec = {
      holderIdentity: nodeName,
      leaseDurationSeconds: LEASE_SECONDS,
      renewTime: formatMicroTime(clock.now()),
    };
    const metadata = { ...ref, ...(owners ? { ownerReferences: owners } : {}) };
    if (latest) {
      const owned = (latest.metadata.ownerReferences?.length ?? 0) > 0 || !owners;
      latest = await client.update(leases, {
        ...latest,
        metadata: owned ? latest.metadata : { ...latest.metadata, ownerReferences: owners ?? [] },
        spec: { ...latest.spec, ...spec },
      });
      return;
    }
    try {
      latest = await client.create(leases, { metadata, spec });
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      const existing = await client.get(leases, ref);
      latest = await client.update(leases, { ...existing, spec: { ...existing.spec, ...spec } });
    }
  };
  const tick = async (): Promise<void> => {
    let wait = LEASE_RENEWAL;
    try {
      await renew();
    } catch (error) {
      if (signal.aborted) return;
      // Stale, gone or unreachable: what the server has is looked at anew.
      latest = undefined;
      wait = isConflict(error) || isNotFound(error) ? 200 : 1_000 + ids.random() * 1_000;
      log.debug({ node: nodeName, err: errorMessage(error) }, 'node lease could not be renewed');
    }
    // The lease manager's jitter: 4 %.
    if (!signal.aborted) timer = clock.after(wait * (1 + ids.random() * 0.04), () => void tick());
  };
  return {
    start: () => void tick(),
    stop: () => timer?.cancel(),
  };
}
