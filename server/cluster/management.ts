import { createApiServer } from '#server/apiserver';
import { type Clock, createDisposables, type DisposableStore, type Ids, type Logger } from '#server/base';
import { ccmImage } from '#server/ccm';
import { type Client, createInformerFactory, createInProcessClient, type Dialer } from '#server/client';
import {
  createKubeVirt,
  createVirtLaunchers,
  kubeVirtDefinitions,
  type MachineHost,
  type VirtLaunchers,
  virtLauncherImage,
} from '#server/clouds/kubevirt';
import { clusterApiDefinitions, createClusterApi } from '#server/cluster-api';
import {
  type CustomResourceDefinition,
  customResourceDefinitions,
  deepEqual,
  isAlreadyExists,
  type UserInfo,
} from '#server/kube';
import {
  createImageCatalogue,
  createKubelet,
  createMemoryFileSystem,
  createServiceProxy,
  standardImages,
} from '#server/node';
import { createScheduler } from '#server/scheduler';
import type { StoreEngine } from '#server/store';
import { kubernetesServiceAddress } from './component-programs.ts';
import { startControllerManager } from './controller-manager.ts';
import { createDialer } from './dialer.ts';
import type { ClusterDirectory } from './directory.ts';
import { type ClusterFabric, type Fabrics, MANAGEMENT } from './fabric.ts';
import type { ServerIdentity } from './identity.ts';
import { ARCHITECTURE, CONTAINER_RUNTIME, IMAGE_FILES, KERNEL, OS_IMAGE } from './os-image.ts';

export interface ManagementOptions {
  readonly engine: StoreEngine;
  readonly identity: ServerIdentity;
  readonly directory: ClusterDirectory;
  readonly fabrics: Fabrics;
  readonly host: MachineHost;
  readonly listenerUrl: string;
  readonly delays: { readonly boot: () => number; readonly imagePull: (image: string) => number };
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Logger;
}

/** Services of the management cluster; apart from the tenants' 10.96.0.0/12, so that an address tells whose it is. */
const SERVICE_CIDR = '10.112.0.0/12';
/** Addresses of the infra nodes' pods, virt-launchers among them: what a tenant sees as its nodes' addresses. */
const INFRA_NODES = [
  { name: 'infra-1', ip: '192.168.10.11', podCidr: '10.0.0.0/18' },
  { name: 'infra-2', ip: '192.168.10.12', podCidr: '10.0.64.0/18' },
  { name: 'infra-3', ip: '192.168.10.13', podCidr: '10.0.128.0/18' },
] as const;
/** One infra node carries a few thousand small machines: it is pretend, and the class must fit. */
const INFRA_CAPACITY = {
  cpu: '16384',
  memory: '34359738368Ki',
  pods: '16000',
  ephemeralStorage: '1099511627776Ki',
} as const;
/** The CNI configuration that the operator of the infra nodes installed. */
const CNI_CONFIG = JSON.stringify({ cniVersion: '0.3.1', name: 'cilium', plugins: [{ type: 'cilium-cni' }] });

/**
 * The embedded management cluster: an API server, kube-controller-manager's loops, a scheduler, three infra nodes, and
 * on top of them KubeVirt and Cluster API. Everything but the API server works through its API.
 */
export async function startManagement(options: ManagementOptions): Promise<{ dispose(): Promise<void> }> {
  const { identity, clock, ids, log, directory } = options;
  const running = createDisposables();
  try {
    const fabric = options.fabrics.of(MANAGEMENT);
    running.add(fabric.enter());
    const store = await options.engine.open(MANAGEMENT);
    running.defer(() => store.close());
    const keys = identity.managementServiceAccountKeys;
    const server = await createApiServer({
      cluster: MANAGEMENT,
      store,
      clock,
      ids,
      log: log.child({ cluster: MANAGEMENT }),
      clientCaPem: [identity.managementAuthority.certPem],
      serviceAccount: {
        issuer: 'https://kubernetes.default.svc.cluster.local',
        signingKeyPem: keys.privateKeyPem,
        verifyingKeysPem: [keys.publicKeyPem],
      },
      serviceCidr: SERVICE_CIDR,
      kubelets: fabric.kubelets,
    });
    running.defer(() => server.close());
    const clientAs = (user: UserInfo, userAgent: string): Client =>
      createInProcessClient({ backend: server.backend, user, userAgent });
    const admin = clientAs(OPERATOR, 'kube-classroom');
    await installDefinitions(admin, [...kubeVirtDefinitions(), ...clusterApiDefinitions()]);
    running.add(
      directory.register({
        path: MANAGEMENT,
        caPem: identity.managementAuthority.certPem,
        address: undefined,
        server,
      }),
    );

    const dialer = createDialer({
      directory,
      listenerUrl: options.listenerUrl,
      listenerCaPem: identity.listenerAuthority.certPem,
      home: { path: MANAGEMENT, serviceAddress: kubernetesServiceAddress(SERVICE_CIDR) },
    });
    running.add(
      startControllerManager({
        server,
        clock,
        ids,
        log: log.child({ cluster: MANAGEMENT }),
        clusterCidr: undefined,
        nodeCidrMaskSize: 18,
        signing: undefined,
        rootCaPem: identity.managementAuthority.certPem,
        controllers: ['*'],
      }),
    );
    startScheduler(options, clientAs, running);
    startServiceProxy(options, clientAs, fabric, running);
    const launchers = createVirtLaunchers();
    await startInfraNodes(options, clientAs, fabric, { dialer, launchers }, running);
    const kubeVirt = createKubeVirt({
      client: clientAs(OPERATOR, 'virt-controller/v1.7.0'),
      clock,
      ids,
      log: log.child({ component: 'kubevirt' }),
      host: options.host,
      launchers,
      delays: { boot: options.delays.boot },
    });
    await kubeVirt.start();
    running.defer(() => kubeVirt.stop());
    const clusterApi = createClusterApi({
      client: clientAs(OPERATOR, 'cluster-api/v1.14.0'),
      dialer,
      guests: kubeVirt.guests,
      kubeconfigServer: ({ namespace, name }) => ({
        server: `${options.listenerUrl}/clusters/${namespace}/${name}`,
        caPem: identity.listenerAuthority.certPem,
      }),
      clock,
      ids,
      log: log.child({ component: 'cluster-api' }),
    });
    await clusterApi.start();
    running.defer(() => clusterApi.stop());
    return running;
  } catch (error) {
    await running.dispose();
    throw error;
  }
}

/** The operators' identity (Cluster API, KubeVirt): cluster-admin, as their own installation manifests grant it. */
const OPERATOR: UserInfo = {
  name: 'kube-classroom:operator',
  groups: ['system:masters', 'system:authenticated'],
};

type ClientAs = (user: UserInfo, userAgent: string) => Client;

/** Creates the definitions that are missing and brings changed ones up to date. */
async function installDefinitions(
  client: Client,
  definitions: readonly CustomResourceDefinition[],
): Promise<void> {
  await Promise.all(
    definitions.map(async (definition) => {
      try {
        await client.create(customResourceDefinitions, definition);
      } catch (error) {
        if (!isAlreadyExists(error)) throw error;
        const present = await client.get(customResourceDefinitions, { name: definition.metadata.name });
        if (deepEqual(present.spec.versions, definition.spec.versions)) return;
        await client.update(customResourceDefinitions, {
          ...present,
          spec: { ...present.spec, versions: definition.spec.versions },
        });
      }
    }),
  );
}

function startScheduler(
  { clock, ids, log }: ManagementOptions,
  clientAs: ClientAs,
  running: DisposableStore,
): void {
  const client = clientAs(
    { name: 'system:kube-scheduler', groups: ['system:authenticated'] },
    'kube-scheduler/v1.36.3',
  );
  const informers = createInformerFactory({ client, clock, log });
  const scheduler = createScheduler({
    client,
    informers,
    clock,
    ids,
    log: log.child({ cluster: MANAGEMENT }),
  });
  scheduler.start();
  informers.start();
  running.defer(async () => {
    await scheduler.stop();
    informers.stop();
  });
}

function startServiceProxy(
  { clock, log }: ManagementOptions,
  clientAs: ClientAs,
  fabric: ClusterFabric,
  running: DisposableStore,
): void {
  const informers = createInformerFactory({ client: clientAs(OPERATOR, 'cilium-agent/1.18.4'), clock, log });
  const proxy = createServiceProxy({ network: fabric.network, informers, clock, log });
  informers.start();
  running.defer(() => {
    proxy.stop();
    informers.stop();
  });
}

async function startInfraNodes(
  options: ManagementOptions,
  clientAs: ClientAs,
  fabric: ClusterFabric,
  { dialer, launchers }: { dialer: Dialer; launchers: VirtLaunchers },
  running: DisposableStore,
): Promise<void> {
  const { clock, ids, log } = options;
  const catalogue = createImageCatalogue([...standardImages(), virtLauncherImage(launchers), ccmImage()]);
  await Promise.all(
    INFRA_NODES.map(async ({ name, ip, podCidr }) => {
      const user = { name: `system:node:${name}`, groups: ['system:nodes', 'system:authenticated'] };
      const kubelet = createKubelet({
        nodeName: name,
        client: clientAs(user, 'kubelet/v1.36.3'),
        host: {
          files: createMemoryFileSystem(
            { ...IMAGE_FILES, '/etc/hostname': `${name}\n`, '/etc/cni/net.d/05-cilium.conflist': CNI_CONFIG },
            { clock },
          ),
          hostname: name,
          ip,
          osImage: OS_IMAGE,
          kernelVersion: KERNEL,
          architecture: ARCHITECTURE,
          containerRuntimeVersion: CONTAINER_RUNTIME,
          machineId: ids.uid().replaceAll('-', ''),
          systemUuid: ids.uid(),
          bootId: ids.uid(),
          capacity: INFRA_CAPACITY,
        },
        flags: [`--node-ip=${ip}`],
        config: {
          staticPodPath: undefined,
          clusterDNS: [],
          clusterDomain: 'cluster.local',
          podCidrFrom: podCidr,
        },
        catalogue,
        network: fabric.network,
        delays: { imagePull: options.delays.imagePull },
        dialerFor: () => dialer,
        clock,
        ids,
        log: log.child({ node: name }),
      });
      running.add(fabric.addKubelet(name, kubelet.api));
      await kubelet.start();
      running.defer(() => kubelet.stop({ graceful: false }));
      await kubelet.registered;
    }),
  );
}
