import { deepEqual, finalizers, type KubeObject, type OwnerReference, type Resource } from '#server/kube';

/** Where an object is found. The resource is unknown while only its dependents spoke of it. */
export interface Identity {
  apiVersion: string;
  kind: string;
  namespace: string | undefined;
  name: string;
  uid: string;
}

export interface GraphNode {
  identity: Identity;
  /** Undefined: the kind is (not yet) known to be served. */
  resource: Resource | undefined;
  owners: readonly OwnerReference[];
  dependents: Set<GraphNode>;
  /** Somebody refers to it, nobody has seen it. */
  virtual: boolean;
  beingDeleted: boolean;
  /** It waits for its dependents (foreground deletion). */
  deletingDependents: boolean;
}

/** What a change in the graph calls for. */
export interface GraphWork {
  /** See whether the object must go. */
  attemptToDelete(node: GraphNode): void;
  /** Free the dependents of the object. */
  attemptToOrphan(node: GraphNode): void;
  /** `node` names an owner of another namespace. */
  foreignOwner(node: GraphNode, owner: OwnerReference): void;
}

export interface Graph {
  /** An object was seen as it is. */
  observe(resource: Resource, object: KubeObject): void;
  /** The object of that uid is gone, or was never there. */
  forget(uid: string): void;
  /** All objects of a resource that were not in a list are gone. */
  retain(resource: Resource, uids: ReadonlySet<string>): void;
  get(uid: string): GraphNode | undefined;
  readonly size: number;
}

const waitsForDependents = ({ metadata }: KubeObject): boolean =>
  metadata.deletionTimestamp !== undefined &&
  (metadata.finalizers?.includes(finalizers.foregroundDeletion) ?? false);
const waitsForOrphaning = ({ metadata }: KubeObject): boolean =>
  metadata.deletionTimestamp !== undefined && (metadata.finalizers?.includes(finalizers.orphan) ?? false);

/** The dependents that hold a foreground deletion up. */
export function blockingDependents(node: GraphNode): GraphNode[] {
  return [...node.dependents].filter((dependent) =>
    dependent.owners.some((owner) => owner.uid === node.identity.uid && owner.blockOwnerDeletion === true),
  );
}

/**
 * Owners and dependents by uid. Objects that are neither are not kept, so that a cluster's many independent objects cost
 * nothing. Models graph_builder.go (uidToNode, processGraphChanges).
 */
export function createGraph(work: GraphWork): Graph {
  const nodes = new Map<string, GraphNode>();

  const dropIfIdle = (node: GraphNode): void => {
    if (node.dependents.size === 0 && node.owners.length === 0 && !node.beingDeleted)
      nodes.delete(node.identity.uid);
  };
  const attach = (node: GraphNode, owners: readonly OwnerReference[]): void => {
    for (const reference of owners) {
      let owner = nodes.get(reference.uid);
      if (!owner) {
        const { apiVersion, kind, name, uid } = reference;
        const identity = { apiVersion, kind, name, uid, namespace: node.identity.namespace };
        owner = {
          identity,
          resource: undefined,
          owners: [],
          dependents: new Set(),
          virtual: true,
          beingDeleted: false,
          deletingDependents: false,
        };
        nodes.set(uid, owner);
        work.attemptToDelete(owner);
      } else if (
        !owner.virtual &&
        owner.identity.namespace &&
        node.identity.namespace !== owner.identity.namespace
      ) {
        work.foreignOwner(node, reference);
        work.attemptToDelete(node);
      }
      owner.dependents.add(node);
    }
  };
  const detach = (node: GraphNode, owners: readonly OwnerReference[]): void => {
    for (const { uid } of owners) {
      const owner = nodes.get(uid);
      if (!owner) continue;
      owner.dependents.delete(node);
      if (owner.deletingDependents) work.attemptToDelete(owner);
      dropIfIdle(owner);
    }
  };
  /** Owners that may go on since the reference no longer blocks them. */
  const unblock = (before: readonly OwnerReference[], after: readonly OwnerReference[]): void => {
    for (const now of after) {
      const blocked = before.find(({ uid }) => uid === now.uid)?.blockOwnerDeletion === true;
      const owner = nodes.get(now.uid);
      if (blocked && now.blockOwnerDeletion !== true && owner?.deletingDependents)
        work.attemptToDelete(owner);
    }
  };
  const note = (node: GraphNode, object: KubeObject): void => {
    if (object.metadata.deletionTimestamp) node.beingDeleted = true;
    if (waitsForOrphaning(object)) work.attemptToOrphan(node);
    if (!waitsForDependents(object)) return;
    if (!node.deletingDependents) for (const dependent of node.dependents) work.attemptToDelete(dependent);
    node.deletingDependents = true;
    work.attemptToDelete(node);
  };
  const insert = (resource: Resource, object: KubeObject): GraphNode => {
    const { namespace, name, uid = '', ownerReferences = [] } = object.metadata;
    const { apiVersion, kind } = identityOf(resource);
    const identity = { apiVersion, kind, namespace: resource.namespaced ? namespace : undefined, name, uid };
    const node = {
      identity,
      resource,
      owners: ownerReferences,
      dependents: new Set<GraphNode>(),
      virtual: false,
      beingDeleted: false,
      deletingDependents: false,
    };
    nodes.set(uid, node);
    attach(node, ownerReferences);
    // New, and its owners may have gone before it came: only a look at the API can tell.
    if (
      ownerReferences.some(
        (reference) => !nodes.get(reference.uid)?.virtual && nodes.get(reference.uid)?.beingDeleted,
      )
    )
      work.attemptToDelete(node);
    return node;
  };
  const materialize = (node: GraphNode, resource: Resource, object: KubeObject): void => {
    node.virtual = false;
    node.resource = resource;
    const { apiVersion, kind } = identityOf(resource);
    const namespace = resource.namespaced ? object.metadata.namespace : undefined;
    node.identity = { apiVersion, kind, namespace, name: object.metadata.name, uid: node.identity.uid };
    // Dependents that had the wrong idea of where it is do not own it in truth.
    for (const dependent of node.dependents) {
      if (!namespace || dependent.identity.namespace === namespace) continue;
      const reference = dependent.owners.find(({ uid }) => uid === node.identity.uid);
      if (reference) work.foreignOwner(dependent, reference);
      work.attemptToDelete(dependent);
    }
  };
  return {
    observe(resource, object) {
      const { uid = '', ownerReferences = [] } = object.metadata;
      let node = nodes.get(uid);
      if (!node) {
        if (ownerReferences.length === 0 && !waitsForDependents(object) && !waitsForOrphaning(object)) return;
        node = insert(resource, object);
      } else {
        if (node.virtual || node.resource !== resource) materialize(node, resource, object);
        if (!deepEqual(node.owners, ownerReferences)) {
          const before = node.owners;
          const uids = (references: readonly OwnerReference[]) =>
            new Set(references.map((reference) => reference.uid));
          const [old, now] = [uids(before), uids(ownerReferences)];
          node.owners = ownerReferences;
          attach(
            node,
            ownerReferences.filter((reference) => !old.has(reference.uid)),
          );
          detach(
            node,
            before.filter((reference) => !now.has(reference.uid)),
          );
          unblock(before, ownerReferences);
          work.attemptToDelete(node);
        }
      }
      note(node, object);
    },
    forget(uid) {
      const node = nodes.get(uid);
      if (!node) return;
      nodes.delete(uid);
      detach(node, node.owners);
      for (const dependent of node.dependents) work.attemptToDelete(dependent);
    },
    retain(resource, uids) {
      for (const [uid, node] of nodes) {
        if (node.resource === resource && !node.virtual && !uids.has(uid)) this.forget(uid);
      }
    },
    get: (uid) => nodes.get(uid),
    get size() {
      return nodes.size;
    },
  };
}

function identityOf({ group, version, kind }: Resource): { apiVersion: string; kind: string } {
  return { apiVersion: group ? `${group}/${version}` : version, kind };
}
