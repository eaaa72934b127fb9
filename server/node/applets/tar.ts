import { joinPath, parentPath } from '../files/path.ts';
import { type Applet, type AppletContext, AppletError } from './contract.ts';
import { openInput, openOutput } from './open.ts';

const BLOCK = 512;
const MAX_DEPTH = 64;
const MAX_ENTRIES = 20_000;

/** `tar c|x|t` with `-f -C -v -m -o -p --strip-components --no-same-*`: ustar, as `kubectl cp` uses it. */
export const tar: Applet = async (context) => {
  const options = parseTar(context.argv.slice(1));
  if (options.mode === 'c') return create(context, options);
  if (options.mode === 'x' || options.mode === 't') return extract(context, options);
  throw new AppletError('must specify one of -c, -x, -t');
};

interface TarOptions {
  mode: string;
  file: string;
  directory: string;
  verbose: boolean;
  strip: number;
  toStdout: boolean;
  paths: string[];
}

function parseTar(args: readonly string[]): TarOptions {
  const options: TarOptions = {
    mode: '',
    file: '-',
    directory: '.',
    verbose: false,
    strip: 0,
    toStdout: false,
    paths: [],
  };
  for (let i = 0; i < args.length; i += 1) {
    const arg = args[i] ?? '';
    const long = /^--([\w-]+)(?:=(.*))?$/.exec(arg);
    if (long) {
      if (long[1] === 'strip-components') options.strip = Number(long[2] ?? args[++i] ?? 0);
      else if (long[1] === 'directory') options.directory = long[2] ?? args[++i] ?? '.';
      continue;
    }
    if (!arg.startsWith('-') && i > 0) {
      options.paths.push(arg);
      continue;
    }
    for (const letter of arg.replace(/^-/, '')) {
      if ('cxt'.includes(letter)) options.mode = letter;
      else if (letter === 'f') options.file = args[++i] ?? '-';
      else if (letter === 'C') options.directory = args[++i] ?? '.';
      else if (letter === 'v') options.verbose = true;
      else if (letter === 'O') options.toStdout = true;
      else if (!'mopzk'.includes(letter)) throw new AppletError(`invalid option -- '${letter}'`);
    }
  }
  return options;
}

function header(
  name: string,
  size: number,
  mode: number,
  modified: number,
  type: string,
  link: string,
): Buffer {
  const block = Buffer.alloc(BLOCK);
  let prefix = '';
  let short = name;
  if (Buffer.byteLength(name) > 100) {
    const cut = name.lastIndexOf('/', name.length - 2 < 155 ? name.length - 2 : 155);
    if (cut > 0) {
      prefix = name.slice(0, cut);
      short = name.slice(cut + 1);
    }
  }
  block.write(short, 0, 100);
  block.write(`${(mode & 0o7777).toString(8).padStart(7, '0')}\0`, 100);
  block.write('0000000\0', 108);
  block.write('0000000\0', 116);
  block.write(`${size.toString(8).padStart(11, '0')}\0`, 124);
  block.write(
    `${Math.floor(modified / 1000)
      .toString(8)
      .padStart(11, '0')}\0`,
    136,
  );
  block.write('        ', 148);
  block.write(type, 156);
  block.write(link, 157, 100);
  block.write('ustar\x0000', 257, 'latin1');
  block.write('root', 265);
  block.write('root', 297);
  block.write(prefix, 345, 155);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return block;
}

async function startDirectory(context: AppletContext, options: TarOptions): Promise<string> {
  const path = joinPath(context.cwd, options.directory);
  const found = await context.files.stat(path);
  if (found?.type === 'directory') return path;
  const why = found ? 'Not a directory' : 'No such file or directory';
  throw new AppletError(`can't change directory to '${options.directory}': ${why}`);
}

async function create(context: AppletContext, options: TarOptions): Promise<number> {
  const output =
    options.file === '-'
      ? { write: (data: Uint8Array) => context.stdout.write(data), end: async () => undefined }
      : await openOutput(context, options.file, false);
  const base = await startDirectory(context, options);
  let status = 0;
  let count = 0;
  const add = async (path: string, name: string, depth: number): Promise<void> => {
    await context.breathe();
    count += 1;
    const stat = await context.files.lstat(path);
    if (!stat || depth > MAX_DEPTH || count > MAX_ENTRIES) {
      await context.stderr.write(`tar: ${name}: No such file or directory\n`);
      status = 1;
      return;
    }
    if (options.verbose) await context.stderr.write(`${name}\n`);
    if (stat.type === 'symlink')
      return output.write(header(name, 0, 0o777, stat.modified, '2', stat.target ?? ''));
    if (stat.type === 'directory') {
      await output.write(header(`${name.replace(/\/$/, '')}/`, 0, stat.mode, stat.modified, '5', ''));
      for (const child of await context.files.readdir(path))
        await add(joinPath(path, child), `${name.replace(/\/$/, '')}/${child}`, depth + 1);
      return;
    }
    const content = await context.files.readFile(path);
    await output.write(header(name, content.length, stat.mode, stat.modified, '0', ''));
    await output.write(content);
    await output.write(new Uint8Array((BLOCK - (content.length % BLOCK)) % BLOCK));
  };
  for (const path of options.paths) {
    const relative = path.replace(/^\/+/, '');
    if (relative !== path) await context.stderr.write("tar: removing leading '/' from member names\n");
    await add(joinPath(base, path), relative === '' ? '.' : relative, 0);
  }
  await output.write(new Uint8Array(BLOCK * 2));
  await output.end();
  if (status !== 0) await context.stderr.write('tar: error exit delayed from previous errors\n');
  return status;
}

async function extract(context: AppletContext, options: TarOptions): Promise<number> {
  const input = options.file === '-' ? context.stdin : await openInput(context, options.file);
  let buffer = Buffer.alloc(0);
  const take = async (size: number): Promise<Buffer | undefined> => {
    const parts = [buffer];
    let have = buffer.length;
    while (have < size) {
      const chunk = await input.read();
      if (!chunk) return undefined;
      parts.push(Buffer.from(chunk));
      have += chunk.length;
    }
    const all = Buffer.concat(parts);
    buffer = all.subarray(size);
    return all.subarray(0, size);
  };
  const text = (block: Buffer, from: number, length: number): string =>
    block.toString('utf8', from, from + length).replace(/\0.*$/s, '');
  const base = await startDirectory(context, options);
  let longName: string | undefined;
  for (let count = 0; count < MAX_ENTRIES; count += 1) {
    const block = await take(BLOCK);
    if (!block || block.every((byte) => byte === 0)) break;
    const size = Number.parseInt(text(block, 124, 12).trim() || '0', 8);
    const type = text(block, 156, 1);
    const prefix = text(block, 345, 155);
    const name: string = longName ?? (prefix ? `${prefix}/${text(block, 0, 100)}` : text(block, 0, 100));
    longName = undefined;
    const content = await take(Math.ceil(size / BLOCK) * BLOCK);
    if (!content) throw new AppletError('short read');
    if (type === 'L') {
      longName = text(content, 0, size);
      continue;
    }
    if (type === 'x' || type === 'g') continue;
    const parts = name.split('/').filter((part) => part !== '' && part !== '.');
    const kept = parts.slice(options.strip);
    if (kept.length === 0 || kept.includes('..')) continue;
    if (
      options.paths.length > 0 &&
      !options.paths.some((path) => name === path || name.startsWith(`${path.replace(/\/$/, '')}/`))
    )
      continue;
    if (options.mode === 't' || options.verbose) await context.stdout.write(`${name}\n`);
    if (options.mode === 't') continue;
    if (options.toStdout) {
      await context.stdout.write(content.subarray(0, size));
      continue;
    }
    const at = joinPath(base, kept.join('/'));
    if (type === '5') await context.files.mkdir(at, { recursive: true });
    else {
      await context.files.mkdir(parentPath(at), { recursive: true });
      if (type === '2') await context.files.symlink(text(block, 157, 100), at);
      else
        await context.files.writeFile(at, content.subarray(0, size), {
          mode: Number.parseInt(text(block, 100, 8).trim() || '644', 8) & 0o777,
        });
    }
  }
  return 0;
}
