// cluster-api: Kubernetes clusters as Kubernetes objects, after Cluster API v1.14 (v1beta2) and its KubeVirt provider v0.11.
// One controller per kind (Cluster, KubevirtCluster, KubeadmControlPlane, KubeadmConfig, MachineDeployment, MachineSet,
// Machine, KubevirtMachine); each watches nothing but the API and what a workload cluster's own API says. Promises: level
// based, so killing the process at any point of a birth and starting it again leads to the same end, with no Machine made
// twice; no polling where there is an event; the providerID is left to the cloud-controller-manager unless asked for.
// Leaves out: ClusterClass, MachinePool, MachineHealthCheck and remediation, in-place updates, conversion from v1beta1, webhooks
// (their defaults are applied by the controllers), external infrastructure clusters.
// Models kubernetes-sigs/cluster-api and kubernetes-sigs/cluster-api-provider-kubevirt.
export { type ClusterApi, type ClusterApiOptions, createClusterApi } from './cluster-api.ts';
export type { KubeconfigServer } from './cluster-secrets.ts';
export type { Condition } from './conditions.ts';
export {
  type Cluster,
  type ContractRef,
  clusters,
  type Machine,
  type MachineDeployment,
  type MachineSet,
  machineDeployments,
  machineSets,
  machines,
} from './core-resources.ts';
export { clusterApiDefinitions } from './crds/definitions.ts';
export {
  type KubeadmConfig,
  type KubeadmConfigSpec,
  type KubeadmConfigTemplate,
  type KubeadmControlPlane,
  kubeadmConfigs,
  kubeadmConfigTemplates,
  kubeadmControlPlanes,
} from './kubeadm-resources.ts';
export {
  type KubevirtCluster,
  type KubevirtMachine,
  type KubevirtMachineTemplate,
  kubevirtClusters,
  kubevirtMachines,
  kubevirtMachineTemplates,
} from './kubevirt-resources.ts';
export { clusterApiResources } from './resources.ts';
export { CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL, PATCH_PROVIDER_ID_ANNOTATION } from './vocabulary.ts';
