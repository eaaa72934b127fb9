import { dirname } from 'node:path/posix';
import {
  type Clock,
  createDisposables,
  type DisposableStore,
  errorMessage,
  type Ids,
  type Logger,
} from '#server/base';
import type { MachineHost, MachineSpec, RunningMachine } from '#server/clouds/kubevirt';
import { createImageCatalogue, type Image } from '#server/node';
import type { StoreEngine } from '#server/store';
import { CloudConfigError, parseCloudConfig, writeFiles } from './cloud-init.ts';
import { controlPlaneImages } from './component-programs.ts';
import type { DialerOptions } from './dialer.ts';
import type { ClusterDirectory } from './directory.ts';
import type { Disk, Disks } from './disks.ts';
import { etcdStoreName, parseEtcdStoreName } from './etcd-store-name.ts';
import { type Fabrics, MANAGEMENT } from './fabric.ts';
import { createGuest, type Guest } from './guest.ts';
import { runGuestLine } from './guest-shell.ts';
import { GUEST } from './os-image.ts';

export interface MachineHostOptions {
  readonly engine: StoreEngine;
  readonly directory: ClusterDirectory;
  readonly disks: Disks;
  readonly fabrics: Fabrics;
  /** Images of every machine; those of the control plane are added per cluster. */
  readonly images: readonly Image[];
  readonly listener: Pick<DialerOptions, 'listenerUrl' | 'listenerCaPem'>;
  /** Simulated time to pull an image, milliseconds. */
  readonly pullDelay: (image: string) => number;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Logger;
}

const CLUSTER_LABEL = 'cluster.x-k8s.io/cluster-name';
/** cloud-init leaves this when it is done; on the disk, so that the next boot of the same instance does not run it again. */
const BOOT_FINISHED = '/var/lib/cloud/instance/boot-finished';
/** What Cluster API's bootstrap check looks for. */
const BOOTSTRAP_SUCCESS = '/run/cluster-api/bootstrap-success.complete';
const CLOUD_INIT_LOG = '/var/log/cloud-init-output.log';
/** What is kept of the cloud-init log, characters. */
const CLOUD_INIT_LOG_LIMIT = 64 * 1024;

/**
 * Runs the pretend machines of KubeVirt in this process: a disk, an address, cloud-init with kubeadm, a kubelet. What
 * the machine's kubelet starts from there is the tenant cluster.
 */
export function createMachineHost(options: MachineHostOptions): MachineHost {
  return {
    async boot(spec) {
      const log = options.log.child({ machine: `${spec.namespace}/${spec.name}` });
      const disk = await options.disks.load(spec.namespace, spec.diskId);
      const power = createDisposables();
      const guest = createMachineGuest(options, spec, disk, power, log);
      const abort = new AbortController();
      const booting = bootGuest(guest, disk, spec, log, abort.signal).catch((error: unknown) => {
        if (!abort.signal.aborted) log.error({ err: error }, 'cloud-init of a machine failed');
      });
      let off: Promise<void> | undefined;
      const powerOff = (graceful: boolean): Promise<void> => {
        off ??= (async () => {
          abort.abort();
          await guest.stop({ graceful });
          await booting;
          await power.dispose();
          await disk.release();
        })();
        return off;
      };
      return {
        spec,
        ended: guest.poweredOff.then(async () => {
          await powerOff(true);
          return { how: 'poweroff' as const };
        }),
        files: disk.files,
        guest: GUEST,
        shutdown: () => powerOff(true),
        destroy: () => powerOff(false),
      } satisfies RunningMachine;
    },
    async deleteDisk(namespace, diskId) {
      await options.disks.delete(namespace, diskId);
      for (const name of await options.engine.clusters()) {
        const data = parseEtcdStoreName(name);
        if (data?.diskId !== diskId) continue;
        await options.engine.destroy(name);
        options.directory.forget(data.path);
      }
    },
  };
}

function createMachineGuest(
  options: MachineHostOptions,
  spec: MachineSpec,
  disk: Disk,
  power: DisposableStore,
  log: Logger,
): Guest {
  const { directory, clock, ids } = options;
  // A machine that belongs to no Cluster API cluster is a cluster of its own name.
  const path = `${spec.namespace}/${spec.labels[CLUSTER_LABEL] ?? spec.name}`;
  const fabric = options.fabrics.of(path);
  power.add(fabric.enter());
  const images = [
    ...options.images,
    ...controlPlaneImages({
      ip: spec.ip,
      path,
      storeName: etcdStoreName(path, spec.diskId),
      engine: options.engine,
      directory,
      fabric,
      clock,
      ids,
    }),
  ];
  return createGuest({
    spec,
    path,
    files: disk.files,
    fabric,
    infraNetwork: options.fabrics.of(MANAGEMENT).network,
    directory,
    catalogue: createImageCatalogue(images),
    listener: options.listener,
    pullDelay: options.pullDelay,
    clock,
    ids,
    log,
  });
}

/** First boot: cloud-init. Every boot: the kubelet, if kubeadm has set it up. */
async function bootGuest(
  guest: Guest,
  disk: Disk,
  spec: MachineSpec,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  const { files } = disk;
  files.writeFile('/etc/hostname', `${spec.hostname}\n`);
  if (files.exists(BOOT_FINISHED)) {
    // /run does not outlive a reboot, but who asks later whether this machine was bootstrapped must be told.
    files.mkdir(dirname(BOOTSTRAP_SUCCESS), { recursive: true });
    files.writeFile(BOOTSTRAP_SUCCESS, 'success\n');
    return guest.startKubelet();
  }
  let output = '';
  const print = (text: string): void => {
    output = (output + text).slice(-CLOUD_INIT_LOG_LIMIT);
  };
  try {
    const config = parseCloudConfig(spec.userData);
    writeFiles(files, config);
    await disk.save();
    for (const line of config.commands) {
      if (signal.aborted) return;
      const code = await runGuestLine(line, { files, commands: guest.commands(print), log: print });
      if (code !== 0) {
        print(`cloud-init: command ended with ${code}: ${line}\n`);
        log.warn({ line, code, output: output.slice(-1000) }, 'a command of cloud-init failed');
      }
      // What comes after is not begun; the next boot runs all of it again.
      if (code !== 0) return;
    }
    files.mkdir(dirname(BOOT_FINISHED), { recursive: true });
    files.writeFile(BOOT_FINISHED, '');
    await disk.save();
  } catch (error) {
    print(`cloud-init: ${errorMessage(error)}\n`);
    if (!(error instanceof CloudConfigError)) throw error;
  } finally {
    files.mkdir('/var/log', { recursive: true });
    files.writeFile(CLOUD_INIT_LOG, output);
  }
}
