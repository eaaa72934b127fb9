import { type Clock, createManualClock, createSeededIds, type Ids } from '#server/base';
import {
  alreadyExists,
  applyJsonPatch,
  applyMergePatch,
  applyStrategicMergePatch,
  badRequest,
  builtinSchemaFor,
  cloneJson,
  conflict,
  deepEqual,
  failure,
  formatTime,
  generateName,
  type JsonPatchOperation,
  type KubeObject,
  methodNotAllowed,
  notFound,
  objectKey,
  STALE_WRITE,
  type Status,
  type UnstructuredObject,
  type UserInfo,
} from '#server/kube';
import {
  type ApiBackend,
  type ApiRequest,
  type Client,
  ConnectionError,
  type DeleteOptions,
} from '../contract.ts';
import { deepFreeze } from '../freeze.ts';
import { createInProcessClient } from '../in-process-client.ts';
import { collectionOf, createFakeStore, type FakeStore, selectionOf } from './fake-store.ts';

export interface FakeBackendOptions {
  /** For timestamps. Default: a manual clock of its own. */
  clock?: Pick<Clock, 'now'>;
  /** For uids and generated names. Default: seeded. */
  ids?: Ids;
}

export interface FakeBackend extends ApiBackend {
  /** A client of this backend; default user `system:admin` of `system:masters`. */
  client(options?: { user?: UserInfo; userAgent?: string; fieldManager?: string }): Client;
  /** Called before every request but watches; what it throws (or rejects with) is the answer. Undefined: none. */
  intercept: ((request: ApiRequest) => void | Promise<void>) | undefined;
  /** Every request but watches, in order. */
  readonly requests: readonly ApiRequest[];
  /** False: requests and watches fail with ConnectionError, and running watches end so. */
  reachable: boolean;
  /** Ends all watches; default without an error, as a server does on a time-out. */
  endWatches(error?: unknown): void;
  /** Forgets the history: watches from an older version get 410 Expired. */
  compact(): void;
  sendBookmarks(): void;
  /** How many watches are open. */
  readonly watches: number;
}

const ADMIN: UserInfo = { name: 'system:admin', groups: ['system:masters', 'system:authenticated'] };

function keyOf(request: ApiRequest): string {
  const name = request.name ?? '';
  return request.namespace ? `${request.namespace}/${name}` : name;
}

function success(): Status {
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 200 };
}

/** What a write leaves as it was, whatever the request says. */
function keepSystemMetadata(live: UnstructuredObject, next: UnstructuredObject): UnstructuredObject {
  const {
    uid,
    creationTimestamp,
    deletionTimestamp,
    deletionGracePeriodSeconds,
    generation,
    resourceVersion,
  } = live.metadata;
  const kept = {
    uid,
    creationTimestamp,
    deletionTimestamp,
    deletionGracePeriodSeconds,
    generation,
    resourceVersion,
  };
  return cloneJson({ ...next, metadata: { ...next.metadata, ...kept } }) as UnstructuredObject;
}

function contentOf(object: UnstructuredObject): unknown {
  const { metadata: _metadata, status: _status, ...content } = object;
  return content;
}

/** The main resource leaves the status alone, the status subresource everything else. */
function merged(
  live: UnstructuredObject,
  next: UnstructuredObject,
  subresource: string | undefined,
): UnstructuredObject {
  if (subresource === 'status') return { ...live, status: next['status'] };
  const { status: _, ...rest } = next;
  return live['status'] === undefined ? rest : { ...rest, status: live['status'] };
}

function createWrites(store: FakeStore, clock: Pick<Clock, 'now'>, ids: Ids) {
  const live = (request: ApiRequest): UnstructuredObject => {
    const found = store.get(collectionOf(request), keyOf(request));
    if (!found) throw notFound(request.resource, request.name ?? '');
    return found;
  };
  const save = (request: ApiRequest, old: UnstructuredObject, next: UnstructuredObject): KubeObject => {
    const asked = next.metadata.resourceVersion;
    if (asked && asked !== old.metadata.resourceVersion)
      throw conflict(request.resource, old.metadata.name, STALE_WRITE);
    if (next.metadata.uid && next.metadata.uid !== old.metadata.uid) {
      const why = `Precondition failed: UID in precondition: ${next.metadata.uid}, UID in object meta: ${old.metadata.uid}`;
      throw conflict(request.resource, old.metadata.name, why);
    }
    const object = keepSystemMetadata(old, merged(old, next, request.subresource));
    if (deepEqual(object, old)) return old;
    if (!deepEqual(contentOf(object), contentOf(old)) && old.metadata.generation !== undefined) {
      object.metadata.generation = old.metadata.generation + 1;
    }
    if (request.query['dryRun']) return deepFreeze(object);
    const stored = store.put(collectionOf(request), object);
    const ready = stored.metadata.deletionTimestamp && !stored.metadata.finalizers?.length;
    if (ready && !stored.metadata.deletionGracePeriodSeconds)
      store.remove(collectionOf(request), objectKey(stored));
    return stored;
  };
  const create = (request: ApiRequest, body: unknown): KubeObject => {
    const object = cloneJson(body) as UnstructuredObject;
    const { metadata } = object;
    if (!metadata.name && metadata.generateName)
      metadata.name = generateName(metadata.generateName, ids.suffix(5));
    if (!metadata.name) throw badRequest('name or generateName is required');
    if (metadata.resourceVersion)
      throw badRequest('resourceVersion should not be set on objects to be created');
    if (request.namespace) metadata.namespace = request.namespace;
    if (store.get(collectionOf(request), objectKey(object)))
      throw alreadyExists(request.resource, metadata.name);
    metadata.uid = ids.uid();
    metadata.creationTimestamp = formatTime(clock.now());
    if ('spec' in object) metadata.generation = 1;
    return request.query['dryRun'] ? deepFreeze(object) : store.put(collectionOf(request), object);
  };
  const patched = (request: ApiRequest, old: UnstructuredObject): UnstructuredObject => {
    switch (request.contentType) {
      case 'application/merge-patch+json':
      case 'application/apply-patch+yaml':
        return applyMergePatch(old, request.body) as UnstructuredObject;
      case 'application/json-patch+json':
        return applyJsonPatch(old, request.body as JsonPatchOperation[]) as UnstructuredObject;
      case 'application/strategic-merge-patch+json': {
        const schema = builtinSchemaFor(old.apiVersion, old.kind);
        if (!schema)
          throw failure(415, 'UnsupportedMediaType', 'strategic merge patch needs a built-in kind');
        return applyStrategicMergePatch(old, request.body as object, schema) as UnstructuredObject;
      }
      default:
        throw failure(
          415,
          'UnsupportedMediaType',
          `the patch type ${request.contentType ?? ''} is not supported`,
        );
    }
  };
  /** Seconds the object lives on after its deletion: pods that run on a node are given time. */
  const graceOf = (request: ApiRequest, object: UnstructuredObject, asked: number | undefined): number => {
    if (request.resource.plural !== 'pods' || request.resource.group !== '') return 0;
    const spec = object['spec'] as { nodeName?: string; terminationGracePeriodSeconds?: number } | undefined;
    const phase = (object['status'] as { phase?: string } | undefined)?.phase ?? '';
    if (!spec?.nodeName || phase === 'Succeeded' || phase === 'Failed') return 0;
    return asked ?? spec.terminationGracePeriodSeconds ?? 30;
  };
  const remove = (request: ApiRequest, old: UnstructuredObject, options: DeleteOptions): void => {
    const { uid, resourceVersion } = options.preconditions ?? {};
    const wrong =
      (uid &&
        uid !== old.metadata.uid &&
        `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${old.metadata.uid}`) ||
      (resourceVersion &&
        resourceVersion !== old.metadata.resourceVersion &&
        `Precondition failed: ResourceVersion in precondition: ${resourceVersion}, ResourceVersion in object meta: ${old.metadata.resourceVersion}`);
    if (wrong) throw conflict(request.resource, old.metadata.name, wrong);
    const grace = graceOf(request, old, options.gracePeriodSeconds);
    if (grace === 0 && !old.metadata.finalizers?.length) {
      store.remove(collectionOf(request), objectKey(old));
      return;
    }
    if (old.metadata.deletionTimestamp && (old.metadata.deletionGracePeriodSeconds ?? 0) <= grace) return;
    const deletionTimestamp = formatTime(clock.now() + grace * 1000);
    store.put(collectionOf(request), {
      ...old,
      metadata: { ...old.metadata, deletionTimestamp, deletionGracePeriodSeconds: grace },
    });
  };
  return { live, save, create, patched, remove };
}

type Writes = ReturnType<typeof createWrites>;

function bind(request: ApiRequest, writes: Writes, clock: Pick<Clock, 'now'>): void {
  const pod = writes.live(request);
  const target = (request.body as { target?: { name?: string } }).target?.name ?? '';
  const bound = (pod['spec'] as { nodeName?: string } | undefined)?.nodeName;
  if (bound)
    throw conflict(
      request.resource,
      pod.metadata.name,
      `pod ${pod.metadata.name} is already assigned to node "${bound}"`,
    );
  const condition = {
    type: 'PodScheduled',
    status: 'True',
    lastProbeTime: null,
    lastTransitionTime: formatTime(clock.now()),
  };
  const scheduled = applyMergePatch(pod, { spec: { nodeName: target } }) as UnstructuredObject;
  const saved = writes.save({ ...request, subresource: undefined }, pod, scheduled) as UnstructuredObject;
  const status = { ...(saved['status'] as object | undefined), conditions: [condition] };
  writes.save({ ...request, subresource: 'status' }, saved, { ...saved, status });
}

function answer(
  request: ApiRequest,
  store: FakeStore,
  writes: Writes,
  clock: Pick<Clock, 'now'>,
): KubeObject {
  const collection = collectionOf(request);
  const options = (request.body ?? {}) as DeleteOptions;
  switch (request.verb) {
    case 'get':
      return writes.live(request);
    case 'list': {
      const items = store.list(collection, selectionOf(request));
      const { group, version } = request.resource;
      const metadata = { resourceVersion: String(store.revision) };
      const list = {
        apiVersion: group ? `${group}/${version}` : version,
        kind: `${items[0]?.kind ?? ''}List`,
        metadata,
        items,
      };
      return Object.freeze(list) as unknown as KubeObject;
    }
    case 'create':
      if (!request.name) return writes.create(request, request.body);
      if (request.subresource === 'binding') bind(request, writes, clock);
      else if (request.subresource === 'eviction') writes.remove(request, writes.live(request), {});
      else throw notFound(request.resource, `${request.name}/${request.subresource ?? ''}`);
      return success() as unknown as KubeObject;
    case 'update':
      return writes.save(request, writes.live(request), request.body as UnstructuredObject);
    case 'patch': {
      const applies = request.contentType === 'application/apply-patch+yaml';
      if (applies && !store.get(collection, keyOf(request))) return writes.create(request, request.body);
      const old = writes.live(request);
      return writes.save(request, old, writes.patched(request, old));
    }
    case 'delete':
      writes.remove(request, writes.live(request), options);
      return success() as unknown as KubeObject;
    case 'deletecollection':
      for (const object of store.list(collection, selectionOf(request)))
        writes.remove(request, object, options);
      return success() as unknown as KubeObject;
    case 'watch':
      throw methodNotAllowed(request.resource, 'watch');
  }
}

/**
 * An API server in memory, without a clock of its own going on: what a request changes, watchers are told before it
 * resolves. Kinds are taken as they come; a request's namespace says whether a kind is namespaced.
 */
export function createFakeBackend(options: FakeBackendOptions = {}): FakeBackend {
  const clock = options.clock ?? createManualClock();
  const store = createFakeStore();
  const writes = createWrites(store, clock, options.ids ?? createSeededIds());
  const requests: ApiRequest[] = [];
  let reachable = true;
  const off = (): ConnectionError => new ConnectionError('the API server is off');
  const backend: FakeBackend = {
    intercept: undefined,
    requests,
    async request(request) {
      if (!reachable) throw off();
      requests.push(request);
      if (backend.intercept) await backend.intercept(request);
      return answer(request, store, writes, clock);
    },
    watch(request, onEvent, onEnd) {
      if (reachable) return store.watch(request, onEvent, onEnd);
      let over = false;
      queueMicrotask(() => {
        if (!over) onEnd(off());
      });
      return {
        stop() {
          over = true;
        },
      };
    },
    async raw(_user, path) {
      if (!reachable) throw off();
      if (['/healthz', '/livez', '/readyz'].includes(path)) return { status: 200, body: 'ok' };
      return {
        status: 404,
        body: failure(404, 'NotFound', 'the server could not find the requested resource').status,
      };
    },
    client: ({ user = ADMIN, userAgent = 'test/v0', fieldManager } = {}) =>
      createInProcessClient({ backend, user, userAgent, ...(fieldManager ? { fieldManager } : {}) }),
    get reachable() {
      return reachable;
    },
    set reachable(value) {
      reachable = value;
      if (!value) store.endWatches(off());
    },
    endWatches: (error) => store.endWatches(error),
    compact: () => store.compact(),
    sendBookmarks: () => store.sendBookmarks(),
    get watches() {
      return store.watches;
    },
  };
  return backend;
}
