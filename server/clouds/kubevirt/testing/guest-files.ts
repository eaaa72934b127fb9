import type { RunningMachine } from '../machine.ts';

type Files = RunningMachine['files'];

/** The files of a pretend guest: just enough for SSH to read and watch them. */
export function createGuestFiles(): Files {
  const contents = new Map<string, Uint8Array>();
  const watchers = new Set<{ path: string; onChange(path: string): void }>();
  const changed = (path: string): void => {
    for (const watcher of [...watchers])
      if (path.startsWith(`${watcher.path}/`) || path === watcher.path) watcher.onChange(path);
  };
  const unused = (): never => {
    throw new Error('a pretend guest cannot do that');
  };
  return {
    readFile: (path) => contents.get(path) ?? unused(),
    writeFile(path, content) {
      contents.set(path, typeof content === 'string' ? Buffer.from(content) : content);
      changed(path);
    },
    exists: (path) => contents.has(path),
    mkdir: () => undefined,
    readdir: unused,
    stat: unused,
    remove: unused,
    rename: unused,
    symlink: unused,
    watch(path, onChange) {
      const watcher = { path, onChange };
      watchers.add(watcher);
      return { stop: () => void watchers.delete(watcher) };
    },
  };
}
