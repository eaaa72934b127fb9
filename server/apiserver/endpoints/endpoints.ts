import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { type Clock, errorMessage, type Ids, type Logger } from '#server/base';
import { failure, StatusError, type UserInfo } from '#server/kube';
import { requireAccess } from '../access.ts';
import type { Authenticator } from '../authn/authenticator.ts';
import { asStatusError, type Chain } from '../chain.ts';
import type { HttpContext } from '../http-context.ts';
import type { KindDefinition } from '../kind.ts';
import type { KindTable } from '../kind-table.ts';
import type { KubeletDirectory } from '../kubelet-api.ts';
import { serveLog } from '../streaming/log.ts';
import { createStreams, refuseStreamPost, type StreamRequest } from '../streaming/streams.ts';
import { formatOrJson, type HttpAnswer, pageNotFound, sendAnswer, statusAnswer } from './http-answer.ts';
import { userOf } from './identity.ts';
import { createPaths, type HealthCheck, type Paths } from './paths.ts';
import { joinText } from './render.ts';
import { PathError, type RequestInfo, requestInfo } from './request-info.ts';
import { renderAnswer, serveResource } from './resources.ts';
import { accessTo, fits, isApiMethodRefused, isMethodRefused, methodRefused, operationOf } from './routes.ts';

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

const silent = (): void => undefined;

export function createEndpoints(options: EndpointsOptions): Endpoints {
  const { chain, kinds, clock, ids, log } = options;
  let closed = false;
  const paths = createPaths({
    kinds,
    now: () => clock.now(),
    serviceAccount: options.serviceAccount,
    checks: healthChecks(chain, () => closed),
  });
  const streamEnv = { chain, kubelets: options.kubelets, log };
  const streams = createStreams(streamEnv);
  const open = new Set<() => void>();
  const identify = (request: IncomingMessage, context: HttpContext): Promise<UserInfo> =>
    userOf(request, context, { authenticate: options.authenticate, authorizer: chain.authorizer });

  const serve = async (
    request: IncomingMessage,
    response: ServerResponse,
    context: HttpContext,
  ): Promise<void> => {
    response.setHeader('Audit-Id', auditId(request) ?? ids.uid());
    const info = requestInfo(request.method ?? 'GET', context.path);
    const user = await identify(request, context);
    if (closed) throw failure(503, 'ServiceUnavailable', 'the server is shutting down');
    const kind = kindOf(kinds, info);
    const { resource } = info;
    if (!resource || !kind || !fits(kind, info)) {
      return sendAnswer(request, response, withoutRoute(chain, paths, request, info, user, kind));
    }
    if (kind.group !== '' || kind.plural !== 'pods' || resource.subresource === undefined) {
      return serveResource({ chain, ids, log, open }, request, response, info, kind, user);
    }
    const op = operationOf(info, kind, user, request, silent);
    if (STREAMS.has(resource.subresource)) throw refuseStreamPost(streamEnv, op, info.parameters);
    if (resource.subresource !== 'log') {
      return serveResource({ chain, ids, log, open }, request, response, info, kind, user);
    }
    const stop = await serveLog(streamEnv, request, response, op);
    if (!stop) return;
    open.add(stop);
    response.once('close', () => open.delete(stop));
  };

  const prepareStream = async (request: IncomingMessage, context: HttpContext): Promise<StreamRequest> => {
    const info = requestInfo(request.method ?? 'GET', context.path);
    const user = await identify(request, context);
    const kind = kindOf(kinds, info);
    const isStream =
      kind?.plural === 'pods' && fits(kind, info) && STREAMS.has(info.resource?.subresource ?? '');
    if (!kind || !isStream) throw failure(400, 'BadRequest', 'this path does not speak WebSocket');
    return { op: operationOf(info, kind, user, request, silent), parameters: info.parameters };
  };

  const answerRaw = async (user: UserInfo, path: string): Promise<HttpAnswer> => {
    const request = { headers: {}, method: 'GET' } as IncomingMessage;
    const info = requestInfo('GET', path);
    const kind = kindOf(kinds, info);
    if (!kind || !fits(kind, info)) return withoutRoute(chain, paths, request, info, user, kind);
    const answer = await chain.run(operationOf(info, kind, user, request, silent));
    return renderAnswer(
      { env: chain.env, kind, format: formatOrJson(undefined), includeObject: 'Metadata' },
      answer,
    );
  };

  return {
    async handle(request, response, context) {
      try {
        await serve(request, response, context);
      } catch (error) {
        await refuse(request, response, error, log);
      }
    },
    upgrade: (request, socket, head, context) =>
      streams.upgrade(request, socket, head, () => prepareStream(request, context)),
    async raw(user, path) {
      try {
        const answer = await answerRaw(user, path);
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

function kindOf(kinds: KindTable, info: RequestInfo): KindDefinition | undefined {
  const { resource } = info;
  return resource && kinds.find(resource.group, resource.version, resource.plural);
}

/** Answers what is not a route of a resource: other paths, and resources that are not there. */
function withoutRoute(
  chain: Chain,
  paths: Paths,
  request: IncomingMessage,
  info: RequestInfo,
  user: UserInfo,
  kind: KindDefinition | undefined,
): HttpAnswer {
  const { resource } = info;
  if (resource) {
    requireAccess(chain.authorizer, accessTo(user, resource));
    return kind && isMethodRefused(kind, info) ? methodRefused(request) : pageNotFound();
  }
  return isApiMethodRefused(info) ? methodRefused(request) : servePath(chain, paths, request, info, user);
}

function servePath(
  chain: Chain,
  paths: Paths,
  request: IncomingMessage,
  info: RequestInfo,
  user: UserInfo,
): HttpAnswer {
  const start = chain.env.clock.now();
  const userAgent = request.headers['user-agent'] ?? '';
  const note = (code: number): void => {
    const latency = chain.env.clock.now() - start;
    chain.audit.record({
      time: start,
      user: user.name,
      userAgent,
      verb: info.method,
      path: info.path,
      code,
      latency,
    });
  };
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
}

/** What /livez, /readyz and /healthz look at. The hooks have run before the server takes requests. */
function healthChecks(chain: Chain, isClosed: () => boolean): HealthCheck[] {
  return [
    { name: 'ping', check: silent },
    { name: 'etcd', check: () => void chain.env.storage.store.count('/registry/core/namespaces/') },
    { name: 'poststarthook/rbac/bootstrap-roles', check: silent },
    { name: 'poststarthook/scheduling/bootstrap-system-priority-classes', check: silent },
    {
      name: 'shutdown',
      readinessOnly: true,
      check() {
        if (isClosed()) throw failure(503, 'ServiceUnavailable', 'process is shutting down');
      },
    },
  ];
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
  if (response.headersSent) {
    response.destroy();
    return;
  }
  if (!request.complete) throwAway(request);
  try {
    await sendAnswer(request, response, statusAnswer(refusal, request.headers.accept));
  } catch (failed) {
    log.error({ err: failed }, 'a refusal could not be sent');
    response.destroy();
  }
}

/** What is read of a body nobody wants before the connection is cut. */
const MAX_UNWANTED_BYTES = 256 * 1024 * 1024;

/** Reads the rest of a refused body: a client that is still sending would otherwise see a broken pipe, not the answer. */
function throwAway(request: IncomingMessage): void {
  let size = 0;
  request.on('error', silent);
  request.on('data', (chunk: Buffer) => {
    size += chunk.length;
    if (size > MAX_UNWANTED_BYTES) request.destroy();
  });
  request.resume();
}

function toStatusError(error: unknown, log: Logger): StatusError {
  if (error instanceof PathError) return failure(400, 'BadRequest', error.message);
  return error instanceof StatusError ? error : asStatusError({ log }, {}, error);
}

function auditId(request: IncomingMessage): string | undefined {
  const header = request.headers['audit-id'];
  return typeof header === 'string' && /^[\x21-\x7e]{1,64}$/.test(header) ? header : undefined;
}
