// The cluster process: every embedded cluster of this installation lives here. Started by the web process, which it
// does not outlive: when the IPC channel closes, for whatever reason, it ends.
import { createClock, createLogger, createRandomIds, errorMessage, OperationalError } from '#server/base';
import { startEmbeddedClusters } from './embedded.ts';
import { type Report, startOptions } from './messages.ts';

const options = startOptions.parse(JSON.parse(process.argv[2] ?? '{}'));
const log = createLogger({ level: options.logLevel, name: 'cluster' });
/** How many ports after API_PORT are tried when it is taken and was not asked for by name. */
const PORTS_TRIED = 20;

function tell(report: Report): void {
  process.send?.(report);
}

async function start(): Promise<Awaited<ReturnType<typeof startEmbeddedClusters>>> {
  const clock = createClock();
  const ids = createRandomIds();
  for (let offset = 0; ; offset++) {
    try {
      return await startEmbeddedClusters({
        ...options,
        port: options.port === 0 ? 0 : options.port + offset,
        clock,
        ids,
        log,
      });
    } catch (error) {
      const taken = error instanceof OperationalError && error.message.includes('EADDRINUSE');
      if (!taken || options.portIsFixed || offset >= PORTS_TRIED) throw error;
    }
  }
}

process.on('uncaughtException', (error) => {
  log.error({ err: error }, 'an exception reached the top of the cluster process');
  process.exit(70);
});
process.on('unhandledRejection', (error) => {
  log.error({ err: error }, 'a rejection reached the top of the cluster process');
  process.exit(70);
});

try {
  const clusters = await start();
  let stopping = false;
  const stop = (): void => {
    if (stopping) return;
    stopping = true;
    clusters.stop().then(
      () => process.exit(0),
      (error: unknown) => {
        log.error({ err: error }, 'the clusters did not stop cleanly');
        process.exit(1);
      },
    );
  };
  process.on('disconnect', stop);
  process.on('SIGTERM', stop);
  // Ctrl-C reaches the whole process group; the web process decides when.
  process.on('SIGINT', () => undefined);
  tell({
    type: 'ready',
    url: clusters.url,
    port: clusters.port,
    adminKubeconfig: clusters.adminKubeconfig,
    pid: process.pid,
  });
  if (!process.connected) stop();
} catch (error) {
  const remedy = error instanceof OperationalError ? error.remedy : undefined;
  if (!(error instanceof OperationalError)) log.error({ err: error }, 'the clusters could not be started');
  tell({ type: 'failed', message: errorMessage(error), ...(remedy === undefined ? {} : { remedy }) });
  process.exit(1);
}
