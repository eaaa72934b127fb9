import { parse, parseAllDocuments } from 'yaml';
import type { Clock, Ids, Logger } from '#server/base';
import { parseKubeconfig } from '#server/client';
import type { MachineSpec } from '#server/clouds/kubevirt';
import { parseApiVersion, type UnstructuredObject } from '#server/kube';
import {
  createKubelet,
  type FileSystem,
  type ImageCatalogue,
  type Kubelet,
  type Network,
} from '#server/node';
import { applyObjects } from './apply.ts';
import { kubernetesServiceAddress } from './component-programs.ts';
import { createDialer, type DialerOptions } from './dialer.ts';
import type { ClusterDirectory } from './directory.ts';
import type { ClusterFabric } from './fabric.ts';
import type { GuestCommand } from './guest-shell.ts';
import { type KubeadmMachine, kubeadmInit } from './kubeadm/init.ts';
import { kubeadmJoin } from './kubeadm/join.ts';
import {
  KUBELET_CONFIG_FILE,
  KUBELET_KUBECONFIG,
  readKubeletFlags,
  readTextFile,
} from './kubeadm/node-files.ts';
import { whileNobodyAnswers } from './kubeadm/patience.ts';
import { ARCHITECTURE, CONTAINER_RUNTIME, KERNEL, OS_IMAGE } from './os-image.ts';

export interface GuestOptions {
  readonly spec: MachineSpec;
  /** Path of the cluster this machine belongs to. */
  readonly path: string;
  readonly files: FileSystem;
  readonly fabric: ClusterFabric;
  /** The network the machine itself is attached to: the management cluster's. */
  readonly infraNetwork: Network;
  readonly directory: ClusterDirectory;
  readonly catalogue: ImageCatalogue;
  readonly listener: Pick<DialerOptions, 'listenerUrl' | 'listenerCaPem'>;
  readonly pullDelay: (image: string) => number;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Logger;
}

/** The operating system of one machine: its kubelet service and the few commands cloud-init calls. */
export interface Guest {
  /** `systemctl start kubelet`; nothing happens while kubeadm has not written its configuration. */
  startKubelet(): Promise<void>;
  commands(print: (text: string) => void): Readonly<Record<string, GuestCommand>>;
  /** Stops what runs. Idempotent. */
  stop(options: { graceful: boolean }): Promise<void>;
  /** Resolves when somebody inside switched the machine off. */
  readonly poweredOff: Promise<void>;
}

/** kubeadm's default range; a cluster that uses another says so in its API server's flags. */
const DEFAULT_SERVICE_CIDR = '10.96.0.0/12';
const FILES_LIMIT = 64;

export function createGuest(options: GuestOptions): Guest {
  const { spec, files, clock, ids, log } = options;
  const dialer = createDialer({
    directory: options.directory,
    ...options.listener,
    home: { path: options.path, serviceAddress: kubernetesServiceAddress(DEFAULT_SERVICE_CIDR) },
    translate: (address) =>
      address === ownApiServer(files)
        ? address.replace(/^.*:/, `${spec.ip}:`)
        : infraDestination(options, address),
  });
  let kubelet: Kubelet | undefined;
  let registration: { dispose(): void } | undefined;
  const off = new AbortController();
  let stopped = false;
  let powerOff = (): void => undefined;
  const poweredOff = new Promise<void>((resolve) => {
    powerOff = resolve;
  });

  const startKubelet = async (): Promise<void> => {
    if (kubelet || stopped) return;
    const kubeconfig = readTextFile(files, KUBELET_KUBECONFIG);
    const config = readTextFile(files, KUBELET_CONFIG_FILE);
    if (kubeconfig === undefined || config === undefined) return;
    const started = createKubelet({
      nodeName: spec.hostname,
      client: dialer.dial(parseKubeconfig(kubeconfig), {
        userAgent: 'kubelet/v1.36.3 (linux/arm64) kubernetes/0f29094',
      }),
      host: hostFacts(options),
      flags: readKubeletFlags(files),
      config: kubeletConfig(config),
      catalogue: options.catalogue,
      network: options.fabric.network,
      delays: { imagePull: options.pullDelay },
      dialerFor: () => dialer,
      clock,
      ids,
      log,
    });
    kubelet = started;
    registration = options.fabric.addKubelet(spec.hostname, started.api);
    await started.start();
  };

  const machine: KubeadmMachine = {
    files,
    hostname: spec.hostname,
    ip: spec.ip,
    now: () => clock.now(),
    sleep: (milliseconds) => clock.sleep(milliseconds, off.signal),
    startKubelet,
    clientFor: (path) =>
      dialer.dial(parseKubeconfig(readTextFile(files, path) ?? ''), {
        userAgent: 'kubeadm/v1.36.3 (linux/arm64)',
      }),
    clientFrom: (config) => dialer.dial(config, { userAgent: 'kubeadm/v1.36.3 (linux/arm64)' }),
  };

  return {
    startKubelet,
    commands: (print) => guestCommands(machine, print, powerOff),
    async stop({ graceful }) {
      if (stopped) return;
      stopped = true;
      off.abort();
      registration?.dispose();
      await kubelet?.stop({ graceful });
    },
    poweredOff,
  };
}

/**
 * The address under which a control-plane machine's own components know their API server: the machine's, when kubeadm
 * ran. It listens on all addresses, so that it is still this machine after a boot that gave it another one.
 */
function ownApiServer(files: FileSystem): string | undefined {
  return /server: https:\/\/(\S+)/.exec(
    readTextFile(files, '/etc/kubernetes/controller-manager.conf') ?? '',
  )?.[1];
}

/** The control-plane endpoint of a cluster is a Service of the management cluster: this is what its address leads to. */
function infraDestination({ infraNetwork, spec }: GuestOptions, address: string): string | undefined {
  const colon = address.lastIndexOf(':');
  const end = infraNetwork.destination({
    protocol: 'TCP',
    ip: address.slice(0, colon),
    port: Number(address.slice(colon + 1)),
    sourceIp: spec.ip,
    sourceKind: 'pod',
    sourceNode: undefined,
  });
  return end && `${end.ip}:${end.port}`;
}

function hostFacts({ spec, files, ids }: GuestOptions): Parameters<typeof createKubelet>[0]['host'] {
  let machineId = readTextFile(files, '/etc/machine-id')?.trim();
  if (!machineId) {
    machineId = ids.uid().replaceAll('-', '');
    files.writeFile('/etc/machine-id', `${machineId}\n`);
  }
  return {
    files,
    hostname: spec.hostname,
    ip: spec.ip,
    osImage: OS_IMAGE,
    kernelVersion: KERNEL,
    architecture: ARCHITECTURE,
    containerRuntimeVersion: CONTAINER_RUNTIME,
    machineId,
    systemUuid: spec.diskId,
    bootId: ids.uid(),
    capacity: {
      cpu: String(spec.cpus),
      memory: `${Math.floor(spec.memory / 1024)}Ki`,
      pods: '110',
      ephemeralStorage: '20134592Ki',
    },
  };
}

function kubeletConfig(text: string): Parameters<typeof createKubelet>[0]['config'] {
  const config = parse(text) as { clusterDNS?: string[]; clusterDomain?: string; staticPodPath?: string };
  return {
    staticPodPath: config.staticPodPath,
    clusterDNS: config.clusterDNS ?? [],
    clusterDomain: config.clusterDomain ?? 'cluster.local',
    podCidrFrom: 'node',
  };
}

/** The commands of the guest's shell. A new one is one more entry. */
function guestCommands(
  machine: KubeadmMachine,
  print: (text: string) => void,
  powerOff: () => void,
): Readonly<Record<string, GuestCommand>> {
  const flag = (args: readonly string[], ...names: string[]): string | undefined => {
    for (const [index, argument] of args.entries()) {
      const name = names.find((candidate) => argument === candidate || argument.startsWith(`${candidate}=`));
      if (name) return argument === name ? args[index + 1] : argument.slice(name.length + 1);
    }
    return undefined;
  };
  return {
    async kubeadm(args) {
      const config = flag(args, '--config') ?? '';
      if (args[0] === 'init') await kubeadmInit(machine, config, print);
      else if (args[0] === 'join') await kubeadmJoin(machine, config, print);
      else throw new GuestUsageError(`unknown command "${args[0] ?? ''}" for "kubeadm"`);
      return 0;
    },
    async kubectl(args, out) {
      const path = flag(args, '-f', '--filename');
      const kubeconfig = flag(args, '--kubeconfig');
      if (!args.includes('apply') || path === undefined || kubeconfig === undefined) {
        throw new GuestUsageError('the guest has kubectl only as: kubectl --kubeconfig FILE apply -f PATH');
      }
      const client = machine.clientFor(kubeconfig);
      const objects = readManifests(machine.files, path);
      const options = { fieldManager: 'kubectl-client-side-apply', print: out };
      await whileNobodyAnswers(machine, () => applyObjects(client, objects, options));
      return 0;
    },
    systemctl: async (args) => {
      if (args.includes('kubelet') && (args[0] === 'start' || args[0] === 'restart'))
        await machine.startKubelet();
      if (args[0] === 'poweroff') powerOff();
      return 0;
    },
    echo: async (args, out) => {
      out(`${args.join(' ')}\n`);
      return 0;
    },
    mkdir: async (args) => {
      for (const path of args.filter((argument) => argument.startsWith('/')))
        machine.files.mkdir(path, { recursive: true });
      return 0;
    },
    poweroff: async () => {
      powerOff();
      return 0;
    },
    true: async () => 0,
  };
}

/** A guest command was called in a way it does not have. */
class GuestUsageError extends Error {
  override readonly name = 'GuestUsageError';
}

/** The objects of a manifest file, or of every .yaml file of a folder. */
function readManifests(files: FileSystem, path: string): UnstructuredObject[] {
  const paths =
    files.stat(path).type === 'directory'
      ? files
          .readdir(path)
          .filter((name) => name.endsWith('.yaml'))
          .slice(0, FILES_LIMIT)
          .map((name) => `${path}/${name}`)
      : [path];
  return paths.flatMap((file) =>
    parseAllDocuments(readTextFile(files, file) ?? '')
      .map((document) => document.toJS({ maxAliasCount: 0 }) as UnstructuredObject | null)
      .filter(
        (object): object is UnstructuredObject =>
          object !== null && parseApiVersion(object.apiVersion).version !== '',
      ),
  );
}
