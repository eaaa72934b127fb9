import type { Clock, Ids, Logger } from '#server/base';
import {
  type Client,
  createHttpClient,
  type HttpClient,
  parseKubeconfig,
  type RestConfig,
} from '#server/client';
import { type Cluster, clusters } from '#server/cluster-api';
import {
  isNotFound,
  type Namespace,
  type Node,
  namespaces,
  nodes,
  type Secret,
  secrets,
  taints,
} from '#server/kube';
import { createMissing } from './apply.ts';
import { birthManifests, CLUSTER_ANNOTATION, type TenantNames, USER_LABEL } from './manifests.ts';

/** A user's cluster and where it lives. */
export type Tenant = TenantNames;

export interface Tenants {
  /** The user's tenant; everything that is missing of it is applied. `user` is a slug (`solo`, `alice`). */
  ensure(user: string): Promise<Tenant>;
  /** Resolves once the tenant's kubeconfig is there and a Node is initialised: Ready and without the cloud's taint. */
  ready(tenant: Tenant, signal: AbortSignal): Promise<void>;
  /** The admin's way into the tenant's API: what its kubeconfig Secret says. Undefined before it is there. */
  credentials(tenant: Tenant): Promise<RestConfig | undefined>;
  /** An admin client for the tenant; the caller closes it. Undefined before its Secret is there. */
  client(tenant: Tenant): Promise<HttpClient | undefined>;
}

export interface TenantsOptions {
  /** Admin of the management cluster. */
  management: Client;
  clock: Clock;
  ids: Ids;
  log: Logger;
}

/** Length of the random part of a user's namespace and of a cluster's name. */
const ID_LENGTH = 5;
const USER_AGENT = { userAgent: 'kube-classroom/0.1' };
/** A watch that broke is asked for again after this long, milliseconds: each time twice as long, up to the second. */
const RETRY_DELAY = 25;
const MAX_RETRY_DELAY = 500;

export function createTenants({ management, clock, ids, log }: TenantsOptions): Tenants {
  const findNamespace = async (user: string): Promise<Namespace | undefined> => {
    const found = await management.list(namespaces, { labelSelector: `${USER_LABEL}=${user}` });
    return found.items.find((item) => item.metadata.deletionTimestamp === undefined);
  };
  const secretOf = async ({ namespace, cluster }: Tenant): Promise<Secret | undefined> => {
    try {
      return await management.get(secrets, { namespace, name: `${cluster}-kubeconfig` });
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  };
  const credentials = async (tenant: Tenant): Promise<RestConfig | undefined> =>
    readSecret(await secretOf(tenant));
  const connect = (config: RestConfig): HttpClient => createHttpClient(config, USER_AGENT);

  return {
    async ensure(user) {
      const existing = await findNamespace(user);
      const tenant: Tenant = {
        user,
        namespace: existing?.metadata.name ?? `handson-${user}-${ids.suffix(ID_LENGTH)}`,
        cluster: existing?.metadata.annotations?.[CLUSTER_ANNOTATION] ?? `tenant-${ids.suffix(ID_LENGTH)}`,
      };
      await createMissing(management, birthManifests(tenant));
      return tenant;
    },

    async ready(tenant, signal) {
      const config = await firstSeen<Secret, RestConfig>({
        watch: (onObject, onEnd) =>
          management.watch(
            secrets,
            { namespace: tenant.namespace, fieldSelector: `metadata.name=${tenant.cluster}-kubeconfig` },
            ({ type, object }) => onObject(type === 'DELETED' || type === 'BOOKMARK' ? undefined : object),
            onEnd,
          ),
        accept: readSecret,
        clock,
        signal,
        log,
      });
      // Nobody answers at a machine that boots; Cluster API says when somebody does.
      await firstSeen<Cluster, Cluster>({
        watch: (onObject, onEnd) =>
          management.watch(
            clusters,
            { namespace: tenant.namespace, fieldSelector: `metadata.name=${tenant.cluster}` },
            ({ type, object }) => onObject(type === 'DELETED' || type === 'BOOKMARK' ? undefined : object),
            onEnd,
          ),
        accept: (cluster) => (cluster?.status?.initialization?.controlPlaneInitialized ? cluster : undefined),
        clock,
        signal,
        log,
      });
      const client = connect(config);
      try {
        await firstSeen<Node, Node>({
          watch: (onObject, onEnd) =>
            client.watch(
              nodes,
              {},
              ({ type, object }) => onObject(type === 'DELETED' || type === 'BOOKMARK' ? undefined : object),
              onEnd,
            ),
          accept: (node) => (node && isInitialised(node) ? node : undefined),
          clock,
          signal,
          log,
        });
      } finally {
        client.close();
      }
    },

    credentials,

    async client(tenant) {
      const config = await credentials(tenant);
      return config && connect(config);
    },
  };
}

function readSecret(secret: Secret | undefined): RestConfig | undefined {
  const value = secret?.data?.value;
  return value === undefined ? undefined : parseKubeconfig(Buffer.from(value, 'base64').toString());
}

function isInitialised(node: Node): boolean {
  const tainted = node.spec.taints?.some((taint) => taint.key === taints.uninitialized) ?? false;
  const ready =
    node.status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True') ??
    false;
  const addressed = node.status?.addresses?.some((address) => address.type === 'InternalIP') ?? false;
  return !tainted && ready && addressed;
}

/** Watches until `accept` takes an object; a watch that ends is asked for again. Rejects when `signal` aborts. */
function firstSeen<T, R>(options: {
  watch: (onObject: (object: T | undefined) => void, onEnd: (error?: unknown) => void) => { stop(): void };
  accept: (object: T | undefined) => R | undefined;
  clock: Clock;
  signal: AbortSignal;
  log: Logger;
}): Promise<R> {
  return new Promise((resolve, reject) => {
    let running: { stop(): void } | undefined;
    let retry: { cancel(): void } | undefined;
    let settled = false;
    let delay = RETRY_DELAY;
    const settle = (finish: () => void): void => {
      if (settled) return;
      settled = true;
      running?.stop();
      retry?.cancel();
      options.signal.removeEventListener('abort', onAbort);
      finish();
    };
    const onAbort = (): void => settle(() => reject(options.signal.reason as Error));
    const begin = (): void => {
      if (settled) return;
      running = options.watch(
        (object) => {
          const accepted = options.accept(object);
          if (accepted !== undefined) settle(() => resolve(accepted));
        },
        (error) => {
          if (settled) return;
          if (error !== undefined) options.log.debug({ err: error }, 'a watch ended and is begun again');
          retry = options.clock.after(delay, begin);
          delay = Math.min(MAX_RETRY_DELAY, delay * 2);
        },
      );
    };
    if (options.signal.aborted) return onAbort();
    options.signal.addEventListener('abort', onAbort, { once: true });
    begin();
  });
}
