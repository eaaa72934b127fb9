import type { IncomingMessage } from 'node:http';
import { failure, type UserInfo } from '#server/kube';
import { offersSubresource } from '../chain.ts';
import type { AuthorizationAttributes, KindDefinition } from '../kind.ts';
import type { Operation } from '../registry/operation.ts';
import { mediaTypeOf } from './body.ts';
import { type HttpAnswer, statusAnswer } from './http-answer.ts';
import type { RequestInfo, ResourceInfo } from './request-info.ts';

/** The operation a request stands for, its body not read yet. */
export function operationOf(
  info: RequestInfo,
  kind: KindDefinition,
  user: UserInfo,
  request: Pick<IncomingMessage, 'headers'>,
  warn: (text: string) => void,
): Operation {
  const { resource } = info;
  if (!resource) throw failure(404, 'NotFound', 'the server could not find the requested resource');
  return {
    user,
    userAgent: request.headers['user-agent'] ?? '',
    verb: resource.verb,
    kind,
    namespace: resource.namespace,
    name: resource.name,
    subresource: resource.subresource,
    query: info.query,
    body: undefined,
    duplicates: [],
    contentType: resource.verb === 'patch' ? mediaTypeOf(request.headers['content-type']) : undefined,
    warn,
  };
}

/** What has to be allowed for a resource that nobody serves. */
export function accessTo(user: UserInfo, resource: ResourceInfo): AuthorizationAttributes {
  const { group, version, plural, subresource, namespace, name } = resource;
  return {
    user,
    verb: resource.verb,
    resource: {
      group,
      version,
      plural,
      ...(subresource !== undefined ? { subresource } : {}),
      ...(namespace !== undefined ? { namespace } : {}),
      ...(name !== undefined ? { name } : {}),
    },
  };
}

/** A path that a route of the kind has: namespaces where they belong, a subresource it offers. */
export function fits(kind: KindDefinition, info: RequestInfo): boolean {
  const { resource } = info;
  if (!resource || resource.rest.length > 0) return false;
  if (!kind.namespaced && resource.namespace !== undefined) return false;
  if (isMethodRefused(kind, info)) return false;
  return resource.subresource === undefined || offersSubresource(kind, resource.subresource);
}

/**
 * The path is known, the method is not among those of its route: a namespaced kind asked for without a namespace (only
 * lists and watches go across), a create with a name, an update without.
 */
export function isMethodRefused(kind: KindDefinition, info: RequestInfo): boolean {
  const { resource } = info;
  if (!resource || kind.virtual) return false;
  const { verb, namespace, name, subresource } = resource;
  if (kind.namespaced && namespace === undefined && verb !== 'list' && verb !== 'watch') return true;
  if (subresource !== undefined) return false;
  return verb === 'create'
    ? name !== undefined
    : (verb === 'update' || verb === 'patch') && name === undefined;
}

/** Methods that no route takes. */
export function isApiMethodRefused(info: RequestInfo): boolean {
  return !['get', 'head', 'post', 'put', 'patch', 'delete'].includes(info.method);
}

/** Models the answer of go-restful's service error handler to a method without a route. */
export function methodRefused(request: IncomingMessage): HttpAnswer {
  const error = failure(
    405,
    'MethodNotAllowed',
    'the server does not allow this method on the requested resource',
    {
      causes: [{ reason: 'UnexpectedServerResponse', message: '405: Method Not Allowed' }],
    },
  );
  return statusAnswer(error, request.headers.accept);
}
