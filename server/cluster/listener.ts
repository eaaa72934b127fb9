import type { X509Certificate } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { type Duplex, getDefaultHighWaterMark, setDefaultHighWaterMark } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import type { HttpContext } from '#server/apiserver';
import { type Logger, OperationalError } from '#server/base';
import { badRequest, failure, type StatusError, serviceUnavailable } from '#server/kube';
import type { ClusterDirectory } from './directory.ts';

export interface Listener {
  readonly port: number;
  /** Ends all connections. */
  close(): Promise<void>;
}

export interface ListenerOptions {
  directory: ClusterDirectory;
  serving: { certPem: string; keyPem: string };
  host: string;
  /** 0 takes a free port. */
  port: number;
  /** Host names, without port, that requests may address. */
  hostNames: ReadonlySet<string>;
  log: Logger;
}

const PREFIX = '/clusters/';
/** As kube-apiserver's --request-timeout does for what is not a watch; streams have no end. */
const HEADERS_TIMEOUT = 60_000;
/** 64 KiB of headers: kubectl's own are under 2. */
const MAX_HEADER_SIZE = 64 * 1024;

/**
 * The one HTTPS listener of all clusters. A client certificate is asked for, never demanded: whom it proves is decided
 * at each request, by the cluster that is addressed.
 */
export async function createListener(options: ListenerOptions): Promise<Listener> {
  const server = createServer({
    cert: options.serving.certPem,
    key: options.serving.keyPem,
    requestCert: true,
    rejectUnauthorized: false,
    minVersion: 'TLSv1.2',
    ALPNProtocols: ['http/1.1'],
    maxHeaderSize: MAX_HEADER_SIZE,
  });
  keepParserRunning(server);
  server.headersTimeout = HEADERS_TIMEOUT;
  server.requestTimeout = 0;
  server.keepAliveTimeout = 180_000;

  const certificates = new WeakMap<Duplex, { certificate: X509Certificate | undefined }>();
  const peerCertificate = (socket: Duplex): X509Certificate | undefined => {
    const known = certificates.get(socket);
    if (known) return known.certificate;
    const certificate = (socket as TLSSocket).getPeerX509Certificate();
    certificates.set(socket, { certificate });
    return certificate;
  };

  const route = (request: IncomingMessage): { context: HttpContext; path: string } | StatusError => {
    const refusal = refuseForeign(request, options.hostNames);
    if (refusal) return refusal;
    const located = splitPath(request.url ?? '/');
    if (!located) return notACluster(request.url ?? '/');
    const certificate = peerCertificate(request.socket);
    return {
      path: located.cluster,
      context: { path: located.rest, ...(certificate ? { peerCertificate: certificate } : {}) },
    };
  };
  const unavailable = (path: string): StatusError =>
    options.directory.known(path)
      ? serviceUnavailable(
          `the API server of cluster ${path} does not run: its machine is off or still booting`,
        )
      : notACluster(path);

  server.on('request', (request, response) => {
    const target = route(request);
    if (!('context' in target)) return answer(response, target);
    const entry = options.directory.get(target.path);
    if (!entry) return answer(response, unavailable(target.path));
    entry.server.handle(request, response, target.context).catch((error: unknown) => {
      options.log.error({ err: error, url: request.url }, 'a request ended in an error that nobody rendered');
      if (!response.headersSent) answer(response, failure(500, 'InternalError', 'Internal error occurred'));
      else response.destroy();
    });
  });
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', (error) => options.log.debug({ err: error }, 'an upgraded connection broke'));
    const target = route(request);
    if (!('context' in target)) return refuseUpgrade(socket, target);
    const entry = options.directory.get(target.path);
    if (!entry) return refuseUpgrade(socket, unavailable(target.path));
    entry.server.upgrade(request, socket, head, target.context).catch((error: unknown) => {
      options.log.error(
        { err: error, url: request.url },
        'an upgrade ended in an error that nobody rendered',
      );
      socket.destroy();
    });
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
    const status =
      error.code === 'HPE_HEADER_OVERFLOW' ? '431 Request Header Fields Too Large' : '400 Bad Request';
    socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  });

  await listen(server, options);
  const { port } = server.address() as AddressInfo;
  return {
    port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Bytes of an answer a connection takes before it counts as full. */
const SOCKET_HIGH_WATER_MARK = 8 * 1024 * 1024;

/**
 * Node 20 pauses a connection's HTTP parser while an answer is larger than what the socket buffers, and then fails the next
 * request on it ("Parse Error: Paused") when that one arrives in several chunks: kubectl sees EOF. Sockets of this server
 * therefore buffer more; TLS sockets take the size only from the process-wide default at the moment they are made.
 */
function keepParserRunning(server: ReturnType<typeof createServer>): void {
  const usual = getDefaultHighWaterMark(false);
  server.prependListener('connection', () => setDefaultHighWaterMark(false, SOCKET_HIGH_WATER_MARK));
  server.on('connection', () => setDefaultHighWaterMark(false, usual));
}

function listen(server: ReturnType<typeof createServer>, options: ListenerOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      reject(
        new OperationalError(
          `cannot listen on ${options.host}:${options.port}: ${cause.code ?? cause.message}`,
          {
            cause,
            remedy: 'set API_PORT to a free port',
          },
        ),
      );
    });
    server.listen(options.port, options.host, () => {
      server.removeAllListeners('error');
      server.on('error', (error) => options.log.error({ err: error }, 'the listener of the clusters failed'));
      resolve();
    });
  });
}

/**
 * `/clusters/management/api` → `management` + `/api`; `/clusters/<ns>/<name>/api` → `<ns>/<name>` + `/api`. Undefined
 * for anything else, `.`/`..` segments and encoded slashes in the prefix among it.
 */
export function splitPath(url: string): { cluster: string; rest: string } | undefined {
  if (!url.startsWith(PREFIX)) return undefined;
  const query = url.indexOf('?');
  const path = query < 0 ? url : url.slice(0, query);
  const segments = path.slice(PREFIX.length).split('/');
  const count = segments[0] === 'management' ? 1 : 2;
  const cluster = segments.slice(0, count);
  if (cluster.length < count || !cluster.every((segment) => /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/.test(segment)))
    return undefined;
  const rest = `/${segments.slice(count).join('/')}`;
  if (rest.split('/').some((segment) => /^(\.|%2e)+$/i.test(segment))) return undefined;
  return { cluster: cluster.join('/'), rest: query < 0 ? rest : rest + url.slice(query) };
}

/** A browser has no business here, and neither has a name that is not ours (DNS rebinding). */
function refuseForeign(request: IncomingMessage, hostNames: ReadonlySet<string>): StatusError | undefined {
  const host = (request.headers.host ?? '')
    .replace(/:\d+$/, '')
    .replace(/^\[|\]$/g, '')
    .toLowerCase();
  if (!hostNames.has(host))
    return failure(421, 'BadRequest', `this server does not answer for the host ${JSON.stringify(host)}`);
  if (request.headers.origin !== undefined)
    return failure(403, 'Forbidden', 'requests of web pages are refused');
  return undefined;
}

function notACluster(path: string): StatusError {
  return path.includes('..') || /%2e/i.test(path)
    ? badRequest('a path with . or .. segments is refused')
    : failure(404, 'NotFound', 'no cluster of this server has this path');
}

function answer(response: ServerResponse, error: StatusError): void {
  const body = `${JSON.stringify(error.status)}\n`;
  response.writeHead(error.code, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
  });
  response.end(body);
}

function refuseUpgrade(socket: Duplex, error: StatusError): void {
  const body = `${JSON.stringify(error.status)}\n`;
  socket.end(
    `HTTP/1.1 ${error.code} ${error.reason}\r\nContent-Type: application/json\r\nConnection: close\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}
