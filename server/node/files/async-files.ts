import type { AsyncFiles } from '../applets/contract.ts';
import { FileError, type FileStat, type FileSystem } from '../contract.ts';
import { parentPath, resolveLinks } from './path.ts';

/** A FileSystem as applets see it. */
export function createAsyncFiles(files: FileSystem): AsyncFiles {
  const lstat = (path: string): FileStat | undefined => {
    try {
      return files.stat(path);
    } catch (error) {
      if (error instanceof FileError) return undefined;
      throw error;
    }
  };
  return {
    readFile: async (path) => files.readFile(path),
    async writeFile(path, content, options) {
      const mode = options?.mode === undefined ? {} : { mode: options.mode };
      const before = options?.append && files.exists(path) ? files.readFile(path) : undefined;
      if (!before && lstat(parentPath(path)) === undefined) throw new FileError('ENOENT', path);
      files.writeFile(path, before ? Buffer.concat([before, content]) : content, mode);
    },
    mkdir: async (path, options) => files.mkdir(path, options),
    readdir: async (path) => files.readdir(path),
    lstat: async (path) => lstat(path),
    async stat(path) {
      try {
        return lstat(resolveLinks(path, lstat, true));
      } catch (error) {
        if (error instanceof FileError) return undefined;
        throw error;
      }
    },
    remove: async (path, options) => files.remove(path, options),
    rename: async (from, to) => files.rename(from, to),
    symlink: async (target, path) => files.symlink(target, path),
  };
}
