import type { FileSystem, Program } from '../contract.ts';

/** The programs of the machine itself: what `chroot /host` finds. */
export function hostPrograms(): Readonly<Record<string, Program>> {
  return {};
}

/** A machine's disk with its operating system's programs in place. */
export function machineFiles(disk: FileSystem): FileSystem {
  return disk;
}
