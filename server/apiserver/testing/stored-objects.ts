import { parseApiVersion, type UnstructuredObject } from '#server/kube';
import type { ServerFacilities } from '../kind.ts';

/** What a server has stored, for tests of the parts that only read: `put` and `remove` change it. */
export interface StoredObjects extends Pick<ServerFacilities, 'list' | 'read'> {
  put(plural: string, object: UnstructuredObject): void;
  remove(plural: string, namespace: string | undefined, name: string): void;
}

export function createStoredObjects(): StoredObjects {
  const objects = new Map<string, UnstructuredObject>();
  const keyOf = (group: string, plural: string, namespace: string | undefined, name: string): string =>
    `${group}/${plural}/${namespace ?? ''}/${name}`;
  return {
    put(plural, object) {
      const { group } = parseApiVersion(object.apiVersion);
      objects.set(keyOf(group, plural, object.metadata.namespace, object.metadata.name), object);
    },
    remove(plural, namespace, name) {
      for (const key of objects.keys())
        if (key.endsWith(`/${plural}/${namespace ?? ''}/${name}`)) objects.delete(key);
    },
    read: (resource, namespace, name) => objects.get(keyOf(resource.group, resource.plural, namespace, name)),
    list(resource, namespace) {
      const prefix = `${resource.group}/${resource.plural}/${namespace === undefined ? '' : `${namespace}/`}`;
      return [...objects].filter(([key]) => key.startsWith(prefix)).map(([, object]) => object);
    },
  };
}
