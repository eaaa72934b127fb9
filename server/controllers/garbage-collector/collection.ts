import { OperationalError } from '#server/base';
import { type Client, type DeleteOptions, retryOnConflict } from '#server/client';
import { finalizers, isNotFound, type KubeObject, type OwnerReference, type Resource } from '#server/kube';
import { blockingDependents, type Graph, type GraphNode } from './graph.ts';

export interface CollectionOptions {
  client: Client;
  graph: Graph;
  /** The kind as the server serves it; undefined when it does not. */
  resourceOf: (apiVersion: string, kind: string) => Resource | undefined;
  /** Looks at a node again at once. */
  requeue: (node: GraphNode) => void;
  /** `node` names an owner that lives in another namespace. */
  foreignOwner: (node: GraphNode, owner: OwnerReference) => void;
}

/** Decides over single objects and acts, always upon what the API says now. */
export interface Collection {
  attemptToDelete(node: GraphNode): Promise<void>;
  /** Takes references to the owners away from the object, if it is still there. */
  removeOwners(node: GraphNode, uids: readonly string[]): Promise<void>;
  removeFinalizer(node: GraphNode, finalizer: string): Promise<void>;
}

interface Owners {
  solid: OwnerReference[];
  dangling: OwnerReference[];
  /** Owners that wait for this object to go. */
  waiting: OwnerReference[];
}

/** A cluster-scoped object names a namespaced owner: it can never be resolved, and the object is never collected. */
class UnresolvableOwnerError extends Error {
  override readonly name = 'UnresolvableOwnerError';
}

/** Models attemptToDeleteItem and processDeletingDependentsItem of garbagecollector.go. */
export function createCollection({
  client,
  graph,
  resourceOf,
  requeue,
  foreignOwner,
}: CollectionOptions): Collection {
  const resourceFor = (node: GraphNode): Resource => {
    const { apiVersion, kind } = node.identity;
    const resource = node.resource ?? resourceOf(apiVersion, kind);
    if (!resource) throw new OperationalError(`no matches for kind "${kind}" in version "${apiVersion}"`);
    return resource;
  };
  const getLive = async (
    resource: Resource,
    namespace: string | undefined,
    name: string,
  ): Promise<KubeObject | undefined> => {
    try {
      return await client.get(resource, { namespace: resource.namespaced ? namespace : undefined, name });
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  };
  /** The object as it is now, when it is the very same. */
  const live = async (node: GraphNode): Promise<KubeObject | undefined> => {
    const { namespace, name, uid } = node.identity;
    const resource = resourceFor(node);
    // A namespaced kind without a namespace: the owner a cluster-scoped object names. It can be anywhere.
    if (resource.namespaced && !namespace) return undefined;
    const object = await getLive(resource, namespace, name);
    return object?.metadata.uid === uid ? object : undefined;
  };
  const refOf = (node: GraphNode) => ({
    namespace: resourceFor(node).namespaced ? node.identity.namespace : undefined,
    name: node.identity.name,
  });
  const merge = async (
    node: GraphNode,
    change: (object: KubeObject) => object | undefined,
  ): Promise<void> => {
    await retryOnConflict(async () => {
      const object = await live(node);
      const metadata = object && change(object);
      if (!metadata) return;
      const { uid, resourceVersion } = object.metadata;
      try {
        await client.patch(resourceFor(node), refOf(node), {
          type: 'merge',
          body: { metadata: { uid, resourceVersion, ...metadata } },
        });
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
    });
  };
  const removeOwners: Collection['removeOwners'] = (node, uids) =>
    merge(node, ({ metadata }) => {
      const references = metadata.ownerReferences ?? [];
      const kept = references.filter(({ uid }) => !uids.includes(uid));
      if (kept.length === references.length) return undefined;
      return { ownerReferences: kept.length > 0 ? kept : null };
    });
  const removeFinalizer: Collection['removeFinalizer'] = (node, finalizer) =>
    merge(node, ({ metadata }) => {
      if (!metadata.finalizers?.includes(finalizer)) return undefined;
      return { finalizers: metadata.finalizers.filter((one) => one !== finalizer) };
    });
  const unblockOwners = (node: GraphNode): Promise<void> =>
    merge(node, ({ metadata }) => ({
      ownerReferences: metadata.ownerReferences?.map((reference) => ({
        ...reference,
        blockOwnerDeletion: false,
      })),
    }));
  const remove = async (
    node: GraphNode,
    object: KubeObject,
    propagationPolicy: DeleteOptions['propagationPolicy'],
  ): Promise<void> => {
    const { uid, resourceVersion } = object.metadata;
    const preconditions = { ...(uid ? { uid } : {}), ...(resourceVersion ? { resourceVersion } : {}) };
    try {
      await client.delete(resourceFor(node), refOf(node), {
        ...(propagationPolicy ? { propagationPolicy } : {}),
        preconditions,
      });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  };
  const classify = async (node: GraphNode, references: readonly OwnerReference[]): Promise<Owners> => {
    const owners: Owners = { solid: [], dangling: [], waiting: [] };
    for (const reference of references) {
      const resource = resourceOf(reference.apiVersion, reference.kind);
      if (!resource)
        throw new OperationalError(
          `no matches for kind "${reference.kind}" in version "${reference.apiVersion}"`,
        );
      if (resource.namespaced && !node.identity.namespace) {
        throw new UnresolvableOwnerError('cluster-scoped objects cannot refer to namespaced owners');
      }
      const owner = await getLive(resource, node.identity.namespace, reference.name);
      if (owner?.metadata.uid !== reference.uid) owners.dangling.push(reference);
      else if (
        owner.metadata.deletionTimestamp &&
        owner.metadata.finalizers?.includes(finalizers.foregroundDeletion)
      ) {
        owners.waiting.push(reference);
      } else owners.solid.push(reference);
    }
    return owners;
  };
  const finishForeground = async (node: GraphNode): Promise<void> => {
    const blocking = blockingDependents(node);
    if (blocking.length === 0) {
      await removeFinalizer(node, finalizers.foregroundDeletion);
      return;
    }
    for (const dependent of blocking) if (!dependent.deletingDependents) requeue(dependent);
  };
  const collect = async (node: GraphNode, object: KubeObject): Promise<void> => {
    const { solid, dangling, waiting } = await classify(node, object.metadata.ownerReferences ?? []);
    if (solid.length > 0) {
      const lost = [...dangling, ...waiting].map(({ uid }) => uid);
      if (lost.length > 0) await removeOwners(node, lost);
      return;
    }
    if (waiting.length > 0 && node.dependents.size > 0) {
      // Two that wait for one another: this one steps back.
      if ([...node.dependents].some((dependent) => dependent.deletingDependents)) await unblockOwners(node);
      await remove(node, object, 'Foreground');
      return;
    }
    const held = (finalizer: string): boolean => object.metadata.finalizers?.includes(finalizer) ?? false;
    await remove(
      node,
      object,
      held(finalizers.orphan) ? 'Orphan' : held(finalizers.foregroundDeletion) ? 'Foreground' : 'Background',
    );
  };
  /** An owner not found where its dependents are may be elsewhere: that deserves a word. */
  const reportForeign = async (owner: GraphNode): Promise<void> => {
    const resource = resourceFor(owner);
    if (!resource.namespaced) return;
    const { uid } = owner.identity;
    const { items } = await client.list(resource, { fieldSelector: `metadata.name=${owner.identity.name}` });
    if (!items.some(({ metadata }) => metadata.uid === uid)) return;
    for (const dependent of owner.dependents) {
      const reference = dependent.owners.find((each) => each.uid === uid);
      if (reference) foreignOwner(dependent, reference);
    }
  };
  return {
    removeOwners,
    removeFinalizer,
    async attemptToDelete(node) {
      if (node.beingDeleted && !node.deletingDependents) return;
      const object = await live(node);
      if (!object) {
        if (node.virtual) await reportForeign(node);
        graph.forget(node.identity.uid);
        return;
      }
      if (node.virtual) graph.observe(resourceFor(node), object);
      if (node.deletingDependents) await finishForeground(node);
      else if (object.metadata.ownerReferences?.length) {
        try {
          await collect(node, object);
        } catch (error) {
          if (!(error instanceof UnresolvableOwnerError)) throw error;
        }
      }
    },
  };
}
