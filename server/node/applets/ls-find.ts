import type { FileStat } from '../contract.ts';
import { baseName, joinPath } from '../files/path.ts';
import { type Applet, AppletError } from './contract.ts';
import { parseOptions } from './options.ts';
import { at, forEachPath } from './paths.ts';
import { globRegex } from './posix-regex.ts';

const MAX_DEPTH = 64;
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const SIX_MONTHS = 15_552_000_000;

export function permissions(stat: FileStat): string {
  const bits = [0o400, 0o200, 0o100, 0o40, 0o20, 0o10, 0o4, 0o2, 0o1]
    .map((bit, index) => (stat.mode & bit ? 'rwx'[index % 3] : '-'))
    .join('');
  return `${stat.type === 'directory' ? 'd' : stat.type === 'symlink' ? 'l' : '-'}${bits}`;
}

function listDate(modified: number, now: number): string {
  const date = new Date(modified);
  const recent = Math.abs(now - modified) < SIX_MONTHS;
  const tail = recent ? date.toISOString().slice(11, 16) : ` ${date.getUTCFullYear()}`;
  return `${MONTHS[date.getUTCMonth()]} ${String(date.getUTCDate()).padStart(2)} ${tail}`;
}

export function humanSize(bytes: number): string {
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

export const ls: Applet = async (context) => {
  const options = parseOptions(context.argv, '1AaCxdFhikLlnprRSstTuvXwcH', { color: 'C', all: 'a' }, {});
  const now = await context.now();
  const show = async (entries: { name: string; path: string }[]): Promise<void> => {
    const rows: { name: string; stat: FileStat }[] = [];
    for (const entry of entries) {
      const stat = options.has('L')
        ? await context.files.stat(entry.path)
        : await context.files.lstat(entry.path);
      if (stat) rows.push({ name: entry.name, stat });
    }
    if (options.has('t')) rows.sort((a, b) => b.stat.modified - a.stat.modified);
    if (options.has('S')) rows.sort((a, b) => b.stat.size - a.stat.size);
    if (options.has('r')) rows.reverse();
    const label = ({ name, stat }: { name: string; stat: FileStat }): string =>
      name +
      (options.has('F') || options.has('p')
        ? stat.type === 'directory'
          ? '/'
          : options.has('F') && stat.type === 'symlink'
            ? '@'
            : options.has('F') && stat.mode & 0o111
              ? '*'
              : ''
        : '');
    if (!options.has('l')) {
      if (context.isTerminal && !options.has('1') && rows.length > 0)
        await context.stdout.write(columns(rows.map(label), context.size.width));
      else for (const row of rows) await context.stdout.write(`${label(row)}\n`);
      return;
    }
    const sizes = rows.map((row) => (options.has('h') ? humanSize(row.stat.size) : String(row.stat.size)));
    const width = Math.max(9, ...sizes.map((size) => size.length));
    for (const [index, row] of rows.entries()) {
      const target = row.stat.type === 'symlink' ? ` -> ${row.stat.target}` : '';
      const owner = options.has('n') ? '0        0       ' : 'root     root    ';
      await context.stdout.write(
        `${permissions(row.stat)}    1 ${owner} ${(sizes[index] ?? '').padStart(width)} ${listDate(row.stat.modified, now)} ${label(row)}${target}\n`,
      );
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
      if (
        entry.name === '.' ||
        entry.name === '..' ||
        (await context.files.lstat(entry.path))?.type !== 'directory'
      )
        continue;
      await context.stdout.write('\n');
      await listDirectory(entry.path, `${name === '/' ? '' : name}/${entry.name}`, true, depth + 1);
    }
  };
  const paths = options.rest.length > 0 ? options.rest : ['.'];
  const plain: { name: string; path: string }[] = [];
  const directories: string[] = [];
  const status = await forEachPath(context, paths, async (path) => {
    const real = at(context, path);
    const stat =
      (options.has('l') && !path.endsWith('/') ? await context.files.lstat(real) : undefined) ??
      (await context.files.stat(real)) ??
      (await context.files.lstat(real));
    if (!stat) throw new AppletError('No such file or directory');
    if (stat.type === 'directory' && !options.has('d')) directories.push(path);
    else plain.push({ name: path, path: real });
  });
  if (plain.length > 0) await show(plain);
  for (const [index, path] of directories.entries()) {
    if (index > 0 || plain.length > 0) await context.stdout.write('\n');
    await listDirectory(
      at(context, path),
      path,
      directories.length + plain.length > 1 || options.has('R'),
      0,
    );
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

export const find: Applet = async (context) => {
  const args = context.argv.slice(1);
  const first = args.findIndex((arg) => /^[-!(]/.test(arg));
  const paths = first < 0 ? args : args.slice(0, first);
  const tests = first < 0 ? [] : args.slice(first);
  const options: {
    name?: RegExp;
    type?: string;
    depth: number;
    minimum: number;
    path?: RegExp;
    remove: boolean;
    exec?: string[];
    zero: boolean;
  } = { depth: MAX_DEPTH, minimum: 0, remove: false, zero: false };
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
      for (i += 1; i < tests.length && tests[i] !== ';' && tests[i] !== '+'; i += 1)
        options.exec.push(tests[i] ?? '');
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
      for (const name of await context.files.readdir(path))
        await visit(joinPath(path, name), `${shown === '/' ? '' : shown}/${name}`, depth + 1);
    };
    if (options.remove) await descend();
    const fits =
      depth >= options.minimum &&
      (options.name?.test(baseName(shown) || shown) ?? true) &&
      (options.path?.test(shown) ?? true) &&
      (options.type === undefined || options.type === kind);
    if (fits && options.remove) await context.files.remove(path);
    else if (fits && options.exec)
      await context.run(options.exec.map((word) => word.replaceAll('{}', shown)));
    else if (fits) await context.stdout.write(`${shown}${options.zero ? '\0' : '\n'}`);
    if (!options.remove) await descend();
  };
  for (const path of paths.length > 0 ? paths : ['.']) await visit(at(context, path), path, 0);
  return status;
};
