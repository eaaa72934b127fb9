import type { JsonPatchOperation, KubeList, KubeObject, Resource, UserInfo, WatchEvent } from '#server/kube';

/** Which object. `namespace` is left out for cluster-scoped kinds. */
export interface ObjectRef {
  namespace?: string | undefined;
  name: string;
}

export interface ListQuery {
  /** Left out: all namespaces. */
  namespace?: string | undefined;
  labelSelector?: string;
  fieldSelector?: string;
  limit?: number;
  continue?: string;
  resourceVersion?: string;
}

export interface WatchQuery extends Omit<ListQuery, 'limit' | 'continue'> {
  /** Default true. */
  allowWatchBookmarks?: boolean;
  sendInitialEvents?: boolean;
}

export interface WriteOptions {
  /** `status`, `scale`, `binding`, … */
  subresource?: string;
  /** Default: the client's own `fieldManager`. */
  fieldManager?: string;
  dryRun?: boolean;
}

export interface DeleteOptions {
  propagationPolicy?: 'Foreground' | 'Background' | 'Orphan';
  gracePeriodSeconds?: number;
  preconditions?: { uid?: string; resourceVersion?: string };
}

export type Patch =
  | { type: 'merge'; body: object }
  | { type: 'strategic'; body: object }
  | { type: 'json'; body: readonly JsonPatchOperation[] }
  | { type: 'apply'; body: object; force?: boolean };

/**
 * The only way anything in the product touches a cluster. Two implementations behind it: HTTPS, and in-process inside
 * the cluster process. All methods reject with StatusError when the API server refuses, with ConnectionError when there
 * is no API server to ask. Objects that come out may be shared and are frozen: copy (`structuredClone`) before changing.
 */
export interface Client {
  get<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef): Promise<T>;
  list<T extends KubeObject>(resource: Resource<T>, query?: ListQuery): Promise<KubeList<T>>;
  create<T extends KubeObject>(resource: Resource<T>, object: Draft<T>, options?: WriteOptions): Promise<T>;
  /** PUT. The object's resourceVersion, when set, is a precondition: 409 Conflict when stale. */
  update<T extends KubeObject>(resource: Resource<T>, object: T, options?: WriteOptions): Promise<T>;
  patch<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    patch: Patch,
    options?: WriteOptions,
  ): Promise<T>;
  /** Resolves whether or not the object is gone at once (finalizers, grace); rejects with 404 when absent. */
  delete(resource: Resource, ref: ObjectRef, options?: DeleteOptions): Promise<void>;
  deleteCollection(resource: Resource, query: ListQuery, options?: DeleteOptions): Promise<void>;
  /**
   * POST to a subresource that answers with another kind: `pods/binding`, `pods/eviction`, `serviceaccounts/token`.
   */
  createSubresource<R extends KubeObject>(
    resource: Resource,
    ref: ObjectRef,
    subresource: string,
    body: KubeObject,
  ): Promise<R>;
  /**
   * Watches until stopped or ended. `onEvent` is called in order and must not throw. `onEnd` is called once: without an
   * error when the server ended the stream, with a StatusError (410 Expired: list again) or ConnectionError otherwise.
   */
  watch<T extends KubeObject>(
    resource: Resource<T>,
    query: WatchQuery,
    onEvent: (event: WatchEvent<T>) => void,
    onEnd: (error?: unknown) => void,
  ): { stop(): void };
  /** GET of a non-resource path (`/version`, `/healthz`): status and parsed body (text where it is not JSON). */
  raw(path: string): Promise<{ status: number; body: unknown }>;
}

/** An object to create: apiVersion and kind may be left out (the resource knows them). */
export type Draft<T extends KubeObject> = Omit<T, 'apiVersion' | 'kind' | 'metadata'> & {
  apiVersion?: string;
  kind?: string;
  metadata: Omit<T['metadata'], 'name'> & { name?: string };
};

/** No API server answered: refused, reset, timed out, or its machine is off. Worth a retry with back-off. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';
}

/** What a kubeconfig says of one context, checked: the only fields this product follows. */
export interface RestConfig {
  /** `https://host:port/prefix`, without a trailing slash. */
  server: string;
  caPem?: string;
  certPem?: string;
  keyPem?: string;
  token?: string;
  /** The context's namespace, when it names one. */
  namespace?: string;
}

/** Turns a checked kubeconfig into a client. In the cluster process its own clusters are reached without a socket. */
export interface Dialer {
  dial(config: RestConfig, options?: { userAgent?: string; fieldManager?: string }): Client;
}

/**
 * What an API server offers inside its own process: the same chain as over HTTPS (authorization, admission, …) without
 * the socket. `createInProcessClient` is built on it.
 */
export interface ApiBackend {
  /** One request; rejects with StatusError. The answer is frozen. */
  request(request: ApiRequest): Promise<KubeObject>;
  watch(
    request: ApiRequest,
    onEvent: (event: WatchEvent) => void,
    onEnd: (error?: unknown) => void,
  ): { stop(): void };
  raw(user: UserInfo, path: string): Promise<{ status: number; body: unknown }>;
}

export interface ApiRequest {
  user: UserInfo;
  userAgent: string;
  verb: 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'deletecollection';
  resource: { group: string; version: string; plural: string };
  namespace?: string | undefined;
  name?: string | undefined;
  subresource?: string | undefined;
  /** The query parameters by their API names. */
  query: Readonly<Record<string, string>>;
  /** The object, the patch, or DeleteOptions. Never modified. */
  body?: unknown;
  /** For `patch`: the media type. */
  contentType?: string;
}
