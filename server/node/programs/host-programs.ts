import type { FileSystem, Program } from '../contract.ts';
import { createMemoryFileSystem } from '../files/memory-files.ts';
import { createMountedFiles } from '../files/mounted-files.ts';
import { busyboxPrograms } from './busybox.ts';

let programs: Readonly<Record<string, Program>> | undefined;
let binaries: FileSystem | undefined;

/** The programs of the machine itself, one set for all machines: what `chroot /host` finds. */
export function hostPrograms(): Readonly<Record<string, Program>> {
  programs ??= busyboxPrograms({
    directories: ['/usr/bin', '/bin', '/usr/sbin', '/sbin'],
    shells: ['sh', 'bash', 'dash'],
  });
  return programs;
}

function binaryFiles(): FileSystem {
  if (binaries) return binaries;
  const files = createMemoryFileSystem(undefined, { clock: { now: () => 0 } });
  const marker = Buffer.from('\x7fELF\x02\x01\x01', 'latin1');
  for (const path of Object.keys(hostPrograms())) {
    const match = /^\/usr\/bin\/(.+)$/.exec(path);
    if (match) files.writeFile(`/${match[1]}`, marker, { mode: 0o755 });
  }
  binaries = files;
  return files;
}

/** A machine's disk with its operating system's programs in /usr/bin (read-only, shared by all machines). */
export function machineFiles(disk: FileSystem): FileSystem {
  return createMountedFiles([
    { at: '/', files: disk },
    { at: '/usr/bin', files: binaryFiles(), readOnly: true },
  ]);
}
