import { defineResource, type KubeObject, type ObjectMeta } from '#server/kube';
import type { Condition } from './conditions.ts';

/** Reference to an object of the same namespace whose version the contract decides. */
export interface ContractRef {
  apiGroup: string;
  kind: string;
  name: string;
}

export interface Endpoint {
  host: string;
  port: number;
}

export interface LabelSelector {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key: string; operator: string; values?: string[] }[];
}

export interface VersionCount {
  version: string;
  replicas?: number;
}

interface ReplicaCounts {
  desiredReplicas?: number;
  replicas?: number;
  readyReplicas?: number;
  availableReplicas?: number;
  upToDateReplicas?: number;
  versions?: VersionCount[];
}

/** cluster.x-k8s.io/v1beta2 Cluster. */
export interface Cluster extends KubeObject {
  spec: {
    paused?: boolean;
    clusterNetwork?: {
      apiServerPort?: number;
      services?: { cidrBlocks: string[] };
      pods?: { cidrBlocks: string[] };
      serviceDomain?: string;
    };
    controlPlaneEndpoint?: Partial<Endpoint>;
    controlPlaneRef?: ContractRef;
    infrastructureRef?: ContractRef;
  };
  status?: {
    conditions?: Condition[];
    initialization?: { infrastructureProvisioned?: boolean; controlPlaneInitialized?: boolean };
    controlPlane?: ReplicaCounts;
    workers?: ReplicaCounts;
    phase?: 'Pending' | 'Provisioning' | 'Provisioned' | 'Deleting' | 'Failed' | 'Unknown';
    observedGeneration?: number;
  };
}

export interface MachineDeletion {
  nodeDrainTimeoutSeconds?: number;
  nodeVolumeDetachTimeoutSeconds?: number;
  nodeDeletionTimeoutSeconds?: number;
}

export interface MachineSpec {
  clusterName: string;
  bootstrap: { configRef?: ContractRef; dataSecretName?: string };
  infrastructureRef: ContractRef;
  version?: string;
  providerID?: string;
  failureDomain?: string;
  minReadySeconds?: number;
  readinessGates?: { conditionType: string; polarity?: 'Positive' | 'Negative' }[];
  deletion?: MachineDeletion;
}

export interface MachineAddress {
  type: 'Hostname' | 'InternalIP' | 'ExternalIP' | 'InternalDNS' | 'ExternalDNS';
  address: string;
}

/** cluster.x-k8s.io/v1beta2 Machine. */
export interface Machine extends KubeObject {
  spec: MachineSpec;
  status?: {
    conditions?: Condition[];
    initialization?: { infrastructureProvisioned?: boolean; bootstrapDataSecretCreated?: boolean };
    nodeRef?: { name: string };
    nodeInfo?: object;
    addresses?: MachineAddress[];
    failureDomain?: string;
    phase?:
      | 'Pending'
      | 'Provisioning'
      | 'Provisioned'
      | 'Running'
      | 'Updating'
      | 'Deleting'
      | 'Failed'
      | 'Unknown';
    lastUpdated?: string;
    deletion?: {
      nodeDrainStartTime?: string;
      waitForNodeVolumeDetachStartTime?: string;
      waitForPreDrainHookStartTime?: string;
      waitForPreTerminateHookStartTime?: string;
    };
    observedGeneration?: number;
  };
}

export interface MachineTemplate {
  metadata?: Pick<ObjectMeta, 'labels' | 'annotations'>;
  spec: MachineSpec;
}

export type DeletionOrder = 'Random' | 'Newest' | 'Oldest';

interface SetStatus {
  conditions?: Condition[];
  selector?: string;
  replicas?: number;
  readyReplicas?: number;
  availableReplicas?: number;
  upToDateReplicas?: number;
  versions?: VersionCount[];
  observedGeneration?: number;
}

/** cluster.x-k8s.io/v1beta2 MachineSet. */
export interface MachineSet extends KubeObject {
  spec: {
    clusterName: string;
    replicas?: number;
    selector: LabelSelector;
    template: MachineTemplate;
    deletion?: { order?: DeletionOrder };
  };
  status?: SetStatus;
}

/** cluster.x-k8s.io/v1beta2 MachineDeployment. */
export interface MachineDeployment extends KubeObject {
  spec: {
    clusterName: string;
    replicas?: number;
    selector: LabelSelector;
    template: MachineTemplate;
    paused?: boolean;
    deletion?: { order?: DeletionOrder };
    rollout?: {
      after?: string;
      strategy?: {
        type: 'RollingUpdate' | 'OnDelete';
        rollingUpdate?: { maxSurge?: number | string; maxUnavailable?: number | string };
      };
    };
  };
  status?: SetStatus & { phase?: 'ScalingUp' | 'ScalingDown' | 'Running' | 'Failed' | 'Unknown' };
}

const CORE = { group: 'cluster.x-k8s.io', version: 'v1beta2', namespaced: true };

export const clusters = defineResource<Cluster>({ ...CORE, kind: 'Cluster', plural: 'clusters' });
export const machines = defineResource<Machine>({ ...CORE, kind: 'Machine', plural: 'machines' });
export const machineSets = defineResource<MachineSet>({ ...CORE, kind: 'MachineSet', plural: 'machinesets' });
export const machineDeployments = defineResource<MachineDeployment>({
  ...CORE,
  kind: 'MachineDeployment',
  plural: 'machinedeployments',
});
