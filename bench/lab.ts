import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createClock, createRandomIds, silentLogger } from '#server/base';
import { createHttpClient, type HttpClient, parseKubeconfig, type RestConfig } from '#server/client';
import { type ClusterProcess, startClusterProcess } from '#server/cluster';
import { createTenants, type Tenant, type Tenants } from '#server/tenants';

/** A cluster process of its own with nothing in it, driven over HTTPS as the web process drives it. */
export interface Lab {
  readonly clusters: ClusterProcess;
  readonly managementConfig: RestConfig;
  readonly management: HttpClient;
  readonly tenants: Tenants;
  /** Applies a tenant for a new user and waits until its Node is initialised; milliseconds. */
  birth(user: string): Promise<{ tenant: Tenant; milliseconds: number }>;
  /** Resident memory of the cluster process, bytes. */
  memory(): number;
  stop(): Promise<void>;
}

export async function startLab(): Promise<Lab> {
  const dataDir = mkdtempSync(join(tmpdir(), 'kube-classroom-bench-'));
  const clusters = await startClusterProcess(
    {
      dataDir,
      host: '127.0.0.1',
      port: 0,
      portIsFixed: true,
      names: [],
      cloudSpeed: 0,
      storeSync: 'normal',
      logLevel: 'error',
    },
    await builtProgram(),
  );
  const managementConfig = parseKubeconfig(clusters.adminKubeconfig);
  const management = createHttpClient(managementConfig, { userAgent: 'bench' });
  const tenants = createTenants({
    management,
    clock: createClock(),
    ids: createRandomIds(),
    log: silentLogger,
  });
  return {
    clusters,
    managementConfig,
    management,
    tenants,
    async birth(user) {
      const begun = performance.now();
      const tenant = await tenants.ensure(user);
      await tenants.ready(tenant, AbortSignal.timeout(120_000));
      return { tenant, milliseconds: performance.now() - begun };
    },
    memory: () =>
      Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${clusters.pid}/status`, 'utf8'))?.[1] ?? 0) *
      1024,
    async stop() {
      management.close();
      await clusters.stop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** The cluster process as `npm start` runs it: built. */
async function builtProgram(): Promise<string> {
  const script = fileURLToPath(new URL('../scripts/build.mjs', import.meta.url));
  const { buildServer, entry } = (await import(script)) as {
    buildServer: () => Promise<string>;
    entry: (folder: string, source: string) => string;
  };
  return entry(await buildServer(), 'cluster/main.ts');
}
