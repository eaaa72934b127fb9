import type { VirtualMachineSpec } from '#server/clouds/kubevirt';
import { defineResource, type KubeObject, type ObjectMeta } from '#server/kube';
import type { Condition } from './conditions.ts';
import type { Endpoint, MachineAddress } from './core-resources.ts';

interface ObjectReference {
  apiVersion?: string;
  kind?: string;
  namespace?: string;
  name?: string;
  uid?: string;
}

/** infrastructure.cluster.x-k8s.io/v1alpha1 KubevirtCluster. */
export interface KubevirtCluster extends KubeObject {
  spec: {
    controlPlaneEndpoint?: Endpoint;
    controlPlaneServiceTemplate?: { metadata?: Partial<ObjectMeta> | null; spec?: { type?: string } };
    sshKeys?: { configRef?: ObjectReference; dataSecretName?: string };
    infraClusterSecretRef?: ObjectReference;
  };
  status?: { ready: boolean; initialization?: { provisioned?: boolean }; conditions?: Condition[] };
}

export interface KubevirtMachineSpec {
  virtualMachineTemplate: { metadata?: Partial<ObjectMeta> | null; spec: VirtualMachineSpec };
  virtualMachineBootstrapCheck?: { checkStrategy?: 'ssh' | 'none' };
  infraClusterSecretRef?: ObjectReference;
  providerID?: string;
}

/** infrastructure.cluster.x-k8s.io/v1alpha1 KubevirtMachine. */
export interface KubevirtMachine extends KubeObject {
  spec: KubevirtMachineSpec;
  status?: {
    ready: boolean;
    initialization?: { provisioned?: boolean };
    addresses?: MachineAddress[];
    conditions?: Condition[];
    loadBalancerConfigured?: boolean;
    nodeupdated?: boolean;
    failureReason?: string;
    failureMessage?: string;
  };
}

/** infrastructure.cluster.x-k8s.io/v1alpha1 KubevirtMachineTemplate. */
export interface KubevirtMachineTemplate extends KubeObject {
  spec: { template: { metadata?: Pick<ObjectMeta, 'labels' | 'annotations'>; spec: KubevirtMachineSpec } };
}

const INFRASTRUCTURE = { group: 'infrastructure.cluster.x-k8s.io', version: 'v1alpha1', namespaced: true };

export const kubevirtClusters = defineResource<KubevirtCluster>({
  ...INFRASTRUCTURE,
  kind: 'KubevirtCluster',
  plural: 'kubevirtclusters',
});
export const kubevirtMachines = defineResource<KubevirtMachine>({
  ...INFRASTRUCTURE,
  kind: 'KubevirtMachine',
  plural: 'kubevirtmachines',
});
export const kubevirtMachineTemplates = defineResource<KubevirtMachineTemplate>({
  ...INFRASTRUCTURE,
  kind: 'KubevirtMachineTemplate',
  plural: 'kubevirtmachinetemplates',
});
