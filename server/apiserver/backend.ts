import { type ApiBackend, type ApiRequest, ConnectionError } from '#server/client';
import { failure, type KubeObject, type StatusError, type UserInfo, type WatchEvent } from '#server/kube';
import { type Chain, listObject } from './chain.ts';
import type { KindTable } from './kind-table.ts';
import type { Operation } from './registry/operation.ts';

export interface BackendOptions {
  chain: Chain;
  kinds: KindTable;
  /** False once the server was closed: callers are told that nobody answers. */
  isOpen(): boolean;
  raw(user: UserInfo, path: string): Promise<{ status: number; body: unknown }>;
}

/** The chain for callers in this process: no socket, no JSON; answers and events are the server's own frozen objects. */
export function createBackend(options: BackendOptions): ApiBackend {
  const { chain, kinds } = options;
  const operation = (request: ApiRequest): Operation => {
    if (!options.isOpen()) throw new ConnectionError('the API server is closed');
    const { group, version, plural } = request.resource;
    const kind = kinds.find(group, version, plural);
    if (!kind)
      throw failure(404, 'NotFound', 'the server could not find the requested resource', {
        ...(group ? { group } : {}),
        kind: plural,
      });
    return {
      user: request.user,
      userAgent: request.userAgent,
      verb: request.verb,
      kind,
      namespace: kind.namespaced ? request.namespace : undefined,
      name: request.name,
      subresource: request.subresource,
      query:
        request.verb === 'watch' || request.query['fieldValidation']
          ? request.query
          : { fieldValidation: 'Ignore', ...request.query },
      body: request.body,
      duplicates: [],
      contentType: request.contentType,
      warn: () => undefined,
    };
  };
  return {
    async request(request): Promise<KubeObject> {
      const op = operation(request);
      const answer = await chain.run(op);
      if (answer.type === 'list') return listObject(chain.env, op, answer.list) as unknown as KubeObject;
      return answer.answer.object as KubeObject;
    },
    watch(request, onEvent, onEnd) {
      const op = operation(request);
      return chain.watch(op, {
        item: (item) =>
          onEvent(item.once('event', () => Object.freeze({ type: item.type, object: item.object() }))),
        bookmark: (object) => onEvent(Object.freeze({ type: 'BOOKMARK', object }) satisfies WatchEvent),
        end: (error?: StatusError) => onEnd(error),
      });
    },
    raw: (user, path) => options.raw(user, path),
  };
}
