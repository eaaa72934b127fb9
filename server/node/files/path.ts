import { FileError, type FileStat } from '../contract.ts';

/** More links than this on the way to one file is a loop, as in Linux. */
const MAX_LINKS = 40;
const MAX_PATH = 4096;

/** `/a/b/c` without `.`, `..`, doubled or trailing slashes. Relative paths throw EINVAL. */
export function normalisePath(path: string): string {
  if (!path.startsWith('/') || path.length > MAX_PATH || path.includes('\0'))
    throw new FileError('EINVAL', path);
  const parts: string[] = [];
  for (const part of path.split('/')) {
    if (part === '' || part === '.') continue;
    if (part === '..') parts.pop();
    else parts.push(part);
  }
  return `/${parts.join('/')}`;
}

/** `path` seen from the directory `base`. */
export function joinPath(base: string, path: string): string {
  return normalisePath(path.startsWith('/') ? path : `${base}/${path}`);
}

export function parentPath(path: string): string {
  const slash = path.lastIndexOf('/');
  return slash <= 0 ? '/' : path.slice(0, slash);
}

export function baseName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** Whether `path` is `directory` or below it; both normalised. */
export function isBelow(path: string, directory: string): boolean {
  return directory === '/' || path === directory || path.startsWith(`${directory}/`);
}

/**
 * Follows the links of a path, seen from the root that `lstat` knows, the last one only with `followLast`. The last part
 * need not exist; a missing directory on the way throws ENOENT, a file there ENOTDIR, too many links ELOOP.
 */
export function resolveLinks(
  path: string,
  lstat: (path: string) => FileStat | undefined,
  followLast: boolean,
): string {
  if (!path.startsWith('/') || path.length > MAX_PATH || path.includes('\0'))
    throw new FileError('EINVAL', path);
  const pending = path.split('/').filter((part) => part !== '' && part !== '.');
  const done: string[] = [];
  let links = 0;
  while (pending.length > 0) {
    const part = pending.shift() ?? '';
    if (part === '.') continue;
    if (part === '..') {
      done.pop();
      continue;
    }
    const here = `/${[...done, part].join('/')}`;
    const stat = lstat(here);
    const last = pending.length === 0;
    if (stat?.type === 'symlink' && (!last || followLast)) {
      links += 1;
      if (links > MAX_LINKS) throw new FileError('ELOOP', path);
      const target = stat.target ?? '';
      if (target.startsWith('/')) done.length = 0;
      pending.unshift(...target.split('/').filter((piece) => piece !== '' && piece !== '.'));
      continue;
    }
    if (!last && !stat) throw new FileError('ENOENT', path);
    if (!last && stat?.type !== 'directory') throw new FileError('ENOTDIR', path);
    done.push(part);
  }
  return `/${done.join('/')}`;
}
