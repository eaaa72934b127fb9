import type { Client } from '#server/client';
import { type ConfigMap, type Pod, serviceAccounts } from '#server/kube';

/** A ConfigMap in `default`. */
export function configMap(
  name: string,
  data: Record<string, string> = {},
  labels?: Record<string, string>,
): ConfigMap {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace: 'default', ...(labels ? { labels } : {}) },
    data,
  };
}

export function pod(name: string, overrides: Partial<Pod['spec']> = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default' },
    spec: { containers: [{ name: 'main', image: 'nginx' }], ...overrides },
  };
}

/** Pods need the service account `default`, which a controller makes in a whole cluster. */
export async function allowPods(client: Client): Promise<void> {
  await client.create(serviceAccounts, { metadata: { name: 'default', namespace: 'default' } });
}
