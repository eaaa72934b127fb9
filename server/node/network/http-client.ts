import http from 'node:http';
import type { Duplex } from 'node:stream';
import tls from 'node:tls';
import type { NetworkNamespace } from '../contract.ts';

/** The other side spoke no HTTP, or hung up. */
export class HttpFailure extends Error {
  override readonly name = 'HttpFailure';
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
}

/** One GET over the simulated network, its body cut at `limit` bytes. TLS is not verified. Rejects with NetworkError or HttpFailure. */
export async function httpRequest(
  network: Pick<NetworkNamespace, 'connect'>,
  request: {
    ip: string;
    port: number;
    tls: boolean;
    path: string;
    host: string;
    headers: Readonly<Record<string, string>>;
    signal: AbortSignal;
    limit: number;
  },
): Promise<HttpAnswer> {
  const raw = await network.connect(request.ip, request.port, { signal: request.signal });
  const stream: Duplex = request.tls ? tls.connect({ socket: raw, rejectUnauthorized: false }) : raw;
  return new Promise((resolve, reject) => {
    const fail = (error: Error): void => {
      stream.destroy();
      reject(new HttpFailure(error.message === 'socket hang up' ? 'EOF' : error.message));
    };
    const outgoing = http.request({
      createConnection: () => stream,
      method: 'GET',
      path: request.path,
      headers: { Host: request.host, ...request.headers, Connection: 'close' },
      signal: request.signal,
    });
    outgoing.on('error', fail);
    outgoing.on('response', (answer) => {
      const parts: Buffer[] = [];
      let size = 0;
      answer.on('data', (chunk: Buffer) => {
        if (size < request.limit) parts.push(chunk);
        size += chunk.length;
      });
      answer.on('error', fail);
      answer.on('end', () => {
        stream.destroy();
        resolve({
          status: answer.statusCode ?? 0,
          headers: answer.headers,
          body: Buffer.concat(parts).subarray(0, request.limit).toString('utf8'),
        });
      });
    });
    outgoing.end();
  });
}
