import type { Clock } from '#server/base';
import { FileError, type FileStat, type FileSystem } from '../contract.ts';
import { baseName, isBelow, normalisePath, parentPath, resolveLinks } from './path.ts';
import { decodeSnapshot, encodeSnapshot, type SnapshotEntry } from './snapshot.ts';

/** What one file system holds when nobody says otherwise: content plus ENTRY_COST a file. */
const DEFAULT_LIMIT = 64 * 1024 * 1024;
const ENTRY_COST = 128;
const MAX_WATCHERS = 4096;

export interface MemoryFileSystemOptions {
  clock: Pick<Clock, 'now'>;
  /** Most bytes it holds; beyond it writes throw ENOSPC. Default 64 MiB. */
  limitBytes?: number;
}

export interface MemoryFileSystem extends FileSystem {
  /** Everything it holds, compressed: for `restoreFileSystem`. */
  snapshot(): Uint8Array;
  /** Bytes it holds, as the limit counts them. */
  readonly usedBytes: number;
}

interface FileEntry {
  type: 'file';
  content: Uint8Array;
  mode: number;
  modified: number;
}
interface LinkEntry {
  type: 'symlink';
  target: string;
  modified: number;
}
interface DirectoryEntry {
  type: 'directory';
  children: Map<string, Entry>;
  mode: number;
  modified: number;
}
type Entry = FileEntry | LinkEntry | DirectoryEntry;

/**
 * A file system in memory. `initial`: contents by absolute path; the directories above are made. Contents given as bytes
 * are shared, not copied: do not change them afterwards.
 */
export function createMemoryFileSystem(
  initial: Readonly<Record<string, string | Uint8Array>> | undefined,
  options: MemoryFileSystemOptions,
): MemoryFileSystem {
  const files = createTree(options);
  for (const [path, content] of Object.entries(initial ?? {})) {
    files.mkdir(parentPath(normalisePath(path)), { recursive: true });
    files.writeFile(path, content);
  }
  return files;
}

/** The file system a snapshot was taken of. Throws InternalError when the bytes are not a snapshot. */
export function restoreFileSystem(snapshot: Uint8Array, options: MemoryFileSystemOptions): MemoryFileSystem {
  return createTree(options, decodeSnapshot(snapshot));
}

function createTree(
  options: MemoryFileSystemOptions,
  restored: readonly SnapshotEntry[] = [],
): MemoryFileSystem {
  const { clock } = options;
  const limit = options.limitBytes ?? DEFAULT_LIMIT;
  const root: DirectoryEntry = { type: 'directory', children: new Map(), mode: 0o755, modified: clock.now() };
  const watchers = new Set<{ path: string; onChange: (path: string) => void }>();
  let used = 0;

  const find = (path: string): Entry | undefined => {
    let entry: Entry | undefined = root;
    for (const part of path.split('/')) {
      if (part === '') continue;
      if (entry?.type !== 'directory') return undefined;
      entry = entry.children.get(part);
    }
    return entry;
  };
  const statOf = (entry: Entry): FileStat => {
    if (entry.type === 'file')
      return { type: 'file', size: entry.content.length, mode: entry.mode, modified: entry.modified };
    if (entry.type === 'symlink')
      return {
        type: 'symlink',
        size: entry.target.length,
        mode: 0o777,
        modified: entry.modified,
        target: entry.target,
      };
    return { type: 'directory', size: 4096, mode: entry.mode, modified: entry.modified };
  };
  const lstat = (path: string): FileStat | undefined => {
    const entry = find(path);
    return entry && statOf(entry);
  };
  const resolve = (path: string, followLast = true): string => resolveLinks(path, lstat, followLast);
  const parentOf = (path: string): DirectoryEntry => {
    const parent = find(parentPath(path));
    if (!parent) throw new FileError('ENOENT', path);
    if (parent.type !== 'directory') throw new FileError('ENOTDIR', path);
    return parent;
  };
  const changed = (...paths: string[]): void => {
    if (watchers.size === 0) return;
    for (const watcher of [...watchers]) {
      for (const path of paths) {
        if (isBelow(path, watcher.path) && watchers.has(watcher)) watcher.onChange(path);
      }
    }
  };
  const reserve = (bytes: number, path: string): void => {
    if (bytes > 0 && used + bytes > limit) throw new FileError('ENOSPC', path);
    used += bytes;
  };
  const put = (path: string, entry: Entry): void => {
    const parent = parentOf(path);
    parent.children.set(baseName(path), entry);
    parent.modified = clock.now();
  };
  const weigh = (entry: Entry): number => {
    if (entry.type === 'file') return ENTRY_COST + entry.content.length;
    if (entry.type === 'symlink') return ENTRY_COST;
    let sum = ENTRY_COST;
    for (const child of entry.children.values()) sum += weigh(child);
    return sum;
  };
  const makeDirectory = (path: string, recursive: boolean): void => {
    const existing = find(path);
    if (existing) {
      if (recursive && existing.type === 'directory') return;
      throw new FileError('EEXIST', path);
    }
    if (recursive && path !== '/') {
      const parent = find(parentPath(path));
      if (!parent) makeDirectory(parentPath(path), true);
    }
    parentOf(path);
    reserve(ENTRY_COST, path);
    put(path, { type: 'directory', children: new Map(), mode: 0o755, modified: clock.now() });
  };
  const followAsFarAsPossible = (path: string): string => {
    const parts = normalisePath(path).split('/').slice(1);
    let done = '/';
    for (const [index, part] of parts.entries()) {
      const here = done === '/' ? `/${part}` : `${done}/${part}`;
      const stat = lstat(here);
      if (!stat) return normalisePath(`${done}/${parts.slice(index).join('/')}`);
      done = stat.type === 'symlink' ? resolve(here) : here;
    }
    return done;
  };

  for (const item of restored) {
    const entry: Entry =
      item.type === 'directory'
        ? { type: 'directory', children: new Map(), mode: item.mode, modified: item.modified }
        : item.type === 'file'
          ? { type: 'file', content: item.content, mode: item.mode, modified: item.modified }
          : { type: 'symlink', target: Buffer.from(item.content).toString('utf8'), modified: item.modified };
    if (item.path === '/') continue;
    used += weigh(entry);
    parentOf(item.path).children.set(baseName(item.path), entry);
  }

  return {
    readFile(path) {
      const entry = find(resolve(path));
      if (!entry) throw new FileError('ENOENT', path);
      if (entry.type !== 'file') throw new FileError('EISDIR', path);
      return entry.content;
    },
    writeFile(path, content, writeOptions) {
      const at = resolve(path);
      const bytes = typeof content === 'string' ? Buffer.from(content) : content;
      const existing = find(at);
      if (existing && existing.type !== 'file') throw new FileError('EISDIR', path);
      if (path.endsWith('/')) throw new FileError('EISDIR', path);
      parentOf(at);
      reserve(bytes.length - (existing?.content.length ?? -ENTRY_COST), path);
      const mode = writeOptions?.mode ?? existing?.mode ?? 0o644;
      if (existing) Object.assign(existing, { content: bytes, mode, modified: clock.now() });
      else put(at, { type: 'file', content: bytes, mode, modified: clock.now() });
      changed(at);
    },
    mkdir(path, mkdirOptions) {
      const recursive = mkdirOptions?.recursive === true;
      const at = recursive ? followAsFarAsPossible(path) : resolve(path, false);
      makeDirectory(at, recursive);
      changed(at);
    },
    readdir(path) {
      const entry = find(resolve(path));
      if (!entry) throw new FileError('ENOENT', path);
      if (entry.type !== 'directory') throw new FileError('ENOTDIR', path);
      return [...entry.children.keys()].sort();
    },
    stat(path) {
      const entry = find(resolve(path, false));
      if (!entry) throw new FileError('ENOENT', path);
      return statOf(entry);
    },
    exists(path) {
      try {
        return find(resolve(path)) !== undefined;
      } catch (error) {
        if (error instanceof FileError) return false;
        throw error;
      }
    },
    remove(path, removeOptions) {
      const at = resolve(path, false);
      const entry = find(at);
      if (!entry) throw new FileError('ENOENT', path);
      if (at === '/') throw new FileError('EINVAL', path);
      if (entry.type === 'directory' && entry.children.size > 0 && removeOptions?.recursive !== true) {
        throw new FileError('ENOTEMPTY', path);
      }
      const parent = parentOf(at);
      parent.children.delete(baseName(at));
      parent.modified = clock.now();
      used -= weigh(entry);
      changed(at);
    },
    rename(from, to) {
      const source = resolve(from, false);
      const target = resolve(to, false);
      const entry = find(source);
      if (!entry) throw new FileError('ENOENT', from);
      if (source === target) return;
      if (isBelow(target, source)) throw new FileError('EINVAL', to);
      const replaced = find(target);
      if (replaced?.type === 'directory' && replaced.children.size > 0) throw new FileError('ENOTEMPTY', to);
      if (replaced?.type === 'directory' && entry.type !== 'directory') throw new FileError('EISDIR', to);
      parentOf(target);
      if (replaced) used -= weigh(replaced);
      parentOf(source).children.delete(baseName(source));
      put(target, entry);
      changed(source, target);
    },
    symlink(target, path) {
      const at = resolve(path, false);
      if (find(at)) throw new FileError('EEXIST', path);
      parentOf(at);
      reserve(ENTRY_COST, path);
      put(at, { type: 'symlink', target, modified: clock.now() });
      changed(at);
    },
    watch(path, onChange) {
      if (watchers.size >= MAX_WATCHERS) throw new FileError('ENOSPC', path);
      const watcher = { path: normalisePath(path), onChange };
      watchers.add(watcher);
      return { stop: () => void watchers.delete(watcher) };
    },
    snapshot() {
      const entries: SnapshotEntry[] = [];
      const visit = (path: string, entry: Entry): void => {
        if (entry.type === 'directory') {
          entries.push({
            type: 'directory',
            path: path || '/',
            mode: entry.mode,
            modified: entry.modified,
            content: EMPTY,
          });
          for (const [name, child] of entry.children) visit(`${path}/${name}`, child);
        } else if (entry.type === 'file') {
          entries.push({
            type: 'file',
            path,
            mode: entry.mode,
            modified: entry.modified,
            content: entry.content,
          });
        } else {
          entries.push({
            type: 'symlink',
            path,
            mode: 0o777,
            modified: entry.modified,
            content: Buffer.from(entry.target),
          });
        }
      };
      visit('', root);
      return encodeSnapshot(entries);
    },
    get usedBytes() {
      return used;
    },
  };
}

const EMPTY = new Uint8Array(0);
