import { defineResource, type KubeObject, type ObjectMeta } from '#server/kube';
import type { Condition } from './conditions.ts';
import type { ContractRef, MachineDeletion, VersionCount } from './core-resources.ts';

export interface Arg {
  name: string;
  value: string;
}

interface ComponentConfig {
  extraArgs?: Arg[];
  extraEnvs?: Arg[];
  extraVolumes?: {
    name: string;
    hostPath: string;
    mountPath: string;
    readOnly?: boolean;
    pathType?: string;
  }[];
}

export interface ClusterConfiguration {
  controlPlaneEndpoint?: string;
  apiServer?: ComponentConfig & { certSANs?: string[] };
  controllerManager?: ComponentConfig;
  scheduler?: ComponentConfig;
  etcd?: { local?: object; external?: object };
  dns?: { imageRepository?: string; imageTag?: string };
  certificatesDir?: string;
  imageRepository?: string;
  featureGates?: Record<string, boolean>;
  certificateValidityPeriodDays?: number;
  caCertificateValidityPeriodDays?: number;
  encryptionAlgorithm?: string;
}

export interface NodeRegistration {
  name?: string;
  criSocket?: string;
  /** Left out: kubeadm's own (a control-plane taint on control planes); empty: none. */
  taints?: { key: string; value?: string; effect: string }[];
  kubeletExtraArgs?: Arg[];
  ignorePreflightErrors?: string[];
  imagePullPolicy?: string;
  imagePullSerial?: boolean;
}

export interface InitConfiguration {
  bootstrapTokens?: object[];
  nodeRegistration?: NodeRegistration;
  localAPIEndpoint?: { advertiseAddress?: string; bindPort?: number };
  skipPhases?: string[];
  patches?: object;
  timeouts?: object;
}

export interface JoinConfiguration {
  nodeRegistration?: NodeRegistration;
  caCertPath?: string;
  discovery?: {
    bootstrapToken?: {
      token?: string;
      apiServerEndpoint?: string;
      caCertHashes?: string[];
      unsafeSkipCAVerification?: boolean;
    };
    file?: object;
    tlsBootstrapToken?: string;
  };
  controlPlane?: { localAPIEndpoint?: { advertiseAddress?: string; bindPort?: number } };
  skipPhases?: string[];
  patches?: object;
  timeouts?: object;
}

export interface BootstrapFile {
  path: string;
  owner?: string;
  permissions?: string;
  encoding?: 'base64' | 'gzip' | 'gzip+base64';
  append?: boolean;
  content?: string;
  contentFormat?: 'Raw' | 'Template';
  contentFrom?: { secret: { name: string; key: string } };
}

export interface KubeadmConfigSpec {
  clusterConfiguration?: ClusterConfiguration;
  initConfiguration?: InitConfiguration;
  joinConfiguration?: JoinConfiguration;
  files?: BootstrapFile[];
  bootCommands?: string[];
  preKubeadmCommands?: string[];
  postKubeadmCommands?: string[];
  users?: {
    name: string;
    gecos?: string;
    groups?: string;
    shell?: string;
    sudo?: string;
    sshAuthorizedKeys?: string[];
    lockPassword?: boolean;
  }[];
  ntp?: { servers?: string[]; enabled?: boolean };
  mounts?: string[][];
  diskSetup?: object;
  format?: 'cloud-config' | 'ignition';
  verbosity?: number;
}

/** bootstrap.cluster.x-k8s.io/v1beta2 KubeadmConfig. */
export interface KubeadmConfig extends KubeObject {
  spec: KubeadmConfigSpec;
  status?: {
    conditions?: Condition[];
    dataSecretName?: string;
    initialization?: { dataSecretCreated?: boolean };
    observedGeneration?: number;
  };
}

/** bootstrap.cluster.x-k8s.io/v1beta2 KubeadmConfigTemplate. */
export interface KubeadmConfigTemplate extends KubeObject {
  spec: { template: { metadata?: Pick<ObjectMeta, 'labels' | 'annotations'>; spec: KubeadmConfigSpec } };
}

/** controlplane.cluster.x-k8s.io/v1beta2 KubeadmControlPlane. */
export interface KubeadmControlPlane extends KubeObject {
  spec: {
    replicas?: number;
    version: string;
    machineTemplate: {
      metadata?: Pick<ObjectMeta, 'labels' | 'annotations'>;
      spec: {
        infrastructureRef: ContractRef;
        deletion?: MachineDeletion;
        readinessGates?: { conditionType: string }[];
      };
    };
    kubeadmConfigSpec?: KubeadmConfigSpec;
    rollout?: { strategy?: { type: 'RollingUpdate'; rollingUpdate?: { maxSurge?: number | string } } };
  };
  status?: {
    conditions?: Condition[];
    initialization?: { controlPlaneInitialized?: boolean };
    selector?: string;
    replicas?: number;
    readyReplicas?: number;
    availableReplicas?: number;
    upToDateReplicas?: number;
    version?: string;
    versions?: VersionCount[];
    observedGeneration?: number;
  };
}

export const kubeadmConfigs = defineResource<KubeadmConfig>({
  group: 'bootstrap.cluster.x-k8s.io',
  version: 'v1beta2',
  kind: 'KubeadmConfig',
  plural: 'kubeadmconfigs',
  namespaced: true,
});
export const kubeadmConfigTemplates = defineResource<KubeadmConfigTemplate>({
  group: 'bootstrap.cluster.x-k8s.io',
  version: 'v1beta2',
  kind: 'KubeadmConfigTemplate',
  plural: 'kubeadmconfigtemplates',
  namespaced: true,
});
export const kubeadmControlPlanes = defineResource<KubeadmControlPlane>({
  group: 'controlplane.cluster.x-k8s.io',
  version: 'v1beta2',
  kind: 'KubeadmControlPlane',
  plural: 'kubeadmcontrolplanes',
  namespaced: true,
});
