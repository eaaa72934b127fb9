import { InternalError } from '#server/base';
import type { Client } from '#server/client';
import { clusterApiResources } from '#server/cluster-api';
import {
  clusterRoleBindings,
  clusterRoles,
  configMaps,
  deployments,
  isAlreadyExists,
  type KubeObject,
  namespaces,
  parseApiVersion,
  type Resource,
  roleBindings,
  roles,
  serviceAccounts,
} from '#server/kube';

/** Kinds that birth manifests are made of. */
const KINDS: readonly Resource[] = [
  namespaces,
  serviceAccounts,
  configMaps,
  deployments,
  roles,
  roleBindings,
  clusterRoles,
  clusterRoleBindings,
  ...clusterApiResources,
];

/**
 * Creates what is missing, in order; what exists is left as it is, since it may be what the user made of it. Safe to
 * repeat after a crash anywhere. Rejects with the API server's refusal.
 */
export async function createMissing(client: Client, objects: readonly KubeObject[]): Promise<void> {
  for (const object of objects) {
    const { group } = parseApiVersion(object.apiVersion);
    const resource = KINDS.find((kind) => kind.kind === object.kind && kind.group === group);
    if (!resource)
      throw new InternalError(
        `birth manifests hold a ${object.kind} of ${object.apiVersion}, which nobody can apply`,
      );
    try {
      await client.create(resource, object);
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
  }
}
