// clouds/kubevirt/testing: what KubeVirt stands on, small enough for unit tests.
// A scheduler and kubelet that run virt-launcher pods, the files of a pretend guest, and a fake API server that treats
// VirtualMachineInstances as the real one does. Used by the tests of this room and of the rooms above it.
export { createGuestFiles } from './guest-files.ts';
export { withoutInstanceStatus } from './instance-status.ts';
export { type PretendKubelet, startPretendKubelet } from './pretend-kubelet.ts';
