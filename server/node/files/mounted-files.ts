import { FileError, type FileStat, type FileSystem } from '../contract.ts';
import { isBelow, normalisePath, parentPath, resolveLinks } from './path.ts';

export interface Mount {
  /** Where it is seen: absolute, normalised. `/` is the root of the view. */
  readonly at: string;
  readonly files: FileSystem;
  /** Which directory (or file) of `files` is seen there. Default `/`. */
  readonly source?: string;
  readonly readOnly?: boolean;
}

/** Where a path of the view really is. */
interface Place {
  mount: Mount;
  path: string;
}

/**
 * One tree out of several: a container's root with its volumes, as bind mounts do it. Links are followed as seen from the
 * view's root, so a link inside a mount may lead into another. Mounts given later cover earlier ones. Errors: EROFS below a
 * read-only mount, EINVAL for a rename across mounts.
 */
export function createMountedFiles(mounts: readonly Mount[]): FileSystem {
  const byDepth = [...mounts].reverse();
  const place = (path: string): Place => {
    let best: Mount | undefined;
    for (const mount of byDepth) {
      if (isBelow(path, mount.at) && (!best || mount.at.length > best.at.length)) best = mount;
    }
    if (!best) throw new FileError('ENOENT', path);
    const below = best.at === '/' ? path : path.slice(best.at.length);
    return { mount: best, path: normalisePath(`${best.source ?? '/'}${below === '' ? '' : `/${below}`}`) };
  };
  /** Names of `path` on the way to mounts below it: they are seen even where the tree itself has no such directory. */
  const mountsBelow = (path: string): string[] =>
    mounts
      .filter((mount) => mount.at !== path && isBelow(mount.at, path))
      .map((mount) => mount.at.slice(path === '/' ? 1 : path.length + 1).split('/')[0] ?? '');
  const wayToMount = (path: string): FileStat | undefined =>
    mountsBelow(path).length > 0 ? { type: 'directory', size: 4096, mode: 0o755, modified: 0 } : undefined;
  const lstat = (path: string): FileStat | undefined => {
    const { mount, path: inner } = place(path);
    try {
      const stat = mount.files.stat(inner);
      // What a mount shows at its own root is never a link: the mount followed it.
      if (stat.type === 'symlink' && path === mount.at)
        return mount.files.stat(resolveLinks(inner, (p) => statOrNothing(mount.files, p), true));
      return stat;
    } catch (error) {
      if (error instanceof FileError) return wayToMount(path);
      throw error;
    }
  };
  const at = (path: string, followLast = true): Place => place(resolveLinks(path, lstat, followLast));
  const writable = (path: string, followLast = true): Place => {
    const found = at(path, followLast);
    if (found.mount.readOnly) throw new FileError('EROFS', path);
    return found;
  };
  const isMountPoint = (path: string): boolean => mounts.some((mount) => mount.at === path);

  return {
    readFile(path) {
      const found = at(path);
      return found.mount.files.readFile(found.path);
    },
    writeFile(path, content, options) {
      const found = writable(path);
      found.mount.files.writeFile(found.path, content, options);
    },
    mkdir(path, options) {
      if (options?.recursive) {
        const wanted = normalisePath(path);
        if (lstat(wanted)?.type === 'directory') return;
        if (wanted !== '/') this.mkdir(parentPath(wanted), options);
        const stat = lstat(resolveLinks(wanted, lstat, true));
        if (stat?.type === 'directory') return;
        if (stat) throw new FileError('EEXIST', path);
      }
      const found = writable(path, false);
      found.mount.files.mkdir(found.path);
    },
    readdir(path) {
      const resolved = resolveLinks(path, lstat, true);
      const found = place(resolved);
      const onTheWay = mountsBelow(resolved);
      const names = new Set(
        onTheWay.length > 0 && !found.mount.files.exists(found.path)
          ? []
          : found.mount.files.readdir(found.path),
      );
      for (const name of onTheWay) names.add(name);
      return [...names].sort();
    },
    stat(path) {
      const stat = lstat(resolveLinks(path, lstat, false));
      if (!stat) throw new FileError('ENOENT', path);
      return stat;
    },
    exists(path) {
      try {
        return lstat(resolveLinks(path, lstat, true)) !== undefined;
      } catch (error) {
        if (error instanceof FileError) return false;
        throw error;
      }
    },
    remove(path, options) {
      const resolved = resolveLinks(path, lstat, false);
      if (isMountPoint(resolved)) throw new FileError('EINVAL', path);
      const found = writable(path, false);
      found.mount.files.remove(found.path, options);
    },
    rename(from, to) {
      const source = writable(from, false);
      const target = writable(to, false);
      if (source.mount !== target.mount) throw new FileError('EINVAL', to);
      source.mount.files.rename(source.path, target.path);
    },
    symlink(target, path) {
      const found = writable(path, false);
      found.mount.files.symlink(target, found.path);
    },
    watch(path, onChange) {
      const wanted = normalisePath(path);
      const stops = mounts
        .filter((mount) => isBelow(mount.at, wanted) || isBelow(wanted, mount.at))
        .map((mount) => {
          const source = normalisePath(mount.source ?? '/');
          const inner = isBelow(wanted, mount.at)
            ? normalisePath(`${source}/${wanted.slice(mount.at === '/' ? 0 : mount.at.length)}`)
            : source;
          return mount.files.watch(inner, (changed) => {
            const below = source === '/' ? changed : changed.slice(source.length);
            const seen = normalisePath(`${mount.at}/${below}`);
            if (isBelow(seen, wanted)) onChange(seen);
          });
        });
      return {
        stop() {
          for (const stop of stops) stop.stop();
        },
      };
    },
  };
}

function statOrNothing(files: FileSystem, path: string): FileStat | undefined {
  try {
    return files.stat(path);
  } catch (error) {
    if (error instanceof FileError) return undefined;
    throw error;
  }
}

/** What `chroot` sees: `root` of `files` as `/`, links followed from there. Throws ENOENT or ENOTDIR. */
export function createRootedFiles(files: FileSystem, root: string): FileSystem {
  const base = followTo(files, normalisePath(root));
  if (files.stat(base).type !== 'directory') throw new FileError('ENOTDIR', root);
  if (base === '/') return files;
  const outer = (path: string): string => (path === '/' ? base : `${base}${path}`);
  const lstat = (path: string): FileStat | undefined => statOrNothing(files, outer(path));
  const at = (path: string, followLast = true): string => outer(resolveLinks(path, lstat, followLast));
  return {
    readFile: (path) => files.readFile(at(path)),
    writeFile: (path, content, options) => files.writeFile(at(path), content, options),
    mkdir: (path, options) =>
      files.mkdir(options?.recursive ? outer(normalisePath(path)) : at(path, false), options),
    readdir: (path) => files.readdir(at(path)),
    stat: (path) => files.stat(at(path, false)),
    exists: (path) => {
      try {
        return files.exists(at(path));
      } catch (error) {
        if (error instanceof FileError) return false;
        throw error;
      }
    },
    remove: (path, options) => files.remove(at(path, false), options),
    rename: (from, to) => files.rename(at(from, false), at(to, false)),
    symlink: (target, path) => files.symlink(target, at(path, false)),
    watch: (path, onChange) =>
      files.watch(outer(normalisePath(path)), (changed) => onChange(changed.slice(base.length) || '/')),
  };
}

function followTo(files: FileSystem, path: string): string {
  return resolveLinks(path, (p) => statOrNothing(files, p), true);
}

/** Makes the files when first looked at: most containers never look. */
export function createLazyFiles(make: () => FileSystem): FileSystem {
  let made: FileSystem | undefined;
  const files = (): FileSystem => {
    made ??= make();
    return made;
  };
  return {
    readFile: (path) => files().readFile(path),
    writeFile: (path, content, options) => files().writeFile(path, content, options),
    mkdir: (path, options) => files().mkdir(path, options),
    readdir: (path) => files().readdir(path),
    stat: (path) => files().stat(path),
    exists: (path) => files().exists(path),
    remove: (path, options) => files().remove(path, options),
    rename: (from, to) => files().rename(from, to),
    symlink: (target, path) => files().symlink(target, path),
    watch: (path, onChange) => files().watch(path, onChange),
  };
}

/** The text of a file; undefined when it is not there. */
export function readText(files: FileSystem, path: string): string | undefined {
  try {
    return Buffer.from(files.readFile(path)).toString('utf8');
  } catch (error) {
    if (error instanceof FileError) return undefined;
    throw error;
  }
}
