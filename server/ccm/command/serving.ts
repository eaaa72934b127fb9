import { createServer } from 'node:http';
import { OperationalError } from '#server/base';
import {
  type Connection,
  type Listener,
  NetworkError,
  type NetworkNamespace,
  type ProbeAnswer,
} from '#server/node';
import type { CloudMetrics } from '../metrics.ts';

export interface ServingOptions {
  network: NetworkNamespace;
  port: number;
  metrics: CloudMetrics;
  /** The names of what is healthy as long as the process runs. */
  checks: () => readonly string[];
}

const NOT_FOUND: ProbeAnswer = { status: 404, body: '404 page not found\n' };

/**
 * Serves /healthz and /metrics to the pod's network, without TLS and to everybody. Throws OperationalError when the port is
 * taken. Models k8s.io/controller-manager/app/serve.go and k8s.io/apiserver/pkg/server/healthz, less authentication.
 */
export function serveHealth({ network, port, metrics, checks }: ServingOptions): { close(): void } {
  const answer = async (url: string): Promise<ProbeAnswer> => {
    const { pathname, searchParams } = new URL(url, 'http://localhost');
    if (pathname === '/metrics') return { status: 200, body: await metrics.text() };
    const names = ['ping', ...checks()];
    if (pathname === '/healthz') {
      const lines = names.map((name) => `[+]${name} ok\n`).join('');
      return { status: 200, body: searchParams.has('verbose') ? `${lines}healthz check passed\n` : 'ok' };
    }
    return names.some((name) => pathname === `/healthz/${name}`) ? { status: 200, body: 'ok' } : NOT_FOUND;
  };
  const server = createServer((request, response) => {
    void answer(request.url ?? '/').then(
      ({ status, body }) => {
        response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' }).end(body);
      },
      () => response.writeHead(500).end(),
    );
  });
  const listener = listenOn(port, () => {
    const accept = ({ stream }: Connection): void => void server.emit('connection', stream);
    return network.listen(port, accept, { health: answer });
  });
  return {
    close() {
      listener.close();
      server.closeAllConnections();
    },
  };
}

function listenOn(port: number, listen: () => Listener): Listener {
  try {
    return listen();
  } catch (error) {
    if (!(error instanceof NetworkError) || error.code !== 'EADDRINUSE') throw error;
    const where = `0.0.0.0:${port}`;
    throw new OperationalError(
      `failed to create listener: failed to listen on ${where}: listen tcp ${where}: bind: address already in use`,
    );
  }
}
