import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Logger, OperationalError } from '#server/base';
import { failure, internalError, StatusError } from '#server/kube';
import type { AccessToken } from './access-token.ts';

/** One route: a method, a path (segments may be `:name`) and its handler. */
export interface Route {
  method: 'GET' | 'POST' | 'DELETE';
  path: string;
  /** Answered without the access token (probes). */
  open?: boolean;
  /** One line for the API description. */
  summary: string;
  /** Names and meanings of query parameters. */
  query?: Readonly<Record<string, string>>;
  handle(request: RouteRequest): Promise<RouteAnswer> | RouteAnswer;
}

export interface RouteRequest {
  params: Readonly<Record<string, string>>;
  query: URLSearchParams;
  /** The socket's other end is this machine. */
  loopback: boolean;
  bearer: string | undefined;
}

export interface RouteAnswer {
  status?: number;
  contentType: string;
  body: string;
  headers?: Readonly<Record<string, string>>;
}

export interface HttpServer {
  readonly port: number;
  close(): Promise<void>;
}

export interface HttpServerOptions {
  host: string;
  port: number;
  token: AccessToken;
  routes: readonly Route[];
  log: Logger;
}

const COOKIE = 'kube-classroom';
/** Nothing of today's API takes a body; what is longer than this is refused before it is read. */
const MAX_BODY = 64 * 1024;
const MAX_HEADER_SIZE = 16 * 1024;
const MAX_URL = 4096;

/**
 * The web server. Every request is checked for Host, Origin and the access token before a route sees it; every refusal
 * is a JSON Status. Rejects with OperationalError when the port cannot be had.
 */
export async function startHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const server = createServer({
    maxHeaderSize: MAX_HEADER_SIZE,
    requestTimeout: 30_000,
    headersTimeout: 15_000,
  });
  let hosts: ReadonlySet<string> = new Set();
  server.on('request', (request, response) => {
    answerRequest(request, response, options, hosts).catch((error: unknown) => {
      options.log.error({ err: error, url: request.url }, 'an answer could not be sent');
      response.destroy();
    });
  });
  server.on('upgrade', (_request, socket) => {
    socket.end('HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
  });
  server.on('clientError', (_error, socket) => {
    if (socket.writable)
      socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
    else socket.destroy();
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      const why = cause.code === 'EADDRINUSE' ? 'it is in use by another program' : cause.message;
      reject(
        new OperationalError(`cannot listen on port ${options.port} (${options.host}): ${why}`, {
          cause,
          remedy: 'end the other program, or set PORT to a free port',
        }),
      );
    });
    server.listen(options.port, options.host, resolve);
  });
  server.removeAllListeners('error');
  server.on('error', (error) => options.log.error({ err: error }, 'the web server failed'));
  const { port } = server.address() as AddressInfo;
  hosts = new Set(['127.0.0.1', 'localhost', '[::1]', options.host].map((name) => `${name}:${port}`));
  return {
    port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answerRequest(
  request: IncomingMessage,
  response: ServerResponse,
  options: HttpServerOptions,
  hosts: ReadonlySet<string>,
): Promise<void> {
  let answer: RouteAnswer;
  try {
    answer = await route(request, options, hosts);
  } catch (error) {
    if (!(error instanceof StatusError))
      options.log.error({ err: error, url: request.url }, 'a route failed');
    const refusal =
      error instanceof StatusError
        ? error
        : internalError('the server failed; its log says why. Nothing was changed.');
    const retry = refusal.status.details?.retryAfterSeconds;
    answer = {
      status: refusal.code,
      contentType: 'application/json',
      body: `${JSON.stringify(refusal.status)}\n`,
      ...(retry === undefined ? {} : { headers: { 'retry-after': String(retry) } }),
    };
  }
  request.resume();
  response.writeHead(answer.status ?? 200, {
    'content-type': answer.contentType,
    'content-length': Buffer.byteLength(answer.body),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cross-origin-resource-policy': 'same-origin',
    ...answer.headers,
  });
  response.end(request.method === 'HEAD' ? undefined : answer.body);
}

async function route(
  request: IncomingMessage,
  options: HttpServerOptions,
  hosts: ReadonlySet<string>,
): Promise<RouteAnswer> {
  checkOrigin(request, hosts);
  if (
    Number(request.headers['content-length'] ?? 0) > MAX_BODY ||
    request.headers['transfer-encoding'] !== undefined
  ) {
    throw failure(
      413,
      'RequestEntityTooLarge',
      `a body of more than ${MAX_BODY} bytes, or of unknown length, is refused`,
    );
  }
  const target = parseTarget(request.url ?? '/');
  const bearer = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1];
  const matching = options.routes
    .map((candidate) => ({ candidate, params: matchPath(candidate.path, target.pathname) }))
    .filter((match) => match.params !== undefined);
  const method = request.method === 'HEAD' ? 'GET' : request.method;
  const found = matching.find(({ candidate }) => candidate.method === method);
  if (!found?.candidate.open) {
    const login = tokenLogin(request, target, options.token);
    if (login) return login;
    if (!options.token.matches(bearer) && !options.token.matches(cookie(request))) {
      throw failure(
        401,
        'Unauthorized',
        'the access token is missing or wrong: open the address that `npm start` printed, or send it as a Bearer token',
      );
    }
  }
  if (!found) {
    if (matching.length === 0) throw failure(404, 'NotFound', `there is nothing at ${target.pathname}`);
    throw failure(405, 'MethodNotAllowed', `${request.method} is not offered at ${target.pathname}`);
  }
  const remote = request.socket.remoteAddress ?? '';
  const loopback = remote === '::1' || remote.startsWith('127.') || remote.startsWith('::ffff:127.');
  return found.candidate.handle({ params: found.params ?? {}, query: target.searchParams, loopback, bearer });
}

/** DNS rebinding comes with a Host that is not ours, other people's pages with an Origin that is not ours. */
function checkOrigin(request: IncomingMessage, hosts: ReadonlySet<string>): void {
  const host = (request.headers.host ?? '').toLowerCase();
  if (!hosts.has(host))
    throw failure(421, 'BadRequest', `this server does not answer for the host ${JSON.stringify(host)}`);
  const { origin } = request.headers;
  if (origin !== undefined && origin !== `http://${host}`)
    throw failure(403, 'Forbidden', `requests of ${JSON.stringify(origin)} are refused`);
}

function parseTarget(url: string): URL {
  if (url.length > MAX_URL) throw failure(414, 'BadRequest', 'the address is too long');
  if (!url.startsWith('/') || url.startsWith('//'))
    throw failure(400, 'BadRequest', 'the request target must be a path');
  try {
    return new URL(url, 'http://localhost');
  } catch {
    throw failure(400, 'BadRequest', 'the request target is no URL');
  }
}

function matchPath(pattern: string, path: string): Record<string, string> | undefined {
  const [wanted, given] = [pattern.split('/'), path.split('/')];
  if (wanted.length !== given.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, segment] of wanted.entries()) {
    const value = given[index] ?? '';
    if (segment.startsWith(':')) params[segment.slice(1)] = value;
    else if (segment !== value) return undefined;
  }
  return params;
}

function cookie(request: IncomingMessage): string | undefined {
  const found = (request.headers.cookie ?? '').split(/;\s*/).find((part) => part.startsWith(`${COOKIE}=`));
  return found?.slice(COOKIE.length + 1);
}

/** `?t=<token>` becomes a cookie and a redirect to the same place without it, so that it stays in no history. */
function tokenLogin(request: IncomingMessage, target: URL, token: AccessToken): RouteAnswer | undefined {
  const given = target.searchParams.get('t');
  if (given === null || request.method !== 'GET' || !token.matches(given)) return undefined;
  const clean = new URL(target);
  clean.searchParams.delete('t');
  return {
    status: 303,
    contentType: 'text/plain',
    body: '',
    headers: {
      location: `${clean.pathname}${clean.search}`,
      'set-cookie': `${COOKIE}=${token.value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=31536000`,
    },
  };
}
