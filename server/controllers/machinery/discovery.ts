import { OperationalError } from '#server/base';
import type { Client } from '#server/client';
import { defineResource, type Resource } from '#server/kube';

/** A kind of object the server knows, by the version its group prefers. */
export interface Discovered {
  resource: Resource;
  verbs: readonly string[];
}

export interface Discovery {
  resources: Discovered[];
  /** Group versions that could not be asked for, and why. */
  failures: { groupVersion: string; error: string }[];
}

/** The parts of the discovery documents that are read (meta/v1 APIGroupList, APIResourceList). */
interface GroupList {
  groups: { name: string; versions: { version: string }[]; preferredVersion?: { version: string } }[];
}
interface ResourceList {
  resources: { name: string; kind: string; namespaced: boolean; verbs?: string[] }[];
}

async function document<T>(client: Client, path: string): Promise<T> {
  const { status, body } = await client.raw(path);
  if (status !== 200 || typeof body !== 'object' || body === null) {
    throw new OperationalError(`the server answered ${status} to ${path}`);
  }
  return body as T;
}

/**
 * All kinds the server knows, subresources left out, each in its group's preferred version or else the first that has
 * it. Rejects when the list of groups cannot be had; a group version that fails alone is named in `failures`.
 * Models ServerPreferredResources of k8s.io/client-go/discovery.
 */
export async function discover(client: Client): Promise<Discovery> {
  const { groups } = await document<GroupList>(client, '/apis');
  const found = new Map<string, Discovered>();
  const failures: Discovery['failures'] = [];
  const read = async (group: string, version: string): Promise<void> => {
    const groupVersion = group ? `${group}/${version}` : version;
    let list: ResourceList;
    try {
      list = await document<ResourceList>(client, group ? `/apis/${groupVersion}` : `/api/${version}`);
    } catch (error) {
      failures.push({ groupVersion, error: error instanceof Error ? error.message : String(error) });
      return;
    }
    for (const { name, kind, namespaced, verbs = [] } of list.resources) {
      const key = `${group}/${name}`;
      if (name.includes('/') || found.has(key)) continue;
      found.set(key, { resource: defineResource({ group, version, kind, plural: name, namespaced }), verbs });
    }
  };
  await read('', 'v1');
  for (const { name, versions, preferredVersion } of groups) {
    const preferred = preferredVersion?.version;
    const ordered = [...versions].sort(
      (a, b) => Number(b.version === preferred) - Number(a.version === preferred),
    );
    for (const { version } of ordered) await read(name, version);
  }
  return { resources: [...found.values()], failures };
}
