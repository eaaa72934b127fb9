import type { Clock, Logger } from '#server/base';
import {
  createMemoryFileSystem,
  type FileSystem,
  type MemoryFileSystem,
  restoreFileSystem,
} from '#server/node';
import type { Store, StoreEngine } from '#server/store';

/** The disks of the pretend machines: kept as long as their VirtualMachine, over power cuts of the whole process. */
export interface Disks {
  /** The disk as it was saved last, or a fresh one from the OS image. */
  load(namespace: string, diskId: string): Promise<Disk>;
  delete(namespace: string, diskId: string): Promise<void>;
  close(): Promise<void>;
}

export interface Disk {
  readonly files: FileSystem;
  /** Writes the disk out now; resolves when it is durable. */
  save(): Promise<void>;
  /** Saves what is unsaved and stops following changes. */
  release(): Promise<void>;
}

/** Name of the store that holds the disks; no cluster path can be spelled like it. */
const STORE = 'machines:disks';
/** Changes are written out this long after the first of them, milliseconds. */
const SAVE_DELAY = 250;
/** Not on the disk, or not worth writing: volatile folders, and what kubelet and containerd make anew at every boot. */
const VOLATILE = [
  '/run/',
  '/tmp/',
  '/proc/',
  '/var/run/',
  '/var/lib/kubelet/pods/',
  '/var/log/pods/',
  '/var/log/containers/',
  '/var/lib/containerd/',
];
/** A disk holds certificates, manifests and logs: 4 MiB are plenty. */
const DISK_LIMIT = 4 * 1024 * 1024;

export async function createDisks(options: {
  engine: StoreEngine;
  clock: Clock;
  log: Logger;
  image: Readonly<Record<string, string>>;
}): Promise<Disks> {
  const store = await options.engine.open(STORE);
  return {
    async load(namespace, diskId) {
      const key = `/disks/${namespace}/${diskId}`;
      const saved = store.get(key);
      const limits = { clock: options.clock, limitBytes: DISK_LIMIT };
      const files = saved ? restoreFileSystem(saved.value, limits) : freshDisk(options.image, limits);
      if (files.exists('/run')) files.remove('/run', { recursive: true });
      files.mkdir('/run', { recursive: true });
      return followDisk(files, store, key, options);
    },
    async delete(namespace, diskId) {
      await store.delete(`/disks/${namespace}/${diskId}`);
    },
    close: () => store.close(),
  };
}

/** The OS image, with the merged /usr of today's distributions. */
function freshDisk(
  image: Readonly<Record<string, string>>,
  limits: Parameters<typeof createMemoryFileSystem>[1],
): MemoryFileSystem {
  const files = createMemoryFileSystem(image, limits);
  for (const folder of ['bin', 'sbin']) files.symlink(`usr/${folder}`, `/${folder}`);
  return files;
}

function followDisk(
  files: MemoryFileSystem,
  store: Store,
  key: string,
  options: { clock: Clock; log: Logger },
): Disk {
  let dirty = false;
  let pending: { cancel(): void } | undefined;
  const save = async (): Promise<void> => {
    pending?.cancel();
    pending = undefined;
    dirty = false;
    await store.put(key, () => files.snapshot());
  };
  const watch = files.watch('/', (path) => {
    if (VOLATILE.some((prefix) => path.startsWith(prefix))) return;
    dirty = true;
    pending ??= options.clock.after(SAVE_DELAY, () => {
      save().catch((error: unknown) =>
        options.log.error({ err: error, disk: key }, 'a disk could not be saved'),
      );
    });
  });
  return {
    files,
    save,
    async release() {
      watch.stop();
      pending?.cancel();
      if (dirty) await save();
    },
  };
}
