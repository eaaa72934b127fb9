import { createHash } from 'node:crypto';
import { cloneJson } from '#server/kube';
import { enterPhase, setCondition } from './conditions.ts';
import type { RunningMachine } from './machine.ts';
import type { VirtualMachineInstance } from './resources.ts';

const NOT_MIGRATABLE =
  'cannot migrate VMI which does not use masquerade, bridge with kubevirt.io/allow-pod-bridge-network-live-migration VM annotation or a migratable plugin to connect to the pod network';

/** A locally administered MAC that stays with the machine's disk. */
export function macOf(diskId: string): string {
  const digest = createHash('sha256').update(diskId).digest();
  return ['02', ...Array.from(digest.subarray(0, 5), (byte) => byte.toString(16).padStart(2, '0'))].join(':');
}

function guestOsInfo({ osName, osVersion, kernel }: RunningMachine['guest']): Record<string, string> {
  return {
    id: osName.toLowerCase(),
    name: osName,
    prettyName: `${osName} ${osVersion}`,
    version: osVersion,
    versionId: osVersion.split(' ')[0] ?? osVersion,
    kernelRelease: kernel,
    machine: 'x86_64',
  };
}

/**
 * The VMI with a guest that runs: phase, addresses, what the guest agent reports. `time` is RFC 3339.
 * Models updateVMIStatus of kubevirt pkg/virt-handler/vm.go.
 */
export function withRunningGuest(
  vmi: VirtualMachineInstance,
  machine: RunningMachine,
  time: string,
): VirtualMachineInstance {
  const next = cloneJson(vmi);
  const status = (next.status ??= {});
  enterPhase(status, 'Running', time);
  const { ip, diskId } = machine.spec;
  status.interfaces = [
    {
      infoSource: 'domain, guest-agent',
      interfaceName: 'eth0',
      ipAddress: ip,
      ipAddresses: [ip],
      mac: macOf(diskId),
      name: 'default',
      podInterfaceName: 'eth0',
      queueCount: 1,
    },
  ];
  status.guestOSInfo = guestOsInfo(machine.guest);
  status.machine = { type: vmi.spec.domain.machine?.type ?? 'q35' };
  status.migrationMethod = 'BlockMigration';
  status.runtimeUser = 107;
  status.volumeStatus = (vmi.spec.domain.devices.disks ?? []).map((disk, index) => ({
    name: disk.name,
    target: `vd${String.fromCharCode(97 + index)}`,
  }));
  const conditions = (status.conditions ??= []);
  const masquerade = vmi.spec.domain.devices.interfaces?.every((nic) => nic.masquerade) ?? false;
  setCondition(
    conditions,
    masquerade
      ? { type: 'LiveMigratable', status: 'True', lastProbeTime: null, lastTransitionTime: null }
      : {
          type: 'LiveMigratable',
          status: 'False',
          reason: 'InterfaceNotLiveMigratable',
          message: NOT_MIGRATABLE,
          lastProbeTime: null,
          lastTransitionTime: null,
        },
  );
  setCondition(conditions, {
    type: 'AgentConnected',
    status: 'True',
    lastProbeTime: time,
    lastTransitionTime: null,
  });
  return next;
}
