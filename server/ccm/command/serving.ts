import { createServer } from 'node:http';
import type { NetworkNamespace, ProbeAnswer } from '#server/node';
import type { CloudMetrics } from '../metrics.ts';

export interface ServingOptions {
  network: NetworkNamespace;
  port: number;
  metrics: CloudMetrics;
  /** The names of what is healthy as long as the process runs. */
  checks(): readonly string[];
}

const NOT_FOUND: ProbeAnswer = { status: 404, body: '404 page not found\n' };

/**
 * Serves /healthz and /metrics to the pod's network, without TLS and to everybody. Throws NetworkError when the port is
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
  const listener = network.listen(port, ({ stream }) => void server.emit('connection', stream), {
    health: answer,
  });
  return {
    close() {
      listener.close();
      server.closeAllConnections();
    },
  };
}
