import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { type Clock, errorMessage, type Ids, type Logger } from '#server/base';
import { failure, StatusError, type UserInfo, unauthorized } from '#server/kube';
import { type Impersonation, impersonate, requireAccess } from '../access.ts';
import type { Authenticator } from '../authn/authenticator.ts';
import { asStatusError, type Chain, offersSubresource } from '../chain.ts';
import type { HttpContext } from '../http-context.ts';
import type { AuthorizationAttributes, KindDefinition } from '../kind.ts';
import type { KindTable } from '../kind-table.ts';
import type { KubeletDirectory } from '../kubelet-api.ts';
import type { Operation } from '../registry/operation.ts';
import { serveLog } from '../streaming/log.ts';
import { createStreams, refuseStreamPost } from '../streaming/streams.ts';
import { decodeBody, decodePatch, mediaTypeOf, readBody } from './body.ts';
import {
  formatOrJson,
  type HttpAnswer,
  pageNotFound,
  sendAnswer,
  statusAnswer,
  warningHeader,
} from './http-answer.ts';
import { negotiate } from './negotiation.ts';
import { createPaths } from './paths.ts';
import { joinText, type RenderContext, renderList, renderObject } from './render.ts';
import { PathError, type RequestInfo, type ResourceInfo, requestInfo } from './request-info.ts';
import { createWatchResponse } from './watch-response.ts';

export interface EndpointsOptions {
  chain: Chain;
  kinds: KindTable;
  clock: Clock;
  ids: Ids;
  log: Logger;
  authenticate: Authenticator['authenticate'];
  kubelets: KubeletDirectory;
  serviceAccount: { issuer: string; verifyingKeysPem: readonly string[] };
}

/** The HTTP face of a server. */
export interface Endpoints {
  handle(request: IncomingMessage, response: ServerResponse, context: HttpContext): Promise<void>;
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, context: HttpContext): Promise<void>;
  raw(user: UserInfo, path: string): Promise<{ status: number; body: unknown }>;
  /** Ends watches, logs and streams. */
  close(): Promise<void>;
}

const STREAMS = new Set(['exec', 'attach', 'portforward']);
const MIN_WATCH_SECONDS = 1800;
const ANONYMOUS: UserInfo = { name: 'system:anonymous', groups: ['system:unauthenticated'] };

export function createEndpoints(options: EndpointsOptions): Endpoints {
  const { chain, kinds, clock, ids, log } = options;
  const paths = createPaths({
    kinds,
    now: () => clock.now(),
    serviceAccount: options.serviceAccount,
    checks: [
      { name: 'ping', check: () => undefined },
      { name: 'etcd', check: () => void chain.env.storage.store.count('/registry/core/namespaces/') },
      { name: 'poststarthook/rbac/bootstrap-roles', check: () => undefined },
      { name: 'poststarthook/scheduling/bootstrap-system-priority-classes', check: () => undefined },
      { name: 'shutdown', check: () => (closed ? refuseReadiness() : undefined), readinessOnly: true },
    ],
  });
  const streams = createStreams({ chain, kubelets: options.kubelets, log });
  const open = new Set<() => void>();
  let closed = false;

  const userOf = async (request: IncomingMessage, context: HttpContext): Promise<UserInfo> => {
    const authorization = request.headers.authorization ?? '';
    const token = /^bearer +(.+)$/i.exec(authorization.trim())?.[1]?.trim();
    let user: UserInfo = ANONYMOUS;
    if (token !== undefined || context.peerCertificate !== undefined) {
      const proven = await options.authenticate({
        peerCertificate: context.peerCertificate,
        bearerToken: token,
      });
      if (!proven) throw unauthorized();
      user = proven;
    }
    const wanted = impersonationOf(request);
    return wanted ? impersonate(chain.authorizer, user, wanted) : user;
  };

  const serveWatch = (
    request: IncomingMessage,
    response: ServerResponse,
    op: Operation,
    context: RenderContext,
  ): void => {
    const reader = createWatchResponse(context, request, response, log);
    const seconds = op.query['timeoutSeconds'];
    const timeoutSeconds =
      seconds && Number(seconds) > 0 ? seconds : String(Math.round(MIN_WATCH_SECONDS * (1 + ids.random())));
    const running = chain.watch({ ...op, query: { ...op.query, timeoutSeconds } }, reader);
    const stop = (): void => {
      open.delete(stop);
      running.stop();
      reader.close();
    };
    open.add(stop);
    response.once('close', stop);
    reader.started();
    if (response.destroyed) stop();
  };

  const serveResource = async (
    request: IncomingMessage,
    response: ServerResponse,
    info: RequestInfo,
    kind: KindDefinition,
    user: UserInfo,
  ): Promise<void> => {
    const warnings: string[] = [];
    const op = operationOf(
      info,
      kind,
      user,
      request,
      (text) => void (warnings.includes(text) || warnings.push(text)),
    );
    chain.authorize(op);
    if (kind.deprecation) op.warn(kind.deprecation);
    const format = negotiate(request.headers.accept, isPretty(info, request));
    const context: RenderContext = { env: chain.env, kind, format, includeObject: includeObjectOf(info) };
    if (op.verb === 'watch') {
      if (warnings.length > 0) response.setHeader('Warning', warnings.map(warningHeader));
      return serveWatch(request, response, op, context);
    }
    const bytes = op.verb === 'get' || op.verb === 'list' ? undefined : await readBody(request);
    const answer = await chain.run(bytes ? withBody(op, bytes, request) : op);
    const rendered =
      answer.type === 'list' ? renderList(context, answer.list) : renderObject(context, answer.answer);
    const code = answer.type === 'list' ? 200 : answer.answer.code;
    await sendAnswer(
      request,
      response,
      { code, headers: { 'Content-Type': rendered.contentType }, chunks: rendered.chunks },
      warnings,
    );
  };

  const servePath = (request: IncomingMessage, info: RequestInfo, user: UserInfo): HttpAnswer => {
    const note = (code: number): void =>
      chain.audit.record({
        time: clock.now(),
        user: user.name,
        userAgent: request.headers['user-agent'] ?? '',
        verb: info.method,
        path: info.path,
        code,
        latency: 0,
      });
    try {
      requireAccess(chain.authorizer, { user, verb: info.method, path: info.path });
      const answer = paths.answer(info, {
        accept: request.headers.accept,
        ifNoneMatch: request.headers['if-none-match'],
        acceptEncoding: request.headers['accept-encoding'],
      });
      note(answer.code);
      return answer;
    } catch (error) {
      note(error instanceof StatusError ? error.code : 500);
      throw error;
    }
  };

  const serve = async (
    request: IncomingMessage,
    response: ServerResponse,
    context: HttpContext,
  ): Promise<void> => {
    response.setHeader('Audit-Id', auditId(request) ?? ids.uid());
    const info = requestInfo(request.method ?? 'GET', context.path);
    const user = await userOf(request, context);
    if (closed) throw failure(503, 'ServiceUnavailable', 'the server is shutting down');
    const { resource } = info;
    if (!resource) {
      await sendAnswer(
        request,
        response,
        isApiMethodRefused(info) ? methodRefused(request) : servePath(request, info, user),
      );
      return;
    }
    const kind = kinds.find(resource.group, resource.version, resource.plural);
    if (!kind || !fits(kind, info)) {
      requireAccess(chain.authorizer, accessTo(user, resource));
      await sendAnswer(
        request,
        response,
        kind && isMethodRefused(kind, info) ? methodRefused(request) : pageNotFound(),
      );
      return;
    }
    const { subresource } = resource;
    if (subresource === 'log' && kind.plural === 'pods') {
      const stop = await serveLog(
        { chain, kubelets: options.kubelets, log },
        request,
        response,
        operationOf(info, kind, user, request, () => undefined),
      );
      if (stop) {
        open.add(stop);
        response.once('close', () => open.delete(stop));
      }
      return;
    }
    if (subresource !== undefined && STREAMS.has(subresource) && kind.plural === 'pods') {
      const op = operationOf(info, kind, user, request, () => undefined);
      throw refuseStreamPost({ chain, kubelets: options.kubelets, log }, op, info.parameters);
    }
    await serveResource(request, response, info, kind, user);
  };

  return {
    async handle(request, response, context) {
      try {
        await serve(request, response, context);
      } catch (error) {
        await refuse(request, response, error, log);
      }
    },
    async upgrade(request, socket, head, context) {
      await streams.upgrade(request, socket, head, async () => {
        const info = requestInfo(request.method ?? 'GET', context.path);
        const user = await userOf(request, context);
        const { resource } = info;
        const kind = resource && kinds.find(resource.group, resource.version, resource.plural);
        if (
          !resource ||
          !kind ||
          !fits(kind, info) ||
          kind.plural !== 'pods' ||
          !STREAMS.has(resource.subresource ?? '')
        ) {
          throw failure(400, 'BadRequest', 'this path does not speak WebSocket');
        }
        return { op: operationOf(info, kind, user, request, () => undefined), parameters: info.parameters };
      });
    },
    async raw(user, path) {
      try {
        const info = requestInfo('GET', path);
        const { resource } = info;
        const request = { headers: {}, method: 'GET' } as IncomingMessage;
        let answer: HttpAnswer;
        const kind = resource && kinds.find(resource.group, resource.version, resource.plural);
        if (!resource) answer = servePath(request, info, user);
        else if (!kind || !fits(kind, info)) answer = pageNotFound();
        else {
          const ran = await chain.run(operationOf(info, kind, user, request, () => undefined));
          const context: RenderContext = {
            env: chain.env,
            kind,
            format: formatOrJson(undefined),
            includeObject: 'Metadata',
          };
          const rendered =
            ran.type === 'list' ? renderList(context, ran.list) : renderObject(context, ran.answer);
          answer = { code: 200, headers: { 'Content-Type': rendered.contentType }, chunks: rendered.chunks };
        }
        return { status: answer.code, body: bodyOf(answer) };
      } catch (error) {
        const refusal = toStatusError(error, log);
        return { status: refusal.code, body: refusal.status };
      }
    },
    async close() {
      closed = true;
      for (const stop of [...open]) stop();
      open.clear();
      await streams.close();
    },
  };
}

function refuseReadiness(): never {
  throw failure(503, 'ServiceUnavailable', 'process is shutting down');
}

function bodyOf(answer: HttpAnswer): unknown {
  const text = joinText(answer.chunks);
  return answer.headers['Content-Type']?.startsWith('application/json')
    ? (JSON.parse(text) as unknown)
    : text;
}

/** An error as the Status the client gets: the one place where anything thrown becomes an answer. */
async function refuse(
  request: IncomingMessage,
  response: ServerResponse,
  error: unknown,
  log: Logger,
): Promise<void> {
  if (request.destroyed && !request.complete) {
    log.debug({ error: errorMessage(error) }, 'the client went away');
    response.destroy();
    return;
  }
  const refusal = toStatusError(error, log);
  if (!request.complete) response.setHeader('Connection', 'close');
  try {
    await sendAnswer(request, response, statusAnswer(refusal, request.headers.accept));
  } catch (failed) {
    log.error({ err: failed }, 'a refusal could not be sent');
    response.destroy();
  }
}

function toStatusError(error: unknown, log: Logger): StatusError {
  if (error instanceof PathError) return failure(400, 'BadRequest', error.message);
  return error instanceof StatusError ? error : asStatusError({ log }, {}, error);
}

function operationOf(
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

function withBody(op: Operation, bytes: Buffer, request: IncomingMessage): Operation {
  const decoded =
    op.verb === 'patch'
      ? decodePatch(bytes, op.contentType ?? '')
      : decodeBody(
          bytes,
          request.headers['content-type'],
          op.verb === 'delete' || op.verb === 'deletecollection'
            ? { ...op.kind, kind: 'DeleteOptions' }
            : op.kind,
        );
  return { ...op, body: decoded.value, duplicates: decoded.duplicates };
}

function accessTo(user: UserInfo, resource: ResourceInfo): AuthorizationAttributes {
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
function fits(kind: KindDefinition, info: RequestInfo): boolean {
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
function isMethodRefused(kind: KindDefinition, info: RequestInfo): boolean {
  const { resource } = info;
  if (!resource || kind.virtual) return false;
  const { verb, namespace, name, subresource } = resource;
  if (kind.namespaced && namespace === undefined && verb !== 'list' && verb !== 'watch') return true;
  if (subresource !== undefined) return false;
  return verb === 'create'
    ? name !== undefined
    : (verb === 'update' || verb === 'patch') && name === undefined;
}

function isApiMethodRefused(info: RequestInfo): boolean {
  return !['get', 'head', 'post', 'put', 'patch', 'delete'].includes(info.method);
}

/** Models the answer of go-restful's service error handler to a method without a route. */
function methodRefused(request: IncomingMessage): HttpAnswer {
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

function isPretty(info: RequestInfo, request: IncomingMessage): boolean {
  const asked = info.query['pretty'];
  if (asked !== undefined) return asked !== 'false' && asked !== '0';
  return /^(curl|Wget|Mozilla\/5\.0)/.test(request.headers['user-agent'] ?? '');
}

function includeObjectOf(info: RequestInfo): RenderContext['includeObject'] {
  const asked = info.query['includeObject'];
  return asked === 'None' || asked === 'Object' ? asked : 'Metadata';
}

function auditId(request: IncomingMessage): string | undefined {
  const header = request.headers['audit-id'];
  return typeof header === 'string' && /^[\x21-\x7e]{1,64}$/.test(header) ? header : undefined;
}

const EXTRA_PREFIX = 'impersonate-extra-';

function impersonationOf(request: IncomingMessage): Impersonation | undefined {
  const { headers } = request;
  const user = single(headers['impersonate-user']);
  const uid = single(headers['impersonate-uid']);
  const groups = rawValues(request, 'impersonate-group');
  const extra: Record<string, string[]> = {};
  for (const name of Object.keys(headers)) {
    if (!name.startsWith(EXTRA_PREFIX)) continue;
    let key = name.slice(EXTRA_PREFIX.length);
    try {
      key = decodeURIComponent(key);
    } catch (error) {
      throw failure(400, 'BadRequest', `header ${name}: ${errorMessage(error)}`);
    }
    extra[key] = rawValues(request, name);
  }
  if (!user && !uid && groups.length === 0 && Object.keys(extra).length === 0) return undefined;
  return { user, uid, groups, extra };
}

function single(value: string | string[] | undefined): string {
  return (Array.isArray(value) ? value[0] : value) ?? '';
}

/** Node joins repeated headers; groups may hold commas, so the raw ones are read. */
function rawValues(request: IncomingMessage, name: string): string[] {
  const values: string[] = [];
  const raw = request.rawHeaders ?? [];
  for (let i = 0; i + 1 < raw.length; i += 2)
    if (raw[i]?.toLowerCase() === name) values.push(raw[i + 1] ?? '');
  return values;
}
