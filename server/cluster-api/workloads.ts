import { type Clock, errorMessage, type Logger } from '#server/base';
import {
  type Client,
  ConnectionError,
  createInformerFactory,
  type Dialer,
  type Informer,
  type InformerFactory,
  parseKubeconfig,
} from '#server/client';
import { type Node, nodes, type Pod, pods, secrets, splitKey } from '#server/kube';
import { find } from './changes.ts';
import { decode } from './cluster-secrets.ts';

/** What is watched in a workload cluster. */
export interface WorkloadCaches {
  readonly nodes: Informer<Node>;
  /** Static pods of the control plane. */
  readonly controlPlanePods: Informer<Pod>;
}

/** Workload clusters, reached through their kubeconfig Secrets. Models controllers/clustercache. */
export interface Workloads {
  /** A client, or undefined while there is no kubeconfig. `key` is `<namespace>/<name>` of the Cluster. */
  client(key: string): Promise<Client | undefined>;
  /** The caches of a cluster that is watched and has been listed once. */
  caches(key: string): WorkloadCaches | undefined;
  /** Begins to watch a cluster that is known to answer; resolves when it was listed once, or after trying in vain. */
  watch(key: string): Promise<void>;
  /** Did the last request to it get an answer? Undefined: none was made yet. */
  reachable(key: string): boolean | undefined;
  /** Runs one request and remembers whether the cluster answered. */
  attempt<R>(key: string, request: (client: Client) => Promise<R>): Promise<R>;
  /** Its kubeconfig is another now: whoever asks next gets a new client, and is told to ask. */
  renew(key: string): void;
  /** The cluster is gone: stops watching it. */
  forget(key: string): void;
  stop(): void;
}

const USER_AGENT = 'cluster-api-controller-manager/v1.14.0 (linux/amd64) cluster.x-k8s.io';
const CONTROL_PLANE_PODS = { namespace: 'kube-system', labelSelector: 'tier=control-plane' };

interface Watched {
  informers: InformerFactory;
  caches: WorkloadCaches;
  synced: Promise<void>;
  ready: boolean;
}

/** `onChange` is called with the cluster's key when a node or a control plane pod of it changed. */
export function createWorkloads(options: {
  client: Client;
  dialer: Dialer;
  clock: Clock;
  log: Logger;
  onChange(key: string): void;
}): Workloads {
  const { dialer, clock, log } = options;
  const clients = new Map<string, Client>();
  const watched = new Map<string, Watched>();
  const answers = new Map<string, boolean>();

  const client = async (key: string): Promise<Client | undefined> => {
    const known = clients.get(key);
    if (known) return known;
    const { namespace, name } = splitKey(key);
    const secret = await find(options.client, secrets, namespace, `${name}-kubeconfig`);
    if (!secret) return undefined;
    const config = parseKubeconfig(decode(secret.data?.['value']));
    const dialled = dialer.dial(config, {
      userAgent: USER_AGENT,
      fieldManager: 'cluster-api-controller-manager',
    });
    clients.set(key, dialled);
    return dialled;
  };

  const open = (key: string, workload: Client): Watched => {
    const informers = createInformerFactory({ client: workload, clock, log });
    const caches: WorkloadCaches = {
      nodes: informers.informer(nodes),
      controlPlanePods: informers.informer(pods, CONTROL_PLANE_PODS),
    };
    const changed = (): void => options.onChange(key);
    caches.nodes.on({ added: changed, updated: changed, deleted: changed });
    caches.controlPlanePods.on({ added: changed, updated: changed, deleted: changed });
    informers.start();
    const entry: Watched = { informers, caches, synced: informers.synced(), ready: false };
    entry.synced.then(
      () => {
        entry.ready = true;
        answers.set(key, true);
        changed();
      },
      (error: unknown) =>
        log.debug({ cluster: key, error: errorMessage(error) }, 'a workload cluster is no longer watched'),
    );
    return entry;
  };

  const forget = (key: string): void => {
    watched.get(key)?.informers.stop();
    watched.delete(key);
    clients.delete(key);
    answers.delete(key);
  };

  return {
    client,
    caches(key) {
      const entry = watched.get(key);
      return entry?.ready ? entry.caches : undefined;
    },
    async watch(key) {
      if (watched.has(key)) return;
      const workload = await client(key);
      if (!workload || watched.has(key)) return;
      watched.set(key, open(key, workload));
    },
    reachable: (key) => answers.get(key),
    async attempt(key, request) {
      const workload = await client(key);
      if (!workload) throw new ConnectionError(`cluster ${key} has no kubeconfig yet`);
      try {
        const result = await request(workload);
        answers.set(key, true);
        return result;
      } catch (error) {
        // A refusal is an answer too; the next try reads the kubeconfig anew, it may have been rotated.
        answers.set(key, !(error instanceof ConnectionError));
        clients.delete(key);
        throw error;
      }
    },
    renew(key) {
      forget(key);
      options.onChange(key);
    },
    forget,
    stop() {
      for (const entry of watched.values()) entry.informers.stop();
      watched.clear();
      clients.clear();
    },
  };
}
