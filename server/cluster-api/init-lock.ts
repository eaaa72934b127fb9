import type { Client } from '#server/client';
import { configMaps, isAlreadyExists, isNotFound } from '#server/kube';
import { find } from './changes.ts';
import { type Cluster, type Machine, machines } from './core-resources.ts';
import { CLUSTER_NAME_LABEL, MANAGER } from './vocabulary.ts';

const KEY = 'lock-information';

function holderOf(data: Record<string, string> | undefined): string {
  const parsed: unknown = JSON.parse(data?.[KEY] ?? '{}');
  return typeof parsed === 'object' &&
    parsed !== null &&
    'machineName' in parsed &&
    typeof parsed.machineName === 'string'
    ? parsed.machineName
    : '';
}

/**
 * Lets one machine of a cluster run `kubeadm init`: true when it is this one. The lock is the ConfigMap `<cluster>-lock`;
 * one held by a machine that is gone is released. Models bootstrap/kubeadm/pkg/locking.
 */
export async function lockInit(client: Client, cluster: Cluster, machine: Machine): Promise<boolean> {
  const { namespace, name, uid } = cluster.metadata;
  const lock = await find(client, configMaps, namespace, `${name}-lock`);
  if (lock) {
    const holder = holderOf(lock.data);
    if (holder === machine.metadata.name) return true;
    if (!(await find(client, machines, namespace, holder))) await unlockInit(client, cluster);
    return false;
  }
  try {
    await client.create(
      configMaps,
      {
        metadata: {
          name: `${name}-lock`,
          ...(namespace ? { namespace } : {}),
          labels: { [CLUSTER_NAME_LABEL]: name },
          ownerReferences: [{ apiVersion: cluster.apiVersion, kind: 'Cluster', name, uid: uid ?? '' }],
        },
        data: { [KEY]: JSON.stringify({ machineName: machine.metadata.name }) },
      },
      MANAGER,
    );
    return true;
  } catch (error) {
    if (isAlreadyExists(error)) return false;
    throw error;
  }
}

/** Releases the lock, whoever holds it. */
export async function unlockInit(client: Client, cluster: Cluster): Promise<void> {
  try {
    await client.delete(configMaps, {
      namespace: cluster.metadata.namespace,
      name: `${cluster.metadata.name}-lock`,
    });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}
