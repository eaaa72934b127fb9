import type { Clock, Ids, Logger } from '#server/base';
import {
  type Client,
  createEventRecorder,
  createInformerFactory,
  type Dialer,
  type EventRecorder,
} from '#server/client';
import type { GuestAccess } from '#server/clouds/kubevirt';
import { objectKey } from '#server/kube';
import { BY_CLUSTER, createCaches } from './caches.ts';
import { startClusterController } from './cluster-controller.ts';
import type { KubeconfigServer } from './cluster-secrets.ts';
import type { Context } from './context.ts';
import { startControlPlaneController } from './control-plane-controller.ts';
import { startKubeadmConfigController } from './kubeadm-config-controller.ts';
import { startKubevirtClusterController } from './kubevirt-cluster-controller.ts';
import { startKubevirtMachineController } from './kubevirt-machine-controller.ts';
import { startMachineController } from './machine-controller.ts';
import { startMachineDeploymentController } from './machine-deployment-controller.ts';
import { startMachineSetController } from './machine-set-controller.ts';
import { createWorkloads, type Workloads } from './workloads.ts';

export interface ClusterApiOptions {
  /** May do everything with Cluster API's kinds, VirtualMachines, Secrets, Services, ConfigMaps and Events of the management cluster. */
  client: Client;
  /** Reaches workload clusters by the kubeconfig of their `<cluster>-kubeconfig` Secret. */
  dialer: Dialer;
  /** Looks into machines for the sentinel file of their bootstrap. */
  guests: GuestAccess;
  /** Where kubeconfigs point to; left out: to the control plane endpoint, with the cluster's own authority. */
  kubeconfigServer?: KubeconfigServer;
  clock: Clock;
  ids: Ids;
  log: Logger;
  /** Default false: the cloud-controller-manager writes providerIDs. A KubevirtCluster may ask for it by annotation. */
  patchNodeProviderId?: boolean;
}

export interface ClusterApi {
  /** Resolves when the caches are filled and the controllers run. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** Cluster API with its kubeadm providers and its KubeVirt provider, for one management cluster. */
export function createClusterApi(options: ClusterApiOptions): ClusterApi {
  let running: { stop(): Promise<void> } | undefined;
  return {
    async start() {
      const started = startControllers(options);
      running = started;
      await started.filled;
    },
    async stop() {
      const current = running;
      running = undefined;
      await current?.stop();
    },
  };
}

function startControllers(options: ClusterApiOptions): { stop(): Promise<void>; filled: Promise<void> } {
  const { client, clock, ids } = options;
  const log = options.log.child({ component: 'cluster-api' });
  const informers = createInformerFactory({ client, clock, log });
  const caches = createCaches(informers);
  const recorders: EventRecorder[] = [];
  let filled: Promise<void> | undefined;
  let touched: (key: string) => void = () => undefined;
  const workloads: Workloads = createWorkloads({
    client,
    dialer: options.dialer,
    clock,
    log,
    onChange: (key) => touched(key),
  });
  const context: Context = {
    client,
    caches,
    workloads,
    guests: options.guests,
    clock,
    ids,
    log,
    kubeconfigServer: options.kubeconfigServer,
    patchNodeProviderId: options.patchNodeProviderId ?? false,
    ready: () => (filled ??= informers.synced()),
    recorder(component) {
      const recorder = createEventRecorder({ client, component, clock, ids, log });
      recorders.push(recorder);
      return recorder;
    },
  };
  const machineController = startMachineController(context);
  const clusterController = startClusterController(context);
  const controllers = [
    clusterController,
    startKubevirtClusterController(context),
    startControlPlaneController(context),
    startKubeadmConfigController(context),
    startMachineDeploymentController(context),
    startMachineSetController(context),
    machineController,
    startKubevirtMachineController(context),
  ];
  // A node or a static pod of a workload cluster changed: its Machines look again.
  touched = (key) => {
    clusterController.enqueue(key);
    for (const machine of caches.machines.byIndex(BY_CLUSTER, key))
      machineController.enqueue(objectKey(machine));
  };
  informers.start();
  return {
    filled: informers.synced(),
    async stop() {
      informers.stop();
      workloads.stop();
      await Promise.all(controllers.map((controller) => controller.stop()));
      for (const recorder of recorders) recorder.stop();
    },
  };
}
