import { OperationalError } from '#server/base';
import {
  type Controller,
  type ControllerContext,
  createEventRecorder,
  createWorkQueue,
  type WorkQueue,
} from '#server/client';
import {
  type Arrange,
  createLoop,
  type Discovered,
  discover,
  type Follower,
  follow,
} from '#server/controllers/machinery';
import {
  customResourceDefinitions,
  finalizers,
  isNotFound,
  type KubeObject,
  type OwnerReference,
  parseApiVersion,
  type Resource,
} from '#server/kube';
import { createCollection } from './collection.ts';
import { createGraph, type GraphNode } from './graph.ts';

const WORKERS = 4;
/** The key under which kinds are discovered anew; all others are `delete <uid>` and `orphan <uid>`. */
const RESYNC = 'resync';
/** Kinds nobody owns anything by, and that are many. */
const IGNORED: ReadonlySet<string> = new Set(['/events', 'events.k8s.io/events']);
/** Milliseconds until discovery is tried again after some group failed. */
const PARTIAL_RETRY = 30_000;

const keyOf = ({ group, plural }: Resource): string => `${group}/${plural}`;
const isCollectable = ({ resource, verbs }: Discovered): boolean =>
  ['delete', 'list', 'watch', 'get'].every((verb) => verbs.includes(verb)) && !IGNORED.has(keyOf(resource));

/** Deletes what has lost its owners. */
export function createGarbageCollector(context: ControllerContext): Controller {
  const { client, informers, clock, ids, log } = context;
  const definitions = informers.informer(customResourceDefinitions);
  const recorder = createEventRecorder({
    client,
    component: 'garbage-collector-controller',
    clock,
    ids,
    log,
  });
  const followers = new Map<string, { resource: Resource; follower: Follower }>();
  let queue: WorkQueue = createWorkQueue({ clock });
  let stopped = false;
  /** Resolves when every followed kind has been listed: before that nothing can be called absent. */
  let complete: Promise<unknown> = Promise.resolve();

  const graph = createGraph({
    attemptToDelete: ({ identity }) => queue.add(`delete ${identity.uid}`),
    attemptToOrphan: ({ identity }) => queue.add(`orphan ${identity.uid}`),
    foreignOwner: reportForeignOwner,
  });
  function reportForeignOwner({ identity }: GraphNode, owner: OwnerReference): void {
    const { apiVersion, kind, namespace = '', name, uid } = identity;
    const metadata = { name, uid, ...(namespace ? { namespace } : {}) };
    const wrong = `[${owner.apiVersion}/${owner.kind}, namespace: ${namespace}, name: ${owner.name}, uid: ${owner.uid}]`;
    const message = `ownerRef ${wrong} does not exist in namespace "${namespace}"`;
    recorder.event({ apiVersion, kind, metadata }, 'Warning', 'OwnerRefInvalidNamespace', message);
  }
  const resourceOf = (apiVersion: string, kind: string): Resource | undefined => {
    const { group } = parseApiVersion(apiVersion);
    for (const { resource } of followers.values())
      if (resource.group === group && resource.kind === kind) return resource;
    return undefined;
  };
  const collection = createCollection({
    client,
    graph,
    resourceOf,
    requeue: ({ identity }) => queue.add(`delete ${identity.uid}`),
    foreignOwner: reportForeignOwner,
  });

  const handler = {
    onList(resource: Resource, objects: readonly KubeObject[]): void {
      for (const object of objects) graph.observe(resource, object);
      graph.retain(resource, new Set(objects.map(({ metadata }) => metadata.uid ?? '')));
    },
    onChange: (resource: Resource, object: KubeObject): void => graph.observe(resource, object),
    onGone: (_: Resource, object: KubeObject): void => graph.forget(object.metadata.uid ?? ''),
  };
  /** Follows the kinds there are now. Models GarbageCollector.Sync. */
  const resync = async () => {
    const { resources, failures } = await discover(client);
    if (stopped) return undefined;
    const wanted = new Map(
      resources.filter(isCollectable).map(({ resource }) => [keyOf(resource), resource]),
    );
    for (const [key, { resource, follower }] of followers) {
      const next = wanted.get(key);
      if (next && next.version === resource.version && next.namespaced === resource.namespaced) continue;
      // A group that could not be asked for is not gone.
      if (
        !next &&
        failures.some(({ groupVersion }) => parseApiVersion(groupVersion).group === resource.group)
      )
        continue;
      follower.stop();
      followers.delete(key);
      if (!next) graph.retain(resource, new Set());
    }
    for (const [key, resource] of wanted)
      if (!followers.has(key)) followers.set(key, { resource, follower: follow(context, resource, handler) });
    complete = Promise.all([...followers.values()].map(({ follower }) => follower.listed));
    await complete;
    return failures.length > 0 ? { requeueAfter: PARTIAL_RETRY } : undefined;
  };
  const orphan = async (node: GraphNode): Promise<void> => {
    for (const dependent of node.dependents) await collection.removeOwners(dependent, [node.identity.uid]);
    await collection.removeFinalizer(node, finalizers.orphan);
  };
  const reconcile = async (key: string) => {
    if (key === RESYNC) return resync();
    await complete;
    const [what, uid = ''] = key.split(' ');
    const node = graph.get(uid);
    if (!node || stopped) return undefined;
    try {
      if (what === 'orphan') await orphan(node);
      else await collection.attemptToDelete(node);
    } catch (error) {
      // An owner whose kind is not served may be served yet; in any case nothing is deleted for it.
      if (!isNotFound(error)) throw error;
      throw new OperationalError(
        `${node.identity.kind} ${node.identity.name} could not be looked at: ${String(error)}`,
      );
    }
    return undefined;
  };
  const watch = (on: Arrange, its: WorkQueue): void => {
    queue = its;
    const changed = (): void => queue.add(RESYNC);
    on(definitions, {
      added: changed,
      updated: (old, now) =>
        old.metadata.generation === now.metadata.generation && sameConditions(old, now)
          ? undefined
          : changed(),
      deleted: changed,
    });
  };
  return createLoop({
    name: 'garbage-collector',
    context,
    workers: WORKERS,
    watch,
    reconcile,
    onReady: () => queue.add(RESYNC),
    onStop() {
      stopped = true;
      recorder.stop();
      for (const { follower } of followers.values()) follower.stop();
    },
  });
}

type Definition = { status?: { conditions?: { type: string; status: string }[] } };

function sameConditions(a: Definition, b: Definition): boolean {
  const text = ({ status }: Definition): string =>
    (status?.conditions ?? []).map((one) => `${one.type}=${one.status}`).join();
  return text(a) === text(b);
}
