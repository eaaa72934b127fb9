// clouds/kubevirt: virtual machines as Kubernetes objects, after KubeVirt v1.7.
// virt-controller (VirtualMachine → VirtualMachineInstance → virt-launcher pod) and virt-handler (boots, reports and shuts
// down the guest) watch nothing but the API; who really runs a machine is the `MachineHost` they are given. Promises: level
// based, so killing the process at any point and starting it again leads to the same state; a VMI that says Running gets
// its guest back from the same disk; a deleted VMI is shut down within its grace period before it goes.
// Leaves out: live migration, data volumes and hotplug, instance types, the subresources.kubevirt.io API (virtctl), pod
// readiness gates. `VirtualMachineInstance` has no status subresource, as upstream.
// Models kubevirt/kubevirt pkg/virt-controller/watch, pkg/virt-handler, pkg/virt-launcher.
export { kubeVirtDefinitions } from './crds.ts';
export { createKubeVirt, type KubeVirt, type KubeVirtOptions } from './kubevirt.ts';
export { createVirtLaunchers, type LauncherListener, type VirtLaunchers } from './launcher.ts';
export { virtLauncherImage } from './launcher-image.ts';
export { LAUNCHER_IMAGE } from './launcher-pod.ts';
export type { GuestAccess, MachineHost, MachineSpec, RunningMachine } from './machine.ts';
export {
  type Disk,
  type DomainSpec,
  isFinal,
  type RunStrategy,
  runStrategyOf,
  type VirtCondition,
  type VirtualMachine,
  type VirtualMachineInstance,
  type VirtualMachineInstancePhase,
  type VirtualMachineInstanceSpec,
  type VirtualMachineInstanceStatus,
  type VirtualMachineSpec,
  type VirtualMachineStatus,
  type Volume,
  virtualMachineInstances,
  virtualMachines,
} from './resources.ts';
