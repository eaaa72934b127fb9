import type { FileStat } from '../contract.ts';
import { baseName, joinPath, parentPath } from '../files/path.ts';
import { type Applet, type AppletContext, AppletError } from './contract.ts';
import { openInput } from './open.ts';
import { fileErrorText, parseOptions } from './options.ts';
import { globRegex } from './posix-regex.ts';

/** How deep `ls -R`, `rm -r`, `find` … go. */
const MAX_DEPTH = 64;
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const SIX_MONTHS = 15_552_000_000;

/** Does something for every operand; what fails is told and makes the status 1. */
export async function forEachPath(context: AppletContext, paths: readonly string[], act: (path: string) => Promise<void>, describe: (path: string) => string = (path) => path): Promise<number> {
  let status = 0;
  for (const path of paths) {
    await context.breathe();
    try {
      await act(path);
    } catch (error) {
      const text = fileErrorText(error) ?? (error instanceof AppletError ? error.message : undefined);
      if (text === undefined) throw error;
      await context.stderr.write(`${context.argv[0]}: ${describe(path)}: ${text}\n`);
      status = 1;
    }
  }
  return status;
}

export const at = (context: AppletContext, path: string): string => joinPath(context.cwd, path);

const cat: Applet = async (context) => {
  const options = parseOptions(context.argv, 'nbsvetAu');
  const paths = options.rest.length > 0 ? options.rest : ['-'];
  let number = 0;
  return forEachPath(
    context,
    paths,
    async (path) => {
      const input = path === '-' ? context.stdin : await openInput(context, path);
      if (options.has('n')) {
        for (let line = await input.readLine(); line; line = await input.readLine()) await context.stdout.write(`${String(++number).padStart(6)}\t${line.line}${line.complete ? '\n' : ''}`);
        return;
      }
      for (let chunk = await input.read(); chunk; chunk = await input.read()) await context.stdout.write(chunk);
    },
    (path) => `can't open '${path}'`,
  );
};

function permissions(stat: FileStat): string {
  const bits = [0o400, 0o200, 0o100, 0o40, 0o20, 0o10, 0o4, 0o2, 0o1].map((bit, index) => (stat.mode & bit ? 'rwx'[index % 3] : '-')).join('');
  return `${stat.type === 'directory' ? 'd' : stat.type === 'symlink' ? 'l' : '-'}${bits}`;
}

function listDate(modified: number, now: number): string {
  const date = new Date(modified);
  const recent = Math.abs(now - modified) < SIX_MONTHS;
  const tail = recent ? date.toISOString().slice(11, 16) : ` ${date.getUTCFullYear()}`;
  return `${MONTHS[date.getUTCMonth()]} ${String(date.getUTCDate()).padStart(2)} ${tail}`;
}

function humanSize(bytes: number): string {
  if (bytes < 1024) return String(bytes);
  const units = ['K', 'M', 'G', 'T'];
  let value = bytes;
  let unit = -1;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${value.toFixed(1)}${units[unit]}`;
}

const ls: Applet = async (context) => {
  const options = parseOptions(context.argv, '1AaCxdFhikLlnprRSstTuvXwcH', { color: 'C', all: 'a' }, {});
  const now = await context.now();
  const show = async (entries: { name: string; path: string }[]): Promise<void> => {
    const rows: { name: string; stat: FileStat }[] = [];
    for (const entry of entries) {
      const stat = options.has('L') ? await context.files.stat(entry.path) : await context.files.lstat(entry.path);
      if (stat) rows.push({ name: entry.name, stat });
    }
    if (options.has('t')) rows.sort((a, b) => b.stat.modified - a.stat.modified);
    if (options.has('S')) rows.sort((a, b) => b.stat.size - a.stat.size);
    if (options.has('r')) rows.reverse();
    const label = ({ name, stat }: { name: string; stat: FileStat }): string =>
      name + (options.has('F') || options.has('p') ? (stat.type === 'directory' ? '/' : options.has('F') && stat.type === 'symlink' ? '@' : options.has('F') && stat.mode & 0o111 ? '*' : '') : '');
    if (!options.has('l')) {
      if (context.isTerminal && !options.has('1') && rows.length > 0) await context.stdout.write(columns(rows.map(label), context.size.width));
      else for (const row of rows) await context.stdout.write(`${label(row)}\n`);
      return;
    }
    const sizes = rows.map((row) => (options.has('h') ? humanSize(row.stat.size) : String(row.stat.size)));
    const width = Math.max(9, ...sizes.map((size) => size.length));
    for (const [index, row] of rows.entries()) {
      const target = row.stat.type === 'symlink' ? ` -> ${row.stat.target}` : '';
      const owner = options.has('n') ? '0        0       ' : 'root     root    ';
      await context.stdout.write(`${permissions(row.stat)}    1 ${owner} ${(sizes[index] ?? '').padStart(width)} ${listDate(row.stat.modified, now)} ${label(row)}${target}\n`);
    }
  };
  const listDirectory = async (path: string, name: string, titled: boolean, depth: number): Promise<void> => {
    let names = await context.files.readdir(path);
    if (!options.has('a') && !options.has('A')) names = names.filter((one) => !one.startsWith('.'));
    if (options.has('a')) names = ['.', '..', ...names];
    if (titled) await context.stdout.write(`${name}:\n`);
    const entries = names.map((one) => ({ name: one, path: joinPath(path, one) }));
    if (options.has('l')) await context.stdout.write(`total ${entries.length * 4}\n`);
    await show(entries);
    if (!options.has('R') || depth >= MAX_DEPTH) return;
    for (const entry of entries) {
      await context.breathe();
      if (entry.name === '.' || entry.name === '..' || (await context.files.lstat(entry.path))?.type !== 'directory') continue;
      await context.stdout.write('\n');
      await listDirectory(entry.path, `${name === '/' ? '' : name}/${entry.name}`, true, depth + 1);
    }
  };
  const paths = options.rest.length > 0 ? options.rest : ['.'];
  const plain: { name: string; path: string }[] = [];
  const directories: string[] = [];
  const status = await forEachPath(context, paths, async (path) => {
    const real = at(context, path);
    const stat = (options.has('l') && !path.endsWith('/') ? await context.files.lstat(real) : undefined) ?? (await context.files.stat(real)) ?? (await context.files.lstat(real));
    if (!stat) throw new AppletError('No such file or directory');
    if (stat.type === 'directory' && !options.has('d')) directories.push(path);
    else plain.push({ name: path, path: real });
  });
  if (plain.length > 0) await show(plain);
  for (const [index, path] of directories.entries()) {
    if (index > 0 || plain.length > 0) await context.stdout.write('\n');
    await listDirectory(at(context, path), path, directories.length + plain.length > 1 || options.has('R'), 0);
  }
  return status;
};

function columns(names: readonly string[], width: number): string {
  const widest = Math.max(...names.map((name) => name.length)) + 2;
  const perRow = Math.max(1, Math.floor(Math.max(width, 20) / widest));
  const rows = Math.ceil(names.length / perRow);
  const lines = Array.from({ length: rows }, (_, row) =>
    names
      .filter((_name, index) => index % rows === row)
      .map((name, index, all) => (index === all.length - 1 ? name : name.padEnd(widest)))
      .join(''),
  );
  return `${lines.join('\n')}\n`;
}

const mkdir: Applet = async (context) => {
  const options = parseOptions(context.argv, 'pm:', { parents: 'p' });
  if (options.rest.length === 0) throw new AppletError('missing operand');
  return forEachPath(context, options.rest, (path) => context.files.mkdir(at(context, path), { recursive: options.has('p') }), (path) => `can't create directory '${path}'`);
};

const rmdir: Applet = async (context) => forEachPath(context, parseOptions(context.argv, 'p').rest, async (path) => {
  if ((await context.files.lstat(at(context, path)))?.type === 'file') throw new AppletError('Not a directory');
  await context.files.remove(at(context, path));
}, (path) => `'${path}'`);

const rm: Applet = async (context) => {
  const options = parseOptions(context.argv, 'rRfi', { recursive: 'r', force: 'f' });
  const recursive = options.has('r') || options.has('R');
  return forEachPath(context, options.rest, async (path) => {
    const stat = await context.files.lstat(at(context, path));
    if (!stat && options.has('f')) return;
    if (stat?.type === 'directory' && !recursive) throw new AppletError('is a directory');
    await context.files.remove(at(context, path), { recursive });
  }, (path) => `can't remove '${path}'`);
};

/** Copies a file or, with `recursive`, a tree. */
async function copyTree(context: AppletContext, from: string, to: string, recursive: boolean, depth = 0): Promise<void> {
  await context.breathe();
  const stat = await context.files.stat(from);
  if (!stat) throw new AppletError('No such file or directory');
  if (stat.type !== 'directory') {
    await context.files.writeFile(to, await context.files.readFile(from), { mode: stat.mode });
    return;
  }
  if (!recursive) throw new AppletError('omitting directory');
  if (depth > MAX_DEPTH) throw new AppletError('Too many levels');
  await context.files.mkdir(to, { recursive: true });
  for (const name of await context.files.readdir(from)) await copyTree(context, joinPath(from, name), joinPath(to, name), true, depth + 1);
}

async function destinationOf(context: AppletContext, target: string, source: string): Promise<string> {
  const to = at(context, target);
  return (await context.files.stat(to))?.type === 'directory' ? joinPath(to, baseName(at(context, source))) : to;
}

const cp: Applet = async (context) => {
  const options = parseOptions(context.argv, 'arRfpdPLHinlsTu');
  const [target, ...sources] = [...options.rest].reverse();
  if (target === undefined || sources.length === 0) throw new AppletError('missing file operand');
  return forEachPath(context, sources.reverse(), async (path) => copyTree(context, at(context, path), await destinationOf(context, target, path), options.has('r') || options.has('R') || options.has('a')), (path) => `can't stat '${path}'`);
};

const mv: Applet = async (context) => {
  const options = parseOptions(context.argv, 'finT');
  const [target, ...sources] = [...options.rest].reverse();
  if (target === undefined || sources.length === 0) throw new AppletError('missing file operand');
  return forEachPath(context, sources.reverse(), async (path) => {
    const from = at(context, path);
    const to = await destinationOf(context, target, path);
    try {
      await context.files.rename(from, to);
    } catch (error) {
      if (fileErrorText(error) !== 'Invalid argument') throw error;
      // Another file system: copy, then remove.
      await copyTree(context, from, to, true);
      await context.files.remove(from, { recursive: true });
    }
  }, (path) => `can't rename '${path}'`);
};

const ln: Applet = async (context) => {
  const options = parseOptions(context.argv, 'sfnT');
  const [target = '', link = baseName(target)] = options.rest;
  const to = await destinationOf(context, link, target);
  if (options.has('f') && (await context.files.lstat(to))) await context.files.remove(to);
  return forEachPath(context, [link], () => (options.has('s') ? context.files.symlink(target, to) : copyTree(context, at(context, target), to, false)));
};

const touch: Applet = async (context) => forEachPath(context, parseOptions(context.argv, 'cd:t:r:').rest, async (path) => {
  const real = at(context, path);
  if ((await context.files.stat(real))?.type === 'directory') return;
  await context.files.writeFile(real, new Uint8Array(0), { append: true });
});

const chmod: Applet = async (context) => {
  const [mode = '', ...paths] = parseOptions(context.argv.filter((arg) => !/^-[Rvcf]+$/.test(arg)), '').rest;
  return forEachPath(context, paths, async (path) => {
    const real = at(context, path);
    const stat = await context.files.stat(real);
    if (!stat) throw new AppletError('No such file or directory');
    if (stat.type === 'directory') return;
    await context.files.writeFile(real, await context.files.readFile(real), { mode: newMode(mode, stat.mode) });
  });
};

function newMode(text: string, before: number): number {
  if (/^[0-7]{1,4}$/.test(text)) return Number.parseInt(text, 8) & 0o777;
  let mode = before;
  for (const clause of text.split(',')) {
    const match = /^([ugoa]*)([-+=])([rwxX]*)$/.exec(clause);
    if (!match) throw new AppletError(`invalid mode '${text}'`);
    const who = match[1] === '' || match[1]?.includes('a') ? 'ugo' : (match[1] ?? '');
    const bits = [...(match[3] ?? '')].reduce((sum, letter) => sum | (letter === 'r' ? 4 : letter === 'w' ? 2 : 1), 0);
    const mask = [...who].reduce((sum, one) => sum | (bits << (one === 'u' ? 6 : one === 'g' ? 3 : 0)), 0);
    const all = [...who].reduce((sum, one) => sum | (7 << (one === 'u' ? 6 : one === 'g' ? 3 : 0)), 0);
    mode = match[2] === '+' ? mode | mask : match[2] === '-' ? mode & ~mask : (mode & ~all) | mask;
  }
  return mode;
}

const stat: Applet = async (context) => {
  const options = parseOptions(context.argv, 'c:Lft');
  return forEachPath(context, options.rest, async (path) => {
    const found = options.has('L') ? await context.files.stat(at(context, path)) : await context.files.lstat(at(context, path));
    if (!found) throw new AppletError('No such file or directory');
    const format = options.value('c');
    const kind = found.type === 'file' ? 'regular file' : found.type === 'symlink' ? 'symbolic link' : 'directory';
    const octal = found.mode.toString(8).padStart(4, '0');
    if (format !== undefined) {
      const values: Readonly<Record<string, string>> = { n: path, s: String(found.size), a: found.mode.toString(8), A: permissions(found), F: kind, U: 'root', G: 'root', u: '0', g: '0', Y: String(Math.floor(found.modified / 1000)), '%': '%' };
      await context.stdout.write(`${format.replace(/%(.)/g, (_, letter: string) => values[letter] ?? '?')}\n`);
      return;
    }
    const time = `${new Date(found.modified).toISOString().replace('T', ' ').slice(0, 23)}000000 +0000`;
    await context.stdout.write(`  File: ${path}\n  Size: ${found.size}\t\tBlocks: ${Math.ceil(found.size / 512)}\tIO Block: 4096   ${kind}\nAccess: (${octal}/${permissions(found)})  Uid: (    0/    root)   Gid: (    0/    root)\nModify: ${time}\n`);
  }, (path) => `can't stat '${path}'`);
};

const readlink: Applet = async (context) => {
  const options = parseOptions(context.argv, 'fnemsqv');
  for (const path of options.rest) {
    if (options.has('f')) await context.stdout.write(`${await realPath(context, at(context, path))}\n`);
    else {
      const found = await context.files.lstat(at(context, path));
      if (found?.type !== 'symlink') return 1;
      await context.stdout.write(`${found.target ?? ''}${options.has('n') ? '' : '\n'}`);
    }
  }
  return 0;
};

async function realPath(context: AppletContext, path: string): Promise<string> {
  let done = '/';
  for (const part of path.split('/').filter((one) => one !== '')) {
    let here = joinPath(done, part);
    for (let hops = 0; hops < 40; hops += 1) {
      const found = await context.files.lstat(here);
      if (found?.type !== 'symlink') break;
      here = joinPath(parentPath(here), found.target ?? '');
    }
    done = here;
  }
  return done;
}

const find: Applet = async (context) => {
  const args = context.argv.slice(1);
  const first = args.findIndex((arg) => /^[-!(]/.test(arg));
  const paths = first < 0 ? args : args.slice(0, first);
  const tests = first < 0 ? [] : args.slice(first);
  const options: { name?: RegExp; type?: string; depth: number; minimum: number; path?: RegExp; remove: boolean; exec?: string[]; zero: boolean } = { depth: MAX_DEPTH, minimum: 0, remove: false, zero: false };
  for (let i = 0; i < tests.length; i += 1) {
    const test = tests[i];
    const next = (): string => tests[++i] ?? '';
    if (test === '-name') options.name = globRegex(next());
    else if (test === '-iname') options.name = globRegex(next(), { caseless: true });
    else if (test === '-path') options.path = globRegex(next());
    else if (test === '-type') options.type = next();
    else if (test === '-maxdepth') options.depth = Number(next());
    else if (test === '-mindepth') options.minimum = Number(next());
    else if (test === '-delete') options.remove = true;
    else if (test === '-print0') options.zero = true;
    else if (test === '-exec') {
      options.exec = [];
      for (i += 1; i < tests.length && tests[i] !== ';' && tests[i] !== '+'; i += 1) options.exec.push(tests[i] ?? '');
    } else if (test !== '-print') throw new AppletError(`unrecognized: ${test}`);
  }
  let status = 0;
  const visit = async (path: string, shown: string, depth: number): Promise<void> => {
    await context.breathe();
    const found = await context.files.lstat(path);
    if (!found) {
      await context.stderr.write(`find: ${shown}: No such file or directory\n`);
      status = 1;
      return;
    }
    const kind = found.type === 'directory' ? 'd' : found.type === 'symlink' ? 'l' : 'f';
    const descend = async (): Promise<void> => {
      if (found.type !== 'directory' || depth >= options.depth) return;
      for (const name of await context.files.readdir(path)) await visit(joinPath(path, name), `${shown === '/' ? '' : shown}/${name}`, depth + 1);
    };
    if (options.remove) await descend();
    const fits = depth >= options.minimum && (options.name?.test(baseName(shown) || shown) ?? true) && (options.path?.test(shown) ?? true) && (options.type === undefined || options.type === kind);
    if (fits && options.remove) await context.files.remove(path);
    else if (fits && options.exec) await context.run(options.exec.map((word) => word.replaceAll('{}', shown)));
    else if (fits) await context.stdout.write(`${shown}${options.zero ? '\0' : '\n'}`);
    if (!options.remove) await descend();
  };
  for (const path of paths.length > 0 ? paths : ['.']) await visit(at(context, path), path, 0);
  return status;
};

const du: Applet = async (context) => {
  const options = parseOptions(context.argv, 'shakmd:c');
  const size = async (path: string, depth = 0): Promise<number> => {
    await context.breathe();
    const found = await context.files.lstat(path);
    if (found?.type !== 'directory' || depth > MAX_DEPTH) return Math.ceil((found?.size ?? 0) / 1024);
    let sum = 4;
    for (const name of await context.files.readdir(path)) sum += await size(joinPath(path, name), depth + 1);
    return sum;
  };
  return forEachPath(context, options.rest.length > 0 ? options.rest : ['.'], async (path) => {
    const kilobytes = await size(at(context, path));
    await context.stdout.write(`${options.has('h') ? humanSize(kilobytes * 1024) : kilobytes}\t${path}\n`);
  });
};

export const fileApplets: Readonly<Record<string, Applet>> = {
  cat, ls, mkdir, rmdir, rm, cp, mv, ln, touch, chmod, stat, readlink, find, du,
  chown: async () => 0,
  realpath: async (context) => forEachPath(context, parseOptions(context.argv, 'esmq').rest, async (path) => context.stdout.write(`${await realPath(context, at(context, path))}\n`)),
  basename: async (context) => {
    const [path = '', suffix = ''] = parseOptions(context.argv, '').rest;
    const name = baseName(path.replace(/\/+$/, '')) || path;
    await context.stdout.write(`${suffix !== '' && name !== suffix && name.endsWith(suffix) ? name.slice(0, -suffix.length) : name}\n`);
    return 0;
  },
  dirname: async (context) => {
    const path = (parseOptions(context.argv, '').rest[0] ?? '.').replace(/\/+$/, '');
    await context.stdout.write(`${path.includes('/') ? parentPath(path) : path === '' ? '/' : '.'}\n`);
    return 0;
  },
};
