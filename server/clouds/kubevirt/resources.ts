import { defineResource, type KubeObject, type ObjectMeta } from '#server/kube';

/** kubevirt.io/v1 condition: as metav1's, plus the time it was last looked at. */
export interface VirtCondition {
  type: string;
  status: 'True' | 'False' | 'Unknown';
  reason?: string;
  message?: string;
  lastProbeTime?: string | null;
  lastTransitionTime?: string | null;
}

export type RunStrategy = 'Always' | 'RerunOnFailure' | 'Manual' | 'Halted' | 'Once' | 'WaitAsReceiver';

export type VirtualMachineInstancePhase =
  | 'Pending'
  | 'Scheduling'
  | 'Scheduled'
  | 'Running'
  | 'Succeeded'
  | 'Failed'
  | 'Unknown';

interface CloudInitSource {
  secretRef?: { name: string };
  networkDataSecretRef?: { name: string };
  userData?: string;
  userDataBase64?: string;
  networkData?: string;
  networkDataBase64?: string;
}

export interface Volume {
  name: string;
  containerDisk?: { image: string; imagePullPolicy?: string; path?: string };
  cloudInitNoCloud?: CloudInitSource;
  cloudInitConfigDrive?: CloudInitSource;
  dataVolume?: { name: string; hotpluggable?: boolean };
  persistentVolumeClaim?: { claimName: string; readOnly?: boolean };
  emptyDisk?: { capacity: string };
}

export interface Disk {
  name: string;
  disk?: { bus?: string };
  cdrom?: { bus?: string };
  lun?: { bus?: string };
  bootOrder?: number;
  serial?: string;
}

export interface NetworkInterface {
  name: string;
  bridge?: object;
  masquerade?: object;
  macAddress?: string;
  model?: string;
}

export interface DomainSpec {
  cpu?: { cores?: number; sockets?: number; threads?: number; model?: string };
  memory?: { guest?: string };
  resources?: { requests?: Record<string, string>; limits?: Record<string, string> };
  machine?: { type: string };
  firmware?: { uuid?: string; serial?: string };
  features?: Record<string, unknown>;
  devices: {
    disks?: Disk[];
    interfaces?: NetworkInterface[];
    networkInterfaceMultiqueue?: boolean;
    rng?: object;
  };
}

export interface VirtualMachineInstanceSpec {
  domain: DomainSpec;
  volumes?: Volume[];
  networks?: { name: string; pod?: object; multus?: { networkName: string } }[];
  terminationGracePeriodSeconds?: number;
  evictionStrategy?: 'None' | 'LiveMigrate' | 'LiveMigrateIfPossible' | 'External';
  hostname?: string;
  subdomain?: string;
  architecture?: string;
  nodeSelector?: Record<string, string>;
  tolerations?: {
    key?: string;
    operator?: string;
    value?: string;
    effect?: string;
    tolerationSeconds?: number;
  }[];
  affinity?: object;
  priorityClassName?: string;
  schedulerName?: string;
}

export interface VirtualMachineSpec {
  runStrategy?: RunStrategy;
  /** The older way to say Always or Halted. */
  running?: boolean;
  template: { metadata?: Partial<ObjectMeta>; spec: VirtualMachineInstanceSpec };
  dataVolumeTemplates?: { metadata: Partial<ObjectMeta>; spec: object }[];
}

export interface VirtualMachineStatus {
  created?: boolean;
  ready?: boolean;
  printableStatus?: string;
  runStrategy?: RunStrategy;
  observedGeneration?: number;
  desiredGeneration?: number;
  conditions?: VirtCondition[];
  stateChangeRequests?: { action: 'Start' | 'Stop'; uid?: string }[];
  startFailure?: { consecutiveFailCount?: number; lastFailedVMIUID?: string; retryAfterTimestamp?: string };
}

/** kubevirt.io/v1 VirtualMachine: the wish that a machine exists, and whether it should run. */
export interface VirtualMachine extends KubeObject {
  spec: VirtualMachineSpec;
  status?: VirtualMachineStatus;
}

export interface InterfaceStatus {
  name?: string;
  ipAddress?: string;
  ipAddresses?: string[];
  mac?: string;
  interfaceName?: string;
  podInterfaceName?: string;
  infoSource?: string;
  queueCount?: number;
}

export interface VirtualMachineInstanceStatus {
  phase?: VirtualMachineInstancePhase;
  nodeName?: string;
  reason?: string;
  /** Pod UID → node it runs on. */
  activePods?: Record<string, string>;
  conditions?: VirtCondition[];
  interfaces?: InterfaceStatus[];
  guestOSInfo?: Record<string, string>;
  phaseTransitionTimestamps?: { phase: VirtualMachineInstancePhase; phaseTransitionTimestamp: string }[];
  launcherContainerImageVersion?: string;
  migrationMethod?: string;
  migrationTransport?: string;
  qosClass?: string;
  runtimeUser?: number;
  machine?: { type: string };
  volumeStatus?: { name: string; target: string; size?: number }[];
  evacuationNodeName?: string;
}

/** kubevirt.io/v1 VirtualMachineInstance: one run of a machine. It has no status subresource. */
export interface VirtualMachineInstance extends KubeObject {
  spec: VirtualMachineInstanceSpec;
  status?: VirtualMachineInstanceStatus;
}

export const virtualMachines = defineResource<VirtualMachine>({
  group: 'kubevirt.io',
  version: 'v1',
  kind: 'VirtualMachine',
  plural: 'virtualmachines',
  namespaced: true,
});
export const virtualMachineInstances = defineResource<VirtualMachineInstance>({
  group: 'kubevirt.io',
  version: 'v1',
  kind: 'VirtualMachineInstance',
  plural: 'virtualmachineinstances',
  namespaced: true,
});

/** The run strategy, also when it was said the older way; undefined when neither is there. */
export function runStrategyOf(vm: VirtualMachine): RunStrategy {
  return vm.spec.runStrategy ?? (vm.spec.running ? 'Always' : 'Halted');
}

/** Has this run ended, whichever way? */
export function isFinal(vmi: VirtualMachineInstance): boolean {
  return vmi.status?.phase === 'Succeeded' || vmi.status?.phase === 'Failed';
}

export const VM_FINALIZER = 'kubevirt.io/virtualMachineControllerFinalize';
export const VMI_FINALIZER = 'kubevirt.io/foregroundDeleteVirtualMachine';
export const CREATED_BY_LABEL = 'kubevirt.io/created-by';
export const NODE_NAME_LABEL = 'kubevirt.io/nodeName';
export const LAUNCHER_LABEL = 'kubevirt.io';
export const VM_GENERATION_ANNOTATION = 'kubevirt.io/vm-generation';
