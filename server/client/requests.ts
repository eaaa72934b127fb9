import { InternalError } from '#server/base';
import {
  formatApiVersion,
  type KubeList,
  type KubeObject,
  type Resource,
  type WatchEvent,
} from '#server/kube';
import type {
  ApiRequest,
  Client,
  DeleteOptions,
  ListQuery,
  ObjectRef,
  Patch,
  WatchQuery,
  WriteOptions,
} from './contract.ts';

/** One request of the Kubernetes API before anybody said who asks: what both transports carry. */
export type TransportRequest = Omit<ApiRequest, 'user' | 'userAgent'>;

/** What carries requests to an API server: in-process or over HTTPS. */
export interface Transport {
  /** The answer, frozen. Rejects with StatusError or ConnectionError. */
  request(request: TransportRequest): Promise<KubeObject>;
  /** After `stop` neither callback is called again; `onEnd` comes at most once, never before `watch` returned. */
  watch(
    request: TransportRequest,
    onEvent: (event: WatchEvent) => void,
    onEnd: (error?: unknown) => void,
  ): { stop(): void };
  raw(path: string): Promise<{ status: number; body: unknown }>;
}

const PATCH_TYPES: Record<Patch['type'], string> = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
};

/** The field manager of a client that names none, as the API server would derive it from the user agent. */
export function defaultFieldManager(userAgent: string): string {
  const slash = userAgent.indexOf('/');
  return slash < 0 ? userAgent : userAgent.slice(0, slash);
}

function at(
  resource: Resource,
  namespace: string | undefined,
): Pick<TransportRequest, 'resource' | 'namespace'> {
  return { resource, namespace: resource.namespaced ? namespace : undefined };
}

function named(
  resource: Resource,
  ref: ObjectRef,
): Pick<TransportRequest, 'resource' | 'namespace' | 'name'> {
  if (!ref.name) throw new InternalError(`a ${resource.kind} is addressed without a name`);
  return { ...inNamespace(resource, ref.namespace), name: ref.name };
}

function inNamespace(
  resource: Resource,
  namespace: string | undefined,
): Pick<TransportRequest, 'resource' | 'namespace'> {
  if (resource.namespaced && !namespace)
    throw new InternalError(`a ${resource.kind} is addressed without a namespace`);
  return at(resource, namespace);
}

function listQuery(query: ListQuery): Record<string, string> {
  const parameters: Record<string, string> = {};
  if (query.labelSelector) parameters['labelSelector'] = query.labelSelector;
  if (query.fieldSelector) parameters['fieldSelector'] = query.fieldSelector;
  if (query.limit !== undefined) parameters['limit'] = String(query.limit);
  if (query.continue) parameters['continue'] = query.continue;
  if (query.resourceVersion !== undefined) parameters['resourceVersion'] = query.resourceVersion;
  return parameters;
}

function watchQuery(query: WatchQuery): Record<string, string> {
  const parameters = listQuery(query);
  if (query.allowWatchBookmarks !== false) parameters['allowWatchBookmarks'] = 'true';
  if (query.sendInitialEvents !== undefined) {
    parameters['sendInitialEvents'] = String(query.sendInitialEvents);
    parameters['resourceVersionMatch'] = 'NotOlderThan';
  }
  return parameters;
}

function writeQuery(options: WriteOptions | undefined, fieldManager: string): Record<string, string> {
  return {
    fieldManager: options?.fieldManager ?? fieldManager,
    ...(options?.dryRun ? { dryRun: 'All' } : {}),
  };
}

function deleteBody(options: DeleteOptions | undefined): object | undefined {
  return options && { kind: 'DeleteOptions', apiVersion: 'v1', ...options };
}

/** The object with the resource's apiVersion and kind where it has none; the same object where it has. */
function typed(resource: Resource, object: { apiVersion?: string; kind?: string }): object {
  if (object.apiVersion && object.kind) return object;
  return { ...object, apiVersion: formatApiVersion(resource.group, resource.version), kind: resource.kind };
}

/** A Client that turns its calls into requests of the Kubernetes API for `transport`. Models k8s.io/client-go/gentype. */
export function createClient(transport: Transport, fieldManager: string): Client {
  // The one parsing edge of the room: an API server answers a request for a kind with that kind.
  const send = async <R>(request: TransportRequest): Promise<R> =>
    (await transport.request(request)) as unknown as R;
  const subresource = (name: string | undefined): { subresource?: string } =>
    name ? { subresource: name } : {};
  return {
    get: async <T extends KubeObject>(resource: Resource<T>, ref: ObjectRef) =>
      send<T>({ verb: 'get', ...named(resource, ref), query: {} }),
    list: async <T extends KubeObject>(resource: Resource<T>, query: ListQuery = {}) =>
      send<KubeList<T>>({ verb: 'list', ...at(resource, query.namespace), query: listQuery(query) }),
    create: async (resource, object, options) =>
      send({
        verb: 'create',
        ...inNamespace(resource, object.metadata.namespace),
        ...subresource(options?.subresource),
        query: writeQuery(options, fieldManager),
        body: typed(resource, object),
      }),
    update: async (resource, object, options) =>
      send({
        verb: 'update',
        ...named(resource, object.metadata),
        ...subresource(options?.subresource),
        query: writeQuery(options, fieldManager),
        body: typed(resource, object),
      }),
    patch: async (resource, ref, patch, options) =>
      send({
        verb: 'patch',
        ...named(resource, ref),
        ...subresource(options?.subresource),
        query: {
          ...writeQuery(options, fieldManager),
          ...(patch.type === 'apply' && patch.force ? { force: 'true' } : {}),
        },
        body: patch.type === 'apply' ? typed(resource, patch.body) : patch.body,
        contentType: PATCH_TYPES[patch.type],
      }),
    async delete(resource, ref, options) {
      await send({ verb: 'delete', ...named(resource, ref), query: {}, body: deleteBody(options) });
    },
    async deleteCollection(resource, query, options) {
      await send({
        verb: 'deletecollection',
        ...inNamespace(resource, query.namespace),
        query: listQuery(query),
        body: deleteBody(options),
      });
    },
    createSubresource: async (resource, ref, name, body) =>
      send({
        verb: 'create',
        ...named(resource, ref),
        subresource: name,
        query: writeQuery(undefined, fieldManager),
        body,
      }),
    watch: <T extends KubeObject>(
      resource: Resource<T>,
      query: WatchQuery,
      onEvent: (event: WatchEvent<T>) => void,
      onEnd: (error?: unknown) => void,
    ) =>
      transport.watch(
        { verb: 'watch', ...at(resource, query.namespace), query: watchQuery(query) },
        onEvent as (event: WatchEvent) => void,
        onEnd,
      ),
    raw: (path) => transport.raw(path),
  };
}
