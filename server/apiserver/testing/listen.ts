/* eslint-disable @typescript-eslint/no-explicit-any -- answers are read as whatever they are */
import { createServer, request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ApiServer } from '../server.ts';

export interface HttpReply {
  code: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
  text: string;
  json(): any;
}

export interface TestListener {
  port: number;
  /** One whole request. `token` defaults to the listener's. */
  send(method: string, path: string, options?: SendOptions): Promise<HttpReply>;
  /** A watch: lines as they come, until `stop`. */
  stream(path: string, options?: SendOptions): TestStream;
  close(): Promise<void>;
}

export interface SendOptions {
  headers?: Record<string, string>;
  body?: string | Uint8Array | object;
  token?: string;
}

export interface TestStream {
  /** The next `count` lines, parsed. */
  next(count: number): Promise<any[]>;
  nextText(count: number): Promise<string[]>;
  readonly ended: Promise<void>;
  readonly paused: () => void;
  stop(): void;
}

/** Puts a server behind a plain HTTP listener on 127.0.0.1. */
export async function listen(server: ApiServer, defaultToken = ''): Promise<TestListener> {
  const http = createServer((request, response) => {
    void server.handle(request, response, { path: request.url ?? '/' });
  });
  http.on('upgrade', (request, socket, head) => {
    void server.upgrade(request, socket, head, { path: request.url ?? '/' });
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  const { port } = http.address() as AddressInfo;
  const headersOf = (options: SendOptions): Record<string, string> => {
    const token = options.token ?? defaultToken;
    return { ...(token ? { authorization: `Bearer ${token}` } : {}), ...options.headers };
  };
  return {
    port,
    send(method, path, options = {}) {
      const body = options.body;
      const bytes =
        body === undefined
          ? undefined
          : typeof body === 'string' || body instanceof Uint8Array
            ? body
            : JSON.stringify(body);
      const headers = headersOf(options);
      if (bytes !== undefined && !headers['content-type']) headers['content-type'] = 'application/json';
      if (bytes !== undefined) headers['content-length'] = String(Buffer.byteLength(bytes));
      return new Promise((resolve, reject) => {
        const sent = httpRequest({ host: '127.0.0.1', port, method, path, headers }, (reply) => {
          const chunks: Buffer[] = [];
          reply.on('data', (chunk: Buffer) => chunks.push(chunk));
          reply.on('error', reject);
          reply.on('end', () => {
            const all = Buffer.concat(chunks);
            const text = all.toString('utf8');
            resolve({
              code: reply.statusCode ?? 0,
              headers: reply.headers,
              body: all,
              text,
              json: () => JSON.parse(text),
            });
          });
        });
        sent.on('error', reject);
        sent.end(bytes);
      });
    },
    stream(path, options = {}) {
      const lines: string[] = [];
      let rest = '';
      let wake = (): void => undefined;
      let finish = (): void => undefined;
      const ended = new Promise<void>((resolve) => {
        finish = resolve;
      });
      let pause = (): void => undefined;
      const sent = httpRequest(
        { host: '127.0.0.1', port, method: 'GET', path, headers: headersOf(options) },
        (reply) => {
          pause = () => void reply.pause();
          reply.setEncoding('utf8');
          reply.on('data', (chunk: string) => {
            const parts = (rest + chunk).split('\n');
            rest = parts.pop() ?? '';
            lines.push(...parts);
            wake();
          });
          reply.on('close', () => {
            finish();
            wake();
          });
          reply.on('error', () => finish());
        },
      );
      sent.on('error', () => finish());
      sent.end();
      return {
        ended,
        paused: () => pause(),
        async nextText(count) {
          while (lines.length < count) {
            await new Promise<void>((resolve) => {
              wake = resolve;
            });
          }
          return lines.splice(0, count);
        },
        async next(count) {
          return (await this.nextText(count)).map((text) => JSON.parse(text));
        },
        stop: () => void sent.destroy(),
      };
    },
    close: () =>
      new Promise((resolve) => {
        http.close(() => resolve());
        http.closeAllConnections();
      }),
  };
}
