import type { FileSystem } from '#server/node';

/** What a VirtualMachineInstance asks to be run, once its virt-launcher pod is there. */
export interface MachineSpec {
  readonly namespace: string;
  /** Name of the VMI, which is the VM's. */
  readonly name: string;
  /** UID of this VMI: every boot of a re-created VMI has another. */
  readonly uid: string;
  /** UID of the VM that owns it, or of the VMI: whose disk it is. */
  readonly diskId: string;
  readonly hostname: string;
  /** Address of the `default` interface: the virt-launcher pod's. */
  readonly ip: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The cloud-init user data (cloud-config YAML) of the VMI's cloudInitNoCloud or cloudInitConfigDrive volume. */
  readonly userData: string;
  readonly cpus: number;
  /** Bytes. */
  readonly memory: number;
}

/** Whoever can run machines: the cluster room. It knows cloud-init and kubeadm; KubeVirt does not. */
export interface MachineHost {
  /**
   * Powers a machine on, with the disk `diskId` (kept from an earlier boot, or fresh). Resolves when the guest's
   * kernel runs, before cloud-init is done.
   */
  boot(spec: MachineSpec): Promise<RunningMachine>;
  /** Forgets a disk. */
  deleteDisk(namespace: string, diskId: string): Promise<void>;
}

export interface RunningMachine {
  readonly spec: MachineSpec;
  /** Resolves when the guest powered itself off or crashed; never rejects. */
  readonly ended: Promise<{ how: 'poweroff' | 'crash' }>;
  /** The guest's files, as somebody with SSH sees them. */
  readonly files: FileSystem;
  /** What the guest agent reports. */
  readonly guest: { osName: string; osVersion: string; kernel: string };
  /** ACPI shutdown: services stop in order. Resolves when off. */
  shutdown(): Promise<void>;
  /** Power cut. Resolves when off. */
  destroy(): Promise<void>;
}

/** SSH into a guest, for bootstrap checks. */
export interface GuestAccess {
  /** The file's text; undefined when the file or the machine is not there. */
  readFile(namespace: string, machine: string, path: string): string | undefined;
  /**
   * Calls back after changes below `path` of a running guest. Left out where guests cannot tell (real SSH): whoever
   * waits for a file then has to look again. A machine that is not running yet gives no calls.
   */
  watch?(namespace: string, machine: string, path: string, onChange: () => void): { stop(): void };
}
