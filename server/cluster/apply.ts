import type { Client } from '#server/client';
import {
  clusterRoleBindings,
  clusterRoles,
  configMaps,
  csiDrivers,
  daemonSets,
  deployments,
  isAlreadyExists,
  isNotFound,
  type KubeObject,
  namespaces,
  parseApiVersion,
  priorityClasses,
  type Resource,
  roleBindings,
  roles,
  StatusError,
  secrets,
  serviceAccounts,
  services,
} from '#server/kube';

/** The kinds a guest's tools write. A new one is one more entry. */
const APPLICABLE: readonly Resource[] = [
  namespaces,
  serviceAccounts,
  configMaps,
  secrets,
  services,
  roles,
  roleBindings,
  clusterRoles,
  clusterRoleBindings,
  priorityClasses,
  csiDrivers,
  deployments,
  daemonSets,
];

/** A manifest names a kind the guest's kubectl has no mapping for. */
export class UnknownKindError extends Error {
  override readonly name = 'UnknownKindError';
}

function resourceOf(object: KubeObject): Resource {
  const { group } = parseApiVersion(object.apiVersion);
  const resource = APPLICABLE.find(
    (candidate) => candidate.kind === object.kind && candidate.group === group,
  );
  if (!resource)
    throw new UnknownKindError(`no matches for kind "${object.kind}" in version "${object.apiVersion}"`);
  return resource;
}

interface ApplyOptions {
  fieldManager: string;
  onlyCreate?: boolean;
  print?: (text: string) => void;
}

/**
 * Creates what is absent and, unless `onlyCreate`, merges into what is there: safe to repeat after a crash anywhere.
 * `print` gets kubectl's word for each object.
 */
export async function applyObjects(
  client: Client,
  objects: readonly KubeObject[],
  options: ApplyOptions,
): Promise<void> {
  const isNamespace = (object: KubeObject): boolean => object.kind === namespaces.kind;
  // Namespaces first: the rest may live in them. Within each part nothing waits for anything.
  for (const part of [objects.filter(isNamespace), objects.filter((object) => !isNamespace(object))]) {
    await Promise.all(part.map((object) => applyObject(client, object, options)));
  }
}

async function applyObject(client: Client, object: KubeObject, options: ApplyOptions): Promise<void> {
  const { fieldManager } = options;
  const resource = resourceOf(object);
  const { namespace, name } = object.metadata;
  const ref = { ...(resource.namespaced ? { namespace: namespace ?? 'default' } : {}), name };
  let word = 'created';
  try {
    await client.create(resource, { ...object, metadata: { ...object.metadata, ...ref } }, { fieldManager });
  } catch (error) {
    if (!(await isThereAlready(client, resource, ref, error))) throw error;
    word = 'unchanged';
    if (!options.onlyCreate) {
      await client.patch(resource, ref, { type: 'merge', body: object }, { fieldManager });
      word = 'configured';
    }
  }
  options.print?.(
    `${resource.kind.toLowerCase()}${resource.group ? `.${resource.group}` : ''}/${name} ${word}\n`,
  );
}

/**
 * Whether a create failed because the object is there. A Service that asks for its own address again is refused for the
 * address (422) before its name is looked at, as upstream does: kubeadm takes that for "exists" too.
 */
async function isThereAlready(
  client: Client,
  resource: Resource,
  ref: { namespace?: string; name: string },
  error: unknown,
): Promise<boolean> {
  if (isAlreadyExists(error)) return true;
  if (!(error instanceof StatusError) || error.code !== 422) return false;
  try {
    await client.get(resource, ref);
    return true;
  } catch (absent) {
    if (isNotFound(absent)) return false;
    throw absent;
  }
}
