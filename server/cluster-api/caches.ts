import type { Informer, InformerFactory } from '#server/client';
import {
  type VirtualMachine,
  type VirtualMachineInstance,
  virtualMachineInstances,
  virtualMachines,
} from '#server/clouds/kubevirt';
import { type KubeObject, type Service, services } from '#server/kube';
import {
  type Cluster,
  clusters,
  type Machine,
  type MachineDeployment,
  type MachineSet,
  machineDeployments,
  machineSets,
  machines,
} from './core-resources.ts';
import {
  type KubeadmConfig,
  type KubeadmControlPlane,
  kubeadmConfigs,
  kubeadmControlPlanes,
} from './kubeadm-resources.ts';
import {
  type KubevirtCluster,
  type KubevirtMachine,
  kubevirtClusters,
  kubevirtMachines,
} from './kubevirt-resources.ts';
import { CLUSTER_NAME_LABEL, KUBEVIRT_MACHINE_NAME_LABEL } from './vocabulary.ts';

/** What the controllers watch in the management cluster, shared by all of them. */
export interface Caches {
  readonly clusters: Informer<Cluster>;
  readonly machines: Informer<Machine>;
  readonly machineSets: Informer<MachineSet>;
  readonly machineDeployments: Informer<MachineDeployment>;
  readonly controlPlanes: Informer<KubeadmControlPlane>;
  readonly configs: Informer<KubeadmConfig>;
  readonly kubevirtClusters: Informer<KubevirtCluster>;
  readonly kubevirtMachines: Informer<KubevirtMachine>;
  /** Machines of KubeVirt that this provider made. */
  readonly virtualMachines: Informer<VirtualMachine>;
  readonly instances: Informer<VirtualMachineInstance>;
  /** Services of clusters: `<cluster>-lb`. */
  readonly services: Informer<Service>;
}

/** `<namespace>/<name>` of the cluster an object belongs to; empty when it belongs to none. */
export function clusterKeyOf(object: KubeObject): string {
  const name = object.metadata.labels?.[CLUSTER_NAME_LABEL] ?? '';
  return name ? `${object.metadata.namespace ?? ''}/${name}` : '';
}

/** Index of objects by the cluster they belong to. */
export const BY_CLUSTER = 'cluster';

/** Asks for all informers; does not start them. */
export function createCaches(informers: InformerFactory): Caches {
  const ofCluster = { labelSelector: CLUSTER_NAME_LABEL };
  const ofMachine = { labelSelector: KUBEVIRT_MACHINE_NAME_LABEL };
  const caches: Caches = {
    clusters: informers.informer(clusters),
    machines: informers.informer(machines),
    machineSets: informers.informer(machineSets),
    machineDeployments: informers.informer(machineDeployments),
    controlPlanes: informers.informer(kubeadmControlPlanes),
    configs: informers.informer(kubeadmConfigs),
    kubevirtClusters: informers.informer(kubevirtClusters),
    kubevirtMachines: informers.informer(kubevirtMachines),
    virtualMachines: informers.informer(virtualMachines, ofMachine),
    instances: informers.informer(virtualMachineInstances, ofMachine),
    services: informers.informer(services, ofCluster),
  };
  const specCluster = (object: KubeObject & { spec: { clusterName: string } }): string[] => [
    `${object.metadata.namespace ?? ''}/${object.spec.clusterName}`,
  ];
  caches.machines.addIndex(BY_CLUSTER, specCluster);
  caches.machineSets.addIndex(BY_CLUSTER, specCluster);
  caches.machineDeployments.addIndex(BY_CLUSTER, specCluster);
  for (const informer of [caches.configs, caches.kubevirtMachines])
    informer.addIndex(BY_CLUSTER, (object: KubeObject) => [clusterKeyOf(object)]);
  caches.clusters.addIndex('infrastructure', (cluster) => [
    `${cluster.metadata.namespace ?? ''}/${cluster.spec.infrastructureRef?.name ?? ''}`,
  ]);
  caches.clusters.addIndex('controlPlane', (cluster) => [
    `${cluster.metadata.namespace ?? ''}/${cluster.spec.controlPlaneRef?.name ?? ''}`,
  ]);
  return caches;
}
