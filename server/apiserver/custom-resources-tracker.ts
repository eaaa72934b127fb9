import { errorMessage, type Logger } from '#server/base';
import {
  type CustomResourceDefinition,
  isNotFound,
  type UnstructuredObject,
  type UserInfo,
} from '#server/kube';
import { RevisionMismatchError, type StoreWatch } from '#server/store';
import { CLEANUP_FINALIZER, isEstablished } from './custom-resources/crd-kind.ts';
import { kindsOfCustomResource } from './custom-resources/kinds-of-custom-resource.ts';
import { cloneJson } from './json.ts';
import { as, type KindDefinition } from './kind.ts';
import type { KindTable } from './kind-table.ts';
import { deleteNamed } from './registry/delete.ts';
import type { WatchHub } from './registry/hub.ts';
import type { Operation, RegistryEnvironment } from './registry/operation.ts';
import { objectStorageKey, resourcePrefix } from './storage.ts';

export const DEFINITIONS = { group: 'apiextensions.k8s.io', plural: 'customresourcedefinitions' };

const SERVER: UserInfo = { name: 'system:apiserver', groups: ['system:masters', 'system:authenticated'] };

/**
 * Keeps the table of kinds in step with the stored CustomResourceDefinitions, and empties the definitions that are being
 * deleted. Models apiextensions-apiserver's crdHandler and its finalizer controller. Stops with `stop`.
 */
export function trackCustomResources(
  env: RegistryEnvironment,
  kinds: KindTable,
  hub: WatchHub,
  log: Logger,
): StoreWatch {
  const cleaning = new Map<string, StoreWatch | undefined>();
  const show = (crd: UnstructuredObject): void => {
    const definition = as<CustomResourceDefinition>(crd);
    kinds.replace(crd.metadata.name, isEstablished(definition) ? kindsOfCustomResource(definition) : []);
    if (!crd.metadata.deletionTimestamp || !crd.metadata.finalizers?.includes(CLEANUP_FINALIZER)) return;
    if (cleaning.has(crd.metadata.name)) return;
    cleaning.set(crd.metadata.name, undefined);
    queueMicrotask(() => void cleanUp(definition));
  };
  const cleanUp = async (definition: CustomResourceDefinition): Promise<void> => {
    const { name } = definition.metadata;
    const resource = { group: definition.spec.group, plural: definition.spec.names.plural };
    const prefix = resourcePrefix(resource);
    try {
      const kind = kindsOfCustomResource(definition)[0];
      if (kind) await deleteAll(env, kind, prefix);
      const done = (): void => {
        if (env.storage.store.count(prefix) > 0) return;
        cleaning.get(name)?.stop();
        cleaning.delete(name);
        release(env, name).catch((error: unknown) =>
          log.error({ error: errorMessage(error), name }, 'definition not released'),
        );
      };
      cleaning.set(
        name,
        hub.follow(resource, prefix, env.storage.store.revision, done, () => cleaning.delete(name)),
      );
      done();
    } catch (error) {
      cleaning.delete(name);
      log.error({ error: errorMessage(error), name }, 'custom resources of a deleted definition not removed');
    }
  };
  const list = env.storage.store.list(resourcePrefix(DEFINITIONS));
  for (const entry of list.entries) show(env.storage.decode(entry));
  const watch = hub.follow(
    DEFINITIONS,
    resourcePrefix(DEFINITIONS),
    list.revision,
    (event) => {
      if (event.type === 'put') show(event.object());
      else kinds.replace(event.object().metadata.name, []);
    },
    () => undefined,
  );
  return {
    stop() {
      watch.stop();
      for (const running of cleaning.values()) running?.stop();
      cleaning.clear();
    },
  };
}

async function deleteAll(env: RegistryEnvironment, kind: KindDefinition, prefix: string): Promise<void> {
  const base: Omit<Operation, 'namespace' | 'name'> = {
    user: SERVER,
    userAgent: 'kube-apiserver',
    verb: 'delete',
    kind,
    subresource: undefined,
    query: {},
    body: undefined,
    duplicates: [],
    contentType: undefined,
    warn: () => undefined,
  };
  for (const entry of env.storage.store.list(prefix).entries) {
    const { namespace, name } = env.storage.decode(entry).metadata;
    try {
      await deleteNamed(env, { ...base, namespace, name }, name, {});
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
}

const MAX_RELEASE_TRIES = 10;

/** Takes the finalizer off; the definition goes when it was the last. */
async function release(env: RegistryEnvironment, name: string): Promise<void> {
  const key = objectStorageKey(DEFINITIONS, undefined, name);
  for (let attempt = 1; attempt <= MAX_RELEASE_TRIES; attempt++) {
    const entry = env.storage.get(key);
    if (!entry) return;
    const next = cloneJson(env.storage.decode(entry));
    next.metadata.finalizers = (next.metadata.finalizers ?? []).filter(
      (finalizer) => finalizer !== CLEANUP_FINALIZER,
    );
    try {
      if (next.metadata.finalizers.length === 0) await env.storage.remove(key, next, entry.modRevision);
      else await env.storage.put(key, next, entry.modRevision);
      return;
    } catch (error) {
      if (!(error instanceof RevisionMismatchError)) throw error;
    }
  }
}
