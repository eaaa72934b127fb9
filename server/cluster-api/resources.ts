import type { Resource } from '#server/kube';
import { clusters, machineDeployments, machineSets, machines } from './core-resources.ts';
import { kubeadmConfigs, kubeadmConfigTemplates, kubeadmControlPlanes } from './kubeadm-resources.ts';
import { kubevirtClusters, kubevirtMachines, kubevirtMachineTemplates } from './kubevirt-resources.ts';

/** Every kind of this room. */
export const clusterApiResources: readonly Resource[] = [
  clusters,
  kubevirtClusters,
  kubeadmControlPlanes,
  kubevirtMachineTemplates,
  kubeadmConfigTemplates,
  machineDeployments,
  machineSets,
  machines,
  kubeadmConfigs,
  kubevirtMachines,
];
