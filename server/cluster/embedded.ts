import { join } from 'node:path';
import { type Clock, createDisposables, type Ids, type Logger } from '#server/base';
import { formatKubeconfig } from '#server/client';
import { standardImages } from '#server/node';
import { issueCertificate } from '#server/pki';
import { createSqliteEngine, DEFAULT_HISTORY_LIMITS, type HistoryLimits } from '#server/store';
import { createClusterDirectory } from './directory.ts';
import { createDisks } from './disks.ts';
import { parseEtcdStoreName } from './etcd-store-name.ts';
import { createFabrics, MANAGEMENT } from './fabric.ts';
import { loadIdentity } from './identity.ts';
import { createListener } from './listener.ts';
import { createMachineHost } from './machine-host.ts';
import { startManagement } from './management.ts';
import { IMAGE_FILES } from './os-image.ts';

export interface EmbeddedOptions {
  /** Everything is kept here. */
  readonly dataDir: string;
  readonly host: string;
  /** 0 takes a free port. */
  readonly port: number;
  /** Further names and addresses the listener answers for (PUBLIC_API_URL). */
  readonly names: readonly string[];
  /** Scales simulated delays; 0: none. */
  readonly cloudSpeed: number;
  readonly storeSync: 'normal' | 'full';
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Logger;
}

export interface EmbeddedClusters {
  /** `https://127.0.0.1:6443`. */
  readonly url: string;
  readonly port: number;
  /** Cluster-admin of the management cluster: for the web process. */
  readonly adminKubeconfig: string;
  stop(): Promise<void>;
}

/** Every birth makes a hundred changes in the management cluster: its readers may fall behind by many of them. */
const MANAGEMENT_HISTORY: HistoryLimits = { events: 10_000, bytes: 8 * 1024 * 1024 };

function historyOf(cluster: string): HistoryLimits {
  return cluster === MANAGEMENT ? MANAGEMENT_HISTORY : DEFAULT_HISTORY_LIMITS;
}

/** Simulated delays at CLOUD_SPEED 1, milliseconds. */
const BOOT_DELAY = 3_000;
const PULL_DELAY = 800;

/**
 * Brings up the management cluster and, through what is stored in it, every tenant's. Throws OperationalError when the
 * folder, the database or the port cannot be had; what was started by then is stopped.
 */
export async function startEmbeddedClusters(options: EmbeddedOptions): Promise<EmbeddedClusters> {
  const { clock, ids, log } = options;
  const running = createDisposables();
  try {
    const identity = await loadIdentity(join(options.dataDir, 'pki'), {
      now: clock.now(),
      names: options.names,
    });
    const engine = createSqliteEngine({
      path: join(options.dataDir, 'clusters.db'),
      sync: options.storeSync,
      log,
      historyOf,
    });
    running.defer(() => engine.close());
    const stored = (await engine.clusters())
      .map((name) => parseEtcdStoreName(name)?.path)
      .filter((path) => path !== undefined);
    const directory = createClusterDirectory({ clock, known: [MANAGEMENT, ...stored] });
    const listener = await createListener({
      directory,
      serving: identity.serving,
      host: options.host,
      port: options.port,
      hostNames: new Set(['127.0.0.1', 'localhost', '::1', options.host, ...options.names]),
      log,
    });
    running.defer(() => listener.close());
    const url = `https://127.0.0.1:${listener.port}`;
    const disks = await createDisks({ engine, clock, log, image: IMAGE_FILES });
    running.defer(() => disks.close());
    const fabrics = createFabrics({ clock, log });
    const pullDelay = (): number => PULL_DELAY * options.cloudSpeed;
    const host = createMachineHost({
      engine,
      directory,
      disks,
      fabrics,
      images: standardImages(),
      listener: { listenerUrl: url, listenerCaPem: identity.listenerAuthority.certPem },
      pullDelay,
      clock,
      ids,
      log,
    });
    const management = await startManagement({
      engine,
      identity,
      directory,
      fabrics,
      host,
      listenerUrl: url,
      delays: { boot: () => BOOT_DELAY * options.cloudSpeed, imagePull: pullDelay },
      clock,
      ids,
      log,
    });
    running.add(management);
    const { certPem, keyPem } = await issueCertificate({
      authority: identity.managementAuthority,
      commonName: 'kube-classroom',
      organizations: ['system:masters'],
      usages: ['client'],
      now: clock.now(),
    });
    const adminKubeconfig = formatKubeconfig({
      cluster: {
        name: 'management',
        server: `${url}/clusters/management`,
        caPem: identity.listenerAuthority.certPem,
      },
      user: { name: 'kube-classroom', certPem, keyPem },
      context: { name: 'management' },
    });
    return { url, port: listener.port, adminKubeconfig, stop: () => running.dispose() };
  } catch (error) {
    await running.dispose();
    throw error;
  }
}
