import type { ClientRequest, IncomingMessage } from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';
import { errorMessage } from '#server/base';
import { type KubeObject, type Status, StatusError, type WatchEvent } from '#server/kube';
import { type Client, ConnectionError, type RestConfig } from './contract.ts';
import { deepFreeze } from './freeze.ts';
import { errorOf, failureOf, type HttpRequest, toHttp } from './http-request.ts';
import { createLineSplitter } from './line-splitter.ts';
import { createClient, defaultFieldManager, type Transport, type TransportRequest } from './requests.ts';

/** A Client that owns connections. */
export interface HttpClient extends Client {
  /** Ends all connections; what is under way fails with ConnectionError. */
  close(): void;
}

/** Bytes an answer other than a watch may have. */
const MAX_BODY = 64 * 1024 * 1024;
/** Bytes one event of a watch may have. */
const MAX_LINE = 16 * 1024 * 1024;
/** Milliseconds without a byte after which a request is given up; for a watch until its answer begins. */
const IDLE_LIMIT = 30_000;
/** The same for a watch that asked for bookmarks: servers send one about every minute. */
const WATCH_IDLE_LIMIT = 5 * 60_000;
/** Connections for requests; further requests wait for one. */
const MAX_SOCKETS = 32;
/** Connections for watches, each of which keeps its own. */
const MAX_WATCHES = 512;
/** How often TCP asks whether the other end is still there, milliseconds. */
const TCP_KEEP_ALIVE = 30_000;

interface Connection {
  open(http: HttpRequest, agent: Agent, idleLimit: number): ClientRequest;
  readonly requests: Agent;
  readonly watches: Agent;
}

function createConnection(config: RestConfig, userAgent: string): Connection {
  const base = new URL(config.server);
  const prefix = base.pathname.replace(/\/+$/, '');
  const tls = {
    ...(config.caPem ? { ca: config.caPem } : {}),
    ...(config.certPem ? { cert: config.certPem } : {}),
    ...(config.keyPem ? { key: config.keyPem } : {}),
    rejectUnauthorized: true,
  };
  const headers = {
    accept: 'application/json',
    'user-agent': userAgent,
    ...(config.token ? { authorization: `Bearer ${config.token}` } : {}),
  };
  return {
    requests: new Agent({ ...tls, keepAlive: true, keepAliveMsecs: TCP_KEEP_ALIVE, maxSockets: MAX_SOCKETS }),
    watches: new Agent({ ...tls, maxSockets: MAX_WATCHES }),
    open(http, agent, idleLimit) {
      const request = httpsRequest({
        agent,
        hostname: base.hostname.replace(/^\[|\]$/g, ''),
        port: base.port || 443,
        method: http.method,
        path: prefix + http.path,
        headers: {
          ...headers,
          ...(http.body === undefined
            ? {}
            : { 'content-type': http.contentType, 'content-length': Buffer.byteLength(http.body) }),
        },
        timeout: idleLimit,
      });
      request.on('timeout', () => request.destroy(new ConnectionError(`no answer for ${idleLimit} ms`)));
      request.on('socket', (socket) => socket.setKeepAlive(true, TCP_KEEP_ALIVE));
      return request;
    },
  };
}

function connectionError(error: unknown): ConnectionError {
  return error instanceof ConnectionError
    ? error
    : new ConnectionError(errorMessage(error), { cause: error });
}

interface Answer {
  code: number;
  text: string;
}

function readBody(response: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    response.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size <= MAX_BODY) chunks.push(chunk);
      else response.destroy(new ConnectionError(`an answer is longer than ${MAX_BODY} bytes`));
    });
    response.on('end', () => resolve(Buffer.concat(chunks).toString('utf8')));
    response.on('error', (error) => reject(connectionError(error)));
    response.on('close', () => {
      if (!response.complete) reject(new ConnectionError('the connection was closed within an answer'));
    });
  });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    // Not JSON: the caller says what that means.
    return undefined;
  }
}

function exchangeOnce(connection: Connection, http: HttpRequest): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = connection.open(http, connection.requests, IDLE_LIMIT);
    request.on('error', (error: NodeJS.ErrnoException) => {
      const stale = request.reusedSocket && error.code === 'ECONNRESET';
      reject(stale ? new StaleSocketError(error.message) : connectionError(error));
    });
    request.on('response', (response) => {
      readBody(response).then((text) => resolve({ code: response.statusCode ?? 0, text }), reject);
    });
    request.end(http.body);
  });
}

/** A kept connection turned out to have been closed by the server meanwhile. */
class StaleSocketError extends ConnectionError {}

/** One request and its whole answer. A read that met a stale kept connection is sent once more. */
async function exchange(connection: Connection, http: HttpRequest): Promise<Answer> {
  try {
    return await exchangeOnce(connection, http);
  } catch (error) {
    if (!(error instanceof StaleSocketError) || http.method !== 'GET') throw error;
    return exchangeOnce(connection, http);
  }
}

/** An event of the stream, or the StatusError an ERROR event carries. */
function parseEvent(line: string): WatchEvent | StatusError {
  const event = parseJson(line) as { type?: unknown; object?: unknown } | undefined;
  if (!event || typeof event.type !== 'string' || typeof event.object !== 'object' || event.object === null) {
    throw new ConnectionError('a watch sent a line that is no event');
  }
  if (event.type === 'ERROR') return failureOf(event.object) ?? new StatusError(event.object as Status);
  return deepFreeze(event as WatchEvent);
}

function watch(
  connection: Connection,
  request: TransportRequest,
  onEvent: (event: WatchEvent) => void,
  onEnd: (error?: unknown) => void,
): { stop(): void } {
  let over = false;
  const stream = connection.open(toHttp(request), connection.watches, IDLE_LIMIT);
  const end = (error?: unknown): void => {
    if (over) return;
    over = true;
    stream.destroy();
    onEnd(error);
  };
  const lines = createLineSplitter(MAX_LINE, (line) => {
    if (over) return;
    const event = parseEvent(line);
    if (event instanceof StatusError) end(event);
    else onEvent(event);
  });
  stream.on('error', (error) => end(connectionError(error)));
  stream.on('response', (response) => {
    const code = response.statusCode ?? 0;
    if (code !== 200) {
      readBody(response).then((text) => end(errorOf(request, code, parseJson(text), text)), end);
      return;
    }
    stream.setTimeout(request.query['allowWatchBookmarks'] === 'true' ? WATCH_IDLE_LIMIT : 0);
    response.on('data', (chunk: Buffer) => {
      try {
        lines.push(chunk);
      } catch (error) {
        end(connectionError(error));
      }
    });
    response.on('end', () => end());
    response.on('error', (error) => end(connectionError(error)));
    response.on('close', () => end(new ConnectionError('the connection was closed within a watch')));
  });
  stream.end();
  return {
    stop() {
      over = true;
      stream.destroy();
    },
  };
}

function createHttpTransport(connection: Connection): Transport {
  return {
    async request(request) {
      const { code, text } = await exchange(connection, toHttp(request));
      const body = parseJson(text);
      if (code < 200 || code > 299) throw errorOf(request, code, body, text);
      const refusal = failureOf(body);
      if (refusal) throw refusal;
      if (typeof body !== 'object' || body === null)
        throw new ConnectionError('what answered is no API server');
      return deepFreeze(body as KubeObject);
    },
    watch: (request, onEvent, onEnd) => watch(connection, request, onEvent, onEnd),
    async raw(path) {
      const { code, text } = await exchange(connection, { method: 'GET', path });
      return { status: code, body: deepFreeze(parseJson(text) ?? text) };
    },
  };
}

/**
 * A Client over HTTPS. Connections are kept between requests; the server's certificate is always verified (against
 * `caPem`, or the system's roots without one). Answers are bounded, silent servers are given up: ConnectionError.
 * Nothing but a read that met a stale kept connection is ever sent twice.
 */
export function createHttpClient(
  config: RestConfig,
  options: { userAgent: string; fieldManager?: string },
): HttpClient {
  const connection = createConnection(config, options.userAgent);
  const client = createClient(
    createHttpTransport(connection),
    options.fieldManager ?? defaultFieldManager(options.userAgent),
  );
  return {
    ...client,
    close() {
      connection.requests.destroy();
      connection.watches.destroy();
    },
  };
}
