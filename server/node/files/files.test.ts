import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FileError } from '../contract.ts';
import { createMemoryFileSystem, restoreFileSystem } from './memory-files.ts';
import { createMountedFiles, createRootedFiles, readText } from './mounted-files.ts';
import { normalisePath } from './path.ts';

const clock = { now: () => 1_000 };
const memory = (files: Record<string, string> = {}, limitBytes?: number) =>
  createMemoryFileSystem(files, { clock, ...(limitBytes === undefined ? {} : { limitBytes }) });
const code = (act: () => unknown): string => {
  try {
    act();
    return 'ok';
  } catch (error) {
    return error instanceof FileError ? error.code : String(error);
  }
};

describe('memory files', () => {
  it('says POSIX errors', () => {
    const files = memory({ '/a/b': 'x' });
    expect([
      code(() => files.readFile('/nope')),
      code(() => files.readFile('/a')),
      code(() => files.readdir('/a/b')),
      code(() => files.mkdir('/a')),
      code(() => files.writeFile('/no/where', '')),
      code(() => files.remove('/a')),
      code(() => files.readFile('/a/b/c')),
      code(() => files.readFile('relative')),
      code(() => files.rename('/a', '/a/c')),
    ]).toEqual([
      'ENOENT',
      'EISDIR',
      'ENOTDIR',
      'EEXIST',
      'ENOENT',
      'ENOTEMPTY',
      'ENOTDIR',
      'EINVAL',
      'EINVAL',
    ]);
  });

  it('follows links and stops at loops', () => {
    const files = memory({ '/d/f': 'x' });
    files.symlink('d', '/l');
    files.symlink('/loop2', '/loop1');
    files.symlink('loop1', '/loop2');
    expect(readText(files, '/l/f')).toBe('x');
    expect(files.stat('/l')).toMatchObject({ type: 'symlink', target: 'd' });
    expect(code(() => files.readFile('/loop1'))).toBe('ELOOP');
  });

  it('has a limit, and gives back what is removed', () => {
    const files = memory({}, 1_000);
    expect(code(() => files.writeFile('/big', 'x'.repeat(2_000)))).toBe('ENOSPC');
    files.writeFile('/a', 'x'.repeat(800));
    expect(code(() => files.writeFile('/b', 'x'.repeat(800)))).toBe('ENOSPC');
    files.remove('/a');
    expect(files.usedBytes).toBe(0);
    files.writeFile('/b', 'x'.repeat(800));
  });

  it('tells watchers what changed below their path', () => {
    const files = memory({ '/a/x': '' });
    const seen: string[] = [];
    const watch = files.watch('/a', (path) => seen.push(path));
    files.writeFile('/a/y', '1');
    files.writeFile('/b', '1');
    files.rename('/b', '/a/z');
    watch.stop();
    files.remove('/a/y');
    expect(seen).toEqual(['/a/y', '/a/z']);
  });

  it('survives a snapshot', () => {
    const part = fc.stringMatching(/^[a-z]{1,4}$/);
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.array(part, { minLength: 1, maxLength: 4 }), fc.uint8Array({ maxLength: 64 })), {
          maxLength: 20,
        }),
        (entries) => {
          const files = memory();
          for (const [parts, content] of entries) {
            const path = `/${parts.join('/')}`;
            try {
              files.mkdir(path.slice(0, path.lastIndexOf('/')) || '/', { recursive: true });
              files.writeFile(path, content, { mode: 0o600 });
            } catch (error) {
              if (!(error instanceof FileError)) throw error;
            }
          }
          const restored = restoreFileSystem(files.snapshot(), { clock });
          expect(restored.snapshot()).toEqual(files.snapshot());
          expect(restored.usedBytes).toBe(files.usedBytes);
        },
      ),
    );
  });

  it('normalises any path to itself', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('a', 'b', '.', '..', ''), { maxLength: 8 }), (parts) => {
        const once = normalisePath(`/${parts.join('/')}`);
        expect(normalisePath(once)).toBe(once);
        expect(once).not.toMatch(/\/\/|\/\.\.?(\/|$)/);
      }),
    );
  });
});

describe('mounted files', () => {
  it('shows volumes in a root, read-only where told', () => {
    const root = memory({ '/etc/x': 'root', '/mnt/.keep': '' });
    const volume = memory({ '/in/v': 'volume' });
    const view = createMountedFiles([
      { at: '/', files: root },
      { at: '/mnt', files: volume, source: '/in', readOnly: true },
      { at: '/deep/er/dir', files: volume },
    ]);
    expect(readText(view, '/mnt/v')).toBe('volume');
    expect(view.readdir('/')).toEqual(['deep', 'etc', 'mnt']);
    expect(view.readdir('/deep')).toEqual(['er']);
    expect(code(() => view.writeFile('/mnt/new', ''))).toBe('EROFS');
    expect(code(() => view.remove('/mnt'))).toBe('EINVAL');
    view.symlink('/mnt/v', '/etc/link');
    expect(readText(view, '/etc/link')).toBe('volume');
    const seen: string[] = [];
    view.watch('/deep', (path) => seen.push(path));
    view.writeFile('/deep/er/dir/in/w', 'x');
    expect(seen).toEqual(['/deep/er/dir/in/w']);
  });

  it('chroots: absolute links stay inside', () => {
    const files = memory({ '/secret': 'outside', '/host/etc/os': 'inside', '/host/secret': 'below' });
    files.symlink('/secret', '/host/etc/link');
    files.symlink('../../../../secret', '/host/etc/up');
    const inside = createRootedFiles(files, '/host');
    expect([
      readText(inside, '/etc/os'),
      readText(inside, '/etc/link'),
      readText(inside, '/etc/up'),
      readText(inside, '/../secret'),
    ]).toEqual(['inside', 'below', 'below', 'below']);
    expect(inside.readdir('/')).toEqual(['etc', 'secret']);
  });
});
