import { InternalError } from '#server/base';
import { failure, groupResource, type Status, StatusError } from '#server/kube';
import type { TransportRequest } from './requests.ts';

/** One HTTP request, its path below the server's prefix. */
export interface HttpRequest {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  path: string;
  contentType?: string;
  body?: string;
}

const METHODS: Record<TransportRequest['verb'], HttpRequest['method']> = {
  get: 'GET',
  list: 'GET',
  watch: 'GET',
  create: 'POST',
  update: 'PUT',
  patch: 'PATCH',
  delete: 'DELETE',
  deletecollection: 'DELETE',
};

function resourcePath({ resource, namespace, name, subresource }: TransportRequest): string {
  const root = resource.group ? ['apis', resource.group, resource.version] : ['api', resource.version];
  const segments = [
    ...root,
    ...(namespace ? ['namespaces', namespace] : []),
    resource.plural,
    ...(name ? [name] : []),
    ...(subresource ? subresource.split('/') : []),
  ];
  const escaping = segments.find((segment) => segment === '' || segment === '.' || segment === '..');
  if (escaping !== undefined) throw new InternalError(`"${escaping}" cannot be part of a request's path`);
  return `/${segments.map(encodeURIComponent).join('/')}`;
}

/** How a request of the Kubernetes API is written in HTTP. Models k8s.io/client-go/rest/request.go. */
export function toHttp(request: TransportRequest): HttpRequest {
  const query = new URLSearchParams(request.query);
  if (request.verb === 'watch') query.set('watch', 'true');
  const search = query.toString();
  return {
    method: METHODS[request.verb],
    path: resourcePath(request) + (search ? `?${search}` : ''),
    ...(request.body === undefined
      ? {}
      : { body: JSON.stringify(request.body), contentType: request.contentType ?? 'application/json' }),
  };
}

/** What a status code means when the answer carries no Status: an answer of a proxy, or of no API server at all. */
const GENERIC: Record<number, [reason: string, message: string]> = {
  400: ['BadRequest', 'the server rejected our request for an unknown reason'],
  401: ['Unauthorized', 'the server has asked for the client to provide credentials'],
  403: ['Forbidden', 'the server does not allow access to the requested resource'],
  404: ['NotFound', 'the server could not find the requested resource'],
  405: ['MethodNotAllowed', 'the server does not allow this method on the requested resource'],
  406: ['NotAcceptable', 'the server was unable to respond with a content type that the client supports'],
  409: ['Conflict', 'the server reported a conflict'],
  410: ['Expired', 'the server no longer has the requested version'],
  413: ['RequestEntityTooLarge', 'Request entity too large'],
  415: ['UnsupportedMediaType', 'the content of the request was not accepted by the server'],
  422: ['Invalid', 'the server rejected our request due to an error in our request'],
  429: ['TooManyRequests', 'the server has received too many requests and has asked us to try again later'],
  503: ['ServiceUnavailable', 'the server is currently unable to handle the request'],
  504: [
    'Timeout',
    'the server was unable to return a response in the time allotted, but may still be processing the request',
  ],
};

/** How much of an unexpected body an error quotes. */
const MAX_QUOTED = 2048;

function isStatus(body: unknown): body is Status {
  return typeof body === 'object' && body !== null && (body as Partial<Status>).kind === 'Status';
}

/** A refusal carried by a Status object, whatever the HTTP status was; undefined for anything else. */
export function failureOf(body: unknown): StatusError | undefined {
  if (!isStatus(body) || body.status !== 'Failure') return undefined;
  return new StatusError({ ...body, code: body.code ?? 500 });
}

/**
 * The error of an HTTP answer that is no success: the server's own Status, or one made from the code.
 * `text` is the body as it came. Models NewGenericServerResponse of k8s.io/apimachinery/pkg/api/errors.
 */
export function errorOf(request: TransportRequest, code: number, body: unknown, text: string): StatusError {
  const status = failureOf(body);
  if (status) return status;
  const quoted = text.trim().slice(0, MAX_QUOTED);
  const what = [METHODS[request.verb].toLowerCase(), groupResource(request.resource), request.name];
  const [reason, message] = GENERIC[code] ?? [
    code >= 500 ? 'InternalError' : 'Unknown',
    code >= 500
      ? `an error on the server (${JSON.stringify(quoted || 'unknown')}) has prevented the request from succeeding`
      : `the server responded with the status code ${code} but did not return more information`,
  ];
  return failure(code, reason, `${message} (${what.filter(Boolean).join(' ')})`, {
    ...(request.name ? { name: request.name } : {}),
    ...(request.resource.group ? { group: request.resource.group } : {}),
    kind: request.resource.plural,
    ...(quoted ? { causes: [{ reason: 'UnexpectedServerResponse', message: quoted }] } : {}),
  });
}
