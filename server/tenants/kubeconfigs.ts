import { type Clock, type Ids } from '#server/base';
import { type Client, formatKubeconfig, type RestConfig } from '#server/client';
import {
  clusterRoleBindings,
  failure,
  formatTime,
  isNotFound,
  type KubeObject,
  notFound,
  roleBindings,
  type ServiceAccount,
  serviceAccounts,
  type TokenRequest,
  tooManyRequests,
  type UnstructuredObject,
} from '#server/kube';
import { roleBinding, STUDENT_ROLE } from './manifests.ts';
import type { Tenant, Tenants } from './tenants.ts';

/** A kubeconfig that was handed out and is still good. */
export interface IssuedKubeconfig {
  /** Name of its ServiceAccount: deleting it revokes the token at once. */
  id: string;
  cluster: 'tenant' | 'management';
  created: string;
  /** RFC 3339. */
  expires: string;
}

export interface Kubeconfigs {
  /**
   * A kubeconfig for the user's own tools, with a token of its own, good for 12 hours. `server` replaces the URL (for
   * clients elsewhere). 503 while the cluster is not up, 429 beyond MAX_ISSUED.
   */
  issue(tenant: Tenant, cluster: 'tenant' | 'management', options?: { server?: string }): Promise<string>;
  list(tenant: Tenant): Promise<IssuedKubeconfig[]>;
  /** 404 when there is none of this id. */
  revoke(tenant: Tenant, id: string): Promise<void>;
}

const LIFETIME_SECONDS = 12 * 3600;
/** More than anybody needs at once, few enough that a script in a loop is stopped. */
const MAX_ISSUED = 100;
const LABEL = 'kube-classroom.dev/kubeconfig';
const EXPIRES = 'kube-classroom.dev/expires';
const TENANT_NAMESPACE = 'kube-system';

interface Place {
  cluster: 'tenant' | 'management';
  client: Client;
  namespace: string;
  /** Server URL and CA for the kubeconfig. */
  config: RestConfig;
}

export function createKubeconfigs(options: {
  tenants: Tenants;
  management: Client;
  managementConfig: RestConfig;
  clock: Clock;
  ids: Ids;
}): Kubeconfigs {
  const { tenants, management, managementConfig, clock, ids } = options;

  const withPlace = async <T>(
    tenant: Tenant,
    cluster: Place['cluster'],
    use: (place: Place) => Promise<T>,
  ): Promise<T> => {
    if (cluster === 'management') {
      return use({ cluster, client: management, namespace: tenant.namespace, config: managementConfig });
    }
    const [config, client] = await Promise.all([tenants.credentials(tenant), tenants.client(tenant)]);
    if (!config || !client) {
      client?.close();
      throw failure(
        503,
        'ServiceUnavailable',
        'your cluster is still being made: its kubeconfig Secret is not there yet; ask again in a moment',
      );
    }
    try {
      return await use({ cluster, client, namespace: TENANT_NAMESPACE, config });
    } finally {
      client.close();
    }
  };

  const issued = async ({ client, namespace }: Place): Promise<ServiceAccount[]> => {
    const accounts = await client.list(serviceAccounts, { namespace, labelSelector: LABEL });
    const now = formatTime(clock.now());
    const [live, expired] = [[], []] as [ServiceAccount[], ServiceAccount[]];
    for (const account of accounts.items)
      ((account.metadata.annotations?.[EXPIRES] ?? '') > now ? live : expired).push(account);
    await Promise.all(expired.map((account) => remove({ client, namespace }, account.metadata.name)));
    return live;
  };

  return {
    issue: (tenant, cluster, issueOptions = {}) =>
      withPlace(tenant, cluster, async (place) => {
        const live = await issued(place);
        if (live.length >= MAX_ISSUED) {
          throw tooManyRequests(
            `${MAX_ISSUED} kubeconfigs are in use; revoke some: DELETE /api/kubeconfigs/<id>, listed by GET /api/kubeconfigs`,
            60,
          );
        }
        const name = `kubeconfig-${ids.suffix(8)}`;
        const expires = formatTime(clock.now() + LIFETIME_SECONDS * 1000);
        await place.client.create(serviceAccounts, {
          metadata: {
            name,
            namespace: place.namespace,
            labels: { [LABEL]: cluster },
            annotations: { [EXPIRES]: expires },
          },
        });
        await bind(place, name);
        const answer = await place.client.createSubresource<TokenRequest & KubeObject>(
          serviceAccounts,
          { namespace: place.namespace, name },
          'token',
          tokenRequest(),
        );
        return formatKubeconfig({
          cluster: {
            name: cluster,
            server: issueOptions.server ?? place.config.server,
            ...(place.config.caPem === undefined ? {} : { caPem: place.config.caPem }),
          },
          user: { name: `${tenant.user}-${cluster}`, token: answer.status?.token ?? '' },
          context: { name: cluster, ...(cluster === 'management' ? { namespace: tenant.namespace } : {}) },
        });
      }),

    async list(tenant) {
      const lists = await Promise.all(
        (['tenant', 'management'] as const).map((cluster) =>
          withPlace(tenant, cluster, async (place) =>
            (await issued(place)).map((account) => describe(account, cluster)),
          ),
        ),
      );
      return lists.flat();
    },

    async revoke(tenant, id) {
      for (const cluster of ['tenant', 'management'] as const) {
        const found = await withPlace(tenant, cluster, async (place) => {
          if (!(await issued(place)).some((account) => account.metadata.name === id)) return false;
          await remove(place, id);
          return true;
        });
        if (found) return;
      }
      throw notFound({ group: '', plural: 'kubeconfigs' }, id);
    },
  };
}

function describe(account: ServiceAccount, cluster: Place['cluster']): IssuedKubeconfig {
  return {
    id: account.metadata.name,
    cluster,
    created: account.metadata.creationTimestamp ?? '',
    expires: account.metadata.annotations?.[EXPIRES] ?? '',
  };
}

function tokenRequest(): UnstructuredObject {
  return {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    metadata: { name: '' },
    spec: { audiences: [], expirationSeconds: LIFETIME_SECONDS },
  };
}

async function bind({ cluster, client, namespace }: Place, account: string): Promise<void> {
  if (cluster === 'management') {
    const binding = roleBinding({ name: account, namespace, role: STUDENT_ROLE, account });
    await client.create(roleBindings, {
      ...binding,
      roleRef: binding.roleRef as { apiGroup: string; kind: string; name: string },
    });
    return;
  }
  await client.create(clusterRoleBindings, {
    metadata: { name: account },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [{ kind: 'ServiceAccount', name: account, namespace }],
  });
}

/** Deletes the account and its binding; what is gone already is fine. */
async function remove(
  { client, namespace }: Pick<Place, 'client' | 'namespace'>,
  name: string,
): Promise<void> {
  const gone = (error: unknown): void => {
    if (!isNotFound(error)) throw error;
  };
  await client.delete(serviceAccounts, { namespace, name }).catch(gone);
  await client
    .delete(namespace === TENANT_NAMESPACE ? clusterRoleBindings : roleBindings, {
      ...(namespace === TENANT_NAMESPACE ? {} : { namespace }),
      name,
    })
    .catch(gone);
}
