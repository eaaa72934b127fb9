import http from 'node:http';
import type { Listener, ListenOptions, NetworkNamespace } from '../contract.ts';

/** A request this long or slow is cut off. */
const MAX_HEADER_BYTES = 16 * 1024;

/**
 * Serves HTTP on a port of the simulated network. Throws NetworkError EADDRINUSE. Closing ends open connections.
 * The listener keeps no timer: an idle server costs nothing.
 */
export function serveHttp(
  network: NetworkNamespace,
  port: number,
  handle: (request: http.IncomingMessage, response: http.ServerResponse) => void,
  options?: ListenOptions,
): Listener {
  const server = http.createServer({ maxHeaderSize: MAX_HEADER_BYTES, keepAlive: false }, handle);
  const open = new Set<{ destroy(): void }>();
  const listener = network.listen(
    port,
    ({ stream }) => {
      open.add(stream);
      stream.once('close', () => open.delete(stream));
      server.emit('connection', stream);
    },
    options,
  );
  return {
    port: listener.port,
    close() {
      listener.close();
      for (const stream of open) stream.destroy();
    },
  };
}

/** Resolves when a process is told to end (or killed): how servers wait. */
export function untilStopped(process: {
  signal: AbortSignal;
  onSignal(handler: (signal: 'SIGTERM' | 'SIGINT' | 'SIGHUP' | 'SIGQUIT') => void): void;
}): Promise<void> {
  return new Promise((resolve) => {
    process.onSignal((signal) => {
      if (signal !== 'SIGHUP') resolve();
    });
    process.signal.addEventListener('abort', () => resolve(), { once: true });
    if (process.signal.aborted) resolve();
  });
}
