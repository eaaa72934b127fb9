import type { Program } from '../contract.ts';
import { serveHttp, untilStopped } from './http-server.ts';

/** registry.k8s.io/e2e-test-images/agnhost: `netexec`, `serve-hostname`, `pause`. */
export const agnhost: Program = {
  async run(process) {
    const command = process.argv[1] ?? 'pause';
    const option = (name: string, fallback: string): string => {
      for (const [index, arg] of process.argv.entries()) {
        const match = new RegExp(`^--${name}(?:=(.*))?$`).exec(arg);
        if (match) return match[1] ?? process.argv[index + 1] ?? fallback;
      }
      return fallback;
    };
    if (command === 'pause') {
      process.stdout.write('Paused\n');
      await untilStopped(process);
      return 0;
    }
    if (command !== 'netexec' && command !== 'serve-hostname') {
      process.stderr.write(`Error: unknown command "${command}" for "app"\n`);
      return 1;
    }
    const port = Number(
      option(command === 'netexec' ? 'http-port' : 'port', command === 'netexec' ? '8080' : '9376'),
    );
    const started = process.clock.now();
    const listener = serveHttp(process.network, port, (request, response) => {
      const path = (request.url ?? '/').split('?')[0];
      const query = new URLSearchParams((request.url ?? '').split('?')[1] ?? '');
      const socket = request.socket as { remoteAddress?: string; remotePort?: number };
      if (command === 'serve-hostname' || path === '/hostname' || path === '/hostName')
        response.end(process.pod.name);
      else if (path === '/clientip') response.end(`${socket.remoteAddress}:${socket.remotePort}`);
      else if (path === '/echo') response.end(query.get('msg') ?? '');
      else if (path === '/healthz') response.end('ok');
      else if (path === '/')
        response.end(
          `NOW: ${new Date(process.clock.now()).toISOString()} (started ${new Date(started).toISOString()})`,
        );
      else {
        response.writeHead(404);
        response.end('404 page not found\n');
      }
    });
    await untilStopped(process);
    listener.close();
    return 0;
  },
};
