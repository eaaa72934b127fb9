import {
  isFinal,
  runStrategyOf,
  type VirtualMachine,
  type VirtualMachineInstance,
} from '#server/clouds/kubevirt';
import { report } from './conditions.ts';
import type { KubevirtMachine } from './kubevirt-resources.ts';
import { TERMINAL_LABEL } from './vocabulary.ts';

/** Why a machine will never recover by itself; undefined when it may. Models IsTerminal of pkg/kubevirt/machine.go. */
export function terminalReason(
  vm: VirtualMachine | undefined,
  vmi: VirtualMachineInstance | undefined,
): string | undefined {
  if (!vm || !vmi) return undefined;
  if (!isFinal(vmi) && vmi.status?.evacuationNodeName)
    return "The Machine's VM pod is marked for eviction due to infra node drain.";
  const vmLabel = vm.metadata.labels?.[TERMINAL_LABEL];
  if (vmLabel !== undefined)
    return `VM's ${TERMINAL_LABEL} label has the vm marked as being terminal with reason [${vmLabel}]`;
  const vmiLabel = vmi.metadata.labels?.[TERMINAL_LABEL];
  if (vmiLabel !== undefined)
    return `VMI's ${TERMINAL_LABEL} label has the vm marked as being terminal with reason [${vmiLabel}]`;
  const strategy = runStrategyOf(vm);
  const over =
    ((strategy === 'Halted' || strategy === 'Once') && isFinal(vmi)) ||
    (strategy === 'RerunOnFailure' && vmi.status?.phase === 'Succeeded');
  return over ? 'VMI has reached a permanent finalized state' : undefined;
}

/** Why a machine does not run yet. Models GetVMNotReadyReason. */
export function notReady(vm: VirtualMachine | undefined): { reason: string; message: string } {
  const scheduled = vm?.status?.conditions?.find((condition) => condition.type === 'PodScheduled');
  if (scheduled?.status === 'False' && scheduled.reason === 'Unschedulable')
    return { reason: 'Unschedulable', message: scheduled.message ?? '' };
  return {
    reason: 'VMNotReady',
    message: vm ? `VM is not ready: ${vm.status?.printableStatus ?? ''}` : 'VM is not ready',
  };
}

/** Does the machine run, guest included? */
export function isReady(vmi: VirtualMachineInstance | undefined): boolean {
  return (
    vmi?.status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True') ??
    false
  );
}

/** Says where the machine is and who it is, in place. `now` is milliseconds. */
export function reportProvisioned(object: KubevirtMachine, vmi: VirtualMachineInstance, now: number): void {
  const { name } = object.metadata;
  const ips = (vmi.status?.interfaces ?? []).flatMap((nic) => nic.ipAddresses ?? []);
  object.status = {
    ...object.status,
    ready: true,
    initialization: { provisioned: true },
    addresses: [
      { type: 'Hostname', address: name },
      ...ips.flatMap((address) => [
        { type: 'InternalIP' as const, address },
        { type: 'ExternalIP' as const, address },
      ]),
      { type: 'InternalDNS', address: name },
    ],
  };
  object.spec.providerID ??= `kubevirt://${name}`;
  const migratable = vmi.status?.conditions?.find((condition) => condition.type === 'LiveMigratable');
  if (!migratable) return;
  report(
    object,
    now,
    migratable.status === 'True'
      ? { type: 'VMLiveMigratable', status: 'True', reason: 'VMLiveMigratable' }
      : {
          type: 'VMLiveMigratable',
          status: 'False',
          reason: migratable.reason ?? 'NotMigratable',
          message: `${name} is not a live migratable machine: ${migratable.message ?? ''}`,
        },
  );
}
