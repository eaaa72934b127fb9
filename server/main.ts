// The one file that builds everything and starts it: settings, the web server, the cluster process, the user's tenant.
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import {
  createClock,
  createDisposables,
  createLogger,
  createRandomIds,
  errorMessage,
  OperationalError,
} from '#server/base';
import { createHttpClient, parseKubeconfig } from '#server/client';
import { startClusterProcess } from '#server/cluster';
import { createRoutes, loadAccessToken, type RoutesOptions, startHttpServer } from '#server/http';
import { createKubeconfigs, createTenants } from '#server/tenants';
import { prepareDataDir, readSettings } from './settings.ts';

/** The one user of a solo installation. */
const SOLO_USER = 'solo';
const started = performance.now();
const running = createDisposables();
const abort = new AbortController();
let ending: Promise<void> | undefined;

/** Stops everything in reverse order and ends the process. Only the first call counts. */
function end(code: number): void {
  abort.abort();
  ending ??= running.dispose().then(
    () => process.exit(code),
    (error: unknown) => {
      process.stderr.write(`kube-classroom: stopping failed: ${errorMessage(error)}\n`);
      process.exit(1);
    },
  );
}

async function main(): Promise<void> {
  const settings = readSettings(process.env);
  prepareDataDir(settings.dataDir);
  const log = createLogger({ level: settings.logLevel, name: 'web' });
  const clock = createClock();
  const ids = createRandomIds();
  const token = loadAccessToken(settings.dataDir, ids);
  const state: { owned: ReturnType<RoutesOptions['owned']>; ready: boolean; waitingFor: string } = {
    owned: undefined,
    ready: false,
    waitingFor: 'the management cluster',
  };
  // The web port first: a second start fails before it touches any data.
  const web = await startHttpServer({
    host: settings.host,
    port: settings.port,
    token,
    routes: createRoutes({
      owned: () => state.owned,
      readiness: () => state,
      metrics: createMetrics(() => state.ready),
      metricsToken: settings.metricsToken,
      publicApiUrl: settings.publicApiUrl,
    }),
    log,
  });
  running.defer(() => web.close());

  const clusters = await startClusterProcess({
    dataDir: settings.dataDir,
    host: settings.host,
    port: settings.apiPort,
    portIsFixed: settings.apiPortIsFixed,
    names: settings.publicApiUrl ? [new URL(settings.publicApiUrl).hostname] : [],
    cloudSpeed: settings.cloudSpeed,
    storeSync: settings.storeSync,
    logLevel: settings.logLevel,
  });
  running.defer(() => clusters.stop());
  void clusters.ended.then((how) => {
    if (ending) return;
    process.stderr.write(
      `kube-classroom: the cluster process ${how}. Everything acknowledged is kept; start again with: npm start\n`,
    );
    end(1);
  });

  const managementConfig = parseKubeconfig(clusters.adminKubeconfig);
  const management = createHttpClient(managementConfig, { userAgent: 'kube-classroom/0.1' });
  running.defer(() => management.close());
  const tenants = createTenants({ management, clock, ids, log });
  state.waitingFor = 'the tenant cluster to be applied';
  const tenant = await tenants.ensure(SOLO_USER);
  state.owned = {
    tenant,
    kubeconfigs: createKubeconfigs({ tenants, management, managementConfig, clock, ids }),
  };
  state.waitingFor = `the cluster ${tenant.namespace}/${tenant.cluster} to be born`;
  await tenants.ready(tenant, abort.signal);
  state.ready = true;
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  process.stdout.write(
    `kube-classroom is ready after ${seconds} s: cluster ${tenant.cluster} (clusters at ${clusters.url})\n` +
      `http://${settings.host}:${web.port}/?t=${token.value}\n`,
  );
}

function createMetrics(ready: () => boolean): Registry {
  const metrics = new Registry();
  collectDefaultMetrics({ register: metrics });
  new Gauge({
    name: 'kube_classroom_ready',
    help: "1 when the user's cluster is ready",
    registers: [metrics],
    collect() {
      this.set(ready() ? 1 : 0);
    },
  });
  return metrics;
}

process.on('SIGINT', () => end(0));
process.on('SIGTERM', () => end(0));
main().catch((error: unknown) => {
  if (ending) return;
  const remedy = error instanceof OperationalError ? error.remedy : undefined;
  process.stderr.write(
    `kube-classroom: ${errorMessage(error)}\n${remedy ? `  To mend it: ${remedy}.\n` : ''}`,
  );
  end(1);
});
