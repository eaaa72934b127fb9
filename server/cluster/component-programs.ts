import { createApiServer } from '#server/apiserver';
import { type Clock, createDisposables, type Ids, OperationalError } from '#server/base';
import { createInformerFactory, createInProcessClient, parseKubeconfig } from '#server/client';
import { nodes, type UserInfo } from '#server/kube';
import { createServiceProxy, type Image, type Process, type Program } from '#server/node';
import { createScheduler } from '#server/scheduler';
import type { StoreEngine } from '#server/store';
import { createComponentLog } from './component-log.ts';
import { startControllerManager } from './controller-manager.ts';
import type { ClusterDirectory } from './directory.ts';
import type { ClusterFabric } from './fabric.ts';
import { type Flags, parseFlags } from './flags.ts';
import { CONTROL_PLANE_IMAGES } from './kubeadm/manifests.ts';
import { addressOf, readTextFile } from './kubeadm/node-files.ts';

/** What the control-plane containers of one cluster reach besides their pod: the process that holds all clusters. */
export interface ControlPlaneContext {
  /** `<namespace>/<cluster>`. */
  readonly path: string;
  /** The machine's address now; the manifest's may be of an earlier boot. */
  readonly ip: string;
  /** Name of the store that is this machine's /var/lib/etcd. */
  readonly storeName: string;
  readonly engine: StoreEngine;
  readonly directory: ClusterDirectory;
  readonly fabric: ClusterFabric;
  readonly clock: Clock;
  readonly ids: Ids;
}

const SYSTEM: UserInfo = { name: 'system:apiserver', groups: ['system:masters', 'system:authenticated'] };

/**
 * The images of kubeadm's static pods. Their containers *are* the control plane: what the kubelet starts from
 * /etc/kubernetes/manifests is the embedded API server, controller manager and scheduler of this cluster, with the
 * flags of the manifest, until the container is stopped. etcd's container only holds the place: the data is in the
 * store of the process.
 */
export function controlPlaneImages(context: ControlPlaneContext): Image[] {
  const image = (
    repository: string,
    tags: Image['tags'],
    name: string,
    size: number,
    program: Program,
  ): Image => ({
    repository,
    tags,
    entrypoint: [],
    command: [`/usr/local/bin/${name}`],
    size,
    programs: { [`/usr/local/bin/${name}`]: program },
  });
  const version = [/^v1\.36\.\d+$/];
  const [etcdRepository = '', etcdTag = ''] = CONTROL_PLANE_IMAGES.etcd.split(':');
  return [
    image(
      CONTROL_PLANE_IMAGES['kube-apiserver'],
      version,
      'kube-apiserver',
      28_100_000,
      apiServerProgram(context),
    ),
    image(
      CONTROL_PLANE_IMAGES['kube-controller-manager'],
      version,
      'kube-controller-manager',
      23_300_000,
      controllerManagerProgram(context),
    ),
    image(
      CONTROL_PLANE_IMAGES['kube-scheduler'],
      version,
      'kube-scheduler',
      17_700_000,
      schedulerProgram(context),
    ),
    image(etcdRepository, [etcdTag], 'etcd', 23_600_000, { run: untilStopped }),
  ];
}

/** Runs until SIGTERM, SIGINT or SIGKILL. */
function untilStopped(process: Process): Promise<number> {
  return new Promise((resolve) => {
    process.onSignal(() => resolve(0));
    process.signal.addEventListener('abort', () => resolve(137), { once: true });
    if (process.signal.aborted) resolve(137);
  });
}

function required(process: Process, flags: Flags, name: string): string {
  const path = flags.get(name);
  if (path === undefined) throw new OperationalError(`--${name} is required`);
  const text = readTextFile(process.files, path);
  if (text === undefined) throw new OperationalError(`open ${path}: no such file or directory`);
  return text;
}

function apiServerProgram(context: ControlPlaneContext): Program {
  return {
    async run(process) {
      const { path, clock, ids, fabric } = context;
      const flags = parseFlags(process.argv.slice(1));
      const log = createComponentLog({ output: process.stderr, component: 'apiserver', clock });
      const caPem = required(process, flags, 'client-ca-file');
      const ip = flags.string('advertise-address', '127.0.0.1');
      const port = Number(flags.string('secure-port', '6443'));
      const stopping = untilStopped(process);
      const running = createDisposables();
      try {
        const store = await context.engine.open(context.storeName);
        running.defer(() => store.close());
        const server = await createApiServer({
          cluster: path,
          store,
          clock,
          ids,
          log,
          clientCaPem: [caPem],
          serviceAccount: {
            issuer: flags.string('service-account-issuer', 'https://kubernetes.default.svc.cluster.local'),
            signingKeyPem: required(process, flags, 'service-account-signing-key-file'),
            verifyingKeysPem: [required(process, flags, 'service-account-key-file')],
          },
          serviceCidr: flags.string('service-cluster-ip-range', '10.96.0.0/12'),
          nodePortRange: flags.string('service-node-port-range', '30000-32767'),
          kubelets: fabric.kubelets,
          advertise: { ip, port },
        });
        running.defer(() => server.close());
        const informers = createInformerFactory({
          client: createInProcessClient({
            backend: server.backend,
            user: SYSTEM,
            userAgent: 'cilium-agent/1.18.4',
          }),
          clock,
          log,
        });
        running.defer(() => informers.stop());
        const proxy = createServiceProxy({ network: fabric.network, informers, clock, log });
        running.defer(() => proxy.stop());
        informers.start();
        running.add(context.directory.register({ path, caPem, address: `${context.ip}:${port}`, server }));
        log.info({ address: `${ip}:${port}`, cluster: path }, 'Serving securely');
        return await stopping;
      } finally {
        await running.dispose();
      }
    },
  };
}

/** Waits until the API server a kubeconfig names answers, or the process is stopped. */
async function answeringServer(
  process: Process,
  context: ControlPlaneContext,
): Promise<NonNullable<ReturnType<ClusterDirectory['get']>> | undefined> {
  for (;;) {
    const entry = await context.directory.waitFor(() => context.directory.get(context.path), 10_000);
    if (entry || process.signal.aborted) return entry;
    process.stderr.write(
      'E failed to wait for apiserver being healthy: timed out waiting for the condition\n',
    );
  }
}

/** Checks that the component's kubeconfig proves somebody to this API server: a wrong certificate stops it, as it should. */
async function checkCredentials(process: Process, flags: Flags): Promise<void> {
  const client = process.dialer.dial(parseKubeconfig(required(process, flags, 'kubeconfig')), {
    userAgent: process.argv[0] ?? '',
  });
  await client.list(nodes, { limit: 1 });
}

function controllerManagerProgram(context: ControlPlaneContext): Program {
  return {
    async run(process) {
      const flags = parseFlags(process.argv.slice(1));
      const stopping = untilStopped(process);
      const entry = await answeringServer(process, context);
      if (!entry) return 1;
      await checkCredentials(process, flags);
      const manager = startControllerManager({
        server: entry.server,
        clock: context.clock,
        ids: context.ids,
        log: createComponentLog({
          output: process.stderr,
          component: 'controllermanager',
          clock: context.clock,
        }),
        clusterCidr: flags.boolean('allocate-node-cidrs', false)
          ? flags.string('cluster-cidr', '10.244.0.0/16')
          : undefined,
        nodeCidrMaskSize: Number(flags.string('node-cidr-mask-size', '24')),
        signing: {
          certPem: required(process, flags, 'cluster-signing-cert-file'),
          keyPem: required(process, flags, 'cluster-signing-key-file'),
        },
        rootCaPem: required(process, flags, 'root-ca-file'),
        controllers: flags.string('controllers', '*').split(','),
      });
      try {
        return await stopping;
      } finally {
        await manager.dispose();
      }
    },
  };
}

function schedulerProgram(context: ControlPlaneContext): Program {
  return {
    async run(process) {
      const flags = parseFlags(process.argv.slice(1));
      const { clock, ids } = context;
      const log = createComponentLog({ output: process.stderr, component: 'scheduler', clock });
      const stopping = untilStopped(process);
      const client = process.dialer.dial(parseKubeconfig(required(process, flags, 'kubeconfig')), {
        userAgent: 'kube-scheduler/v1.36.3 (linux/arm64) kubernetes/0f29094/scheduler',
      });
      const informers = createInformerFactory({ client, clock, log });
      const scheduler = createScheduler({ client, informers, clock, ids, log });
      scheduler.start();
      informers.start();
      try {
        return await stopping;
      } finally {
        await scheduler.stop();
        informers.stop();
      }
    },
  };
}

/** The address of the `kubernetes` Service in a cluster's service range. */
export function kubernetesServiceAddress(serviceCidr: string): string {
  return `${addressOf(serviceCidr, 1)}:443`;
}
