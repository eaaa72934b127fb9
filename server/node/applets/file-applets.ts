import { baseName, joinPath, parentPath } from '../files/path.ts';
import { type Applet, type AppletContext, AppletError } from './contract.ts';
import { find, humanSize, ls, permissions } from './ls-find.ts';
import { openInput } from './open.ts';
import { fileErrorText, parseOptions } from './options.ts';
import { at, forEachPath } from './paths.ts';

/** How deep `ls -R`, `rm -r`, `find` … go. */
const MAX_DEPTH = 64;

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
        for (let line = await input.readLine(); line; line = await input.readLine())
          await context.stdout.write(
            `${String(++number).padStart(6)}\t${line.line}${line.complete ? '\n' : ''}`,
          );
        return;
      }
      for (let chunk = await input.read(); chunk; chunk = await input.read())
        await context.stdout.write(chunk);
    },
    (path) => `can't open '${path}'`,
  );
};

const mkdir: Applet = async (context) => {
  const options = parseOptions(context.argv, 'pm:', { parents: 'p' });
  if (options.rest.length === 0) throw new AppletError('missing operand');
  return forEachPath(
    context,
    options.rest,
    (path) => context.files.mkdir(at(context, path), { recursive: options.has('p') }),
    (path) => `can't create directory '${path}'`,
  );
};

const rmdir: Applet = async (context) =>
  forEachPath(
    context,
    parseOptions(context.argv, 'p').rest,
    async (path) => {
      if ((await context.files.lstat(at(context, path)))?.type === 'file')
        throw new AppletError('Not a directory');
      await context.files.remove(at(context, path));
    },
    (path) => `'${path}'`,
  );

const rm: Applet = async (context) => {
  const options = parseOptions(context.argv, 'rRfi', { recursive: 'r', force: 'f' });
  const recursive = options.has('r') || options.has('R');
  return forEachPath(
    context,
    options.rest,
    async (path) => {
      const stat = await context.files.lstat(at(context, path));
      if (!stat && options.has('f')) return;
      if (stat?.type === 'directory' && !recursive) throw new AppletError('is a directory');
      await context.files.remove(at(context, path), { recursive });
    },
    (path) => `can't remove '${path}'`,
  );
};

/** Copies a file or, with `recursive`, a tree. */
async function copyTree(
  context: AppletContext,
  from: string,
  to: string,
  recursive: boolean,
  depth = 0,
): Promise<void> {
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
  for (const name of await context.files.readdir(from))
    await copyTree(context, joinPath(from, name), joinPath(to, name), true, depth + 1);
}

async function destinationOf(context: AppletContext, target: string, source: string): Promise<string> {
  const to = at(context, target);
  return (await context.files.stat(to))?.type === 'directory'
    ? joinPath(to, baseName(at(context, source)))
    : to;
}

const cp: Applet = async (context) => {
  const options = parseOptions(context.argv, 'arRfpdPLHinlsTu');
  const [target, ...sources] = [...options.rest].reverse();
  if (target === undefined || sources.length === 0) throw new AppletError('missing file operand');
  return forEachPath(
    context,
    sources.reverse(),
    async (path) =>
      copyTree(
        context,
        at(context, path),
        await destinationOf(context, target, path),
        options.has('r') || options.has('R') || options.has('a'),
      ),
    (path) => `can't stat '${path}'`,
  );
};

const mv: Applet = async (context) => {
  const options = parseOptions(context.argv, 'finT');
  const [target, ...sources] = [...options.rest].reverse();
  if (target === undefined || sources.length === 0) throw new AppletError('missing file operand');
  return forEachPath(
    context,
    sources.reverse(),
    async (path) => {
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
    },
    (path) => `can't rename '${path}'`,
  );
};

const ln: Applet = async (context) => {
  const options = parseOptions(context.argv, 'sfnT');
  const [target = '', link = baseName(target)] = options.rest;
  const to = await destinationOf(context, link, target);
  if (options.has('f') && (await context.files.lstat(to))) await context.files.remove(to);
  return forEachPath(context, [link], () =>
    options.has('s') ? context.files.symlink(target, to) : copyTree(context, at(context, target), to, false),
  );
};

const touch: Applet = async (context) =>
  forEachPath(context, parseOptions(context.argv, 'cd:t:r:').rest, async (path) => {
    const real = at(context, path);
    if ((await context.files.stat(real))?.type === 'directory') return;
    await context.files.writeFile(real, new Uint8Array(0), { append: true });
  });

const chmod: Applet = async (context) => {
  const [mode = '', ...paths] = parseOptions(
    context.argv.filter((arg) => !/^-[Rvcf]+$/.test(arg)),
    '',
  ).rest;
  return forEachPath(context, paths, async (path) => {
    const real = at(context, path);
    const stat = await context.files.stat(real);
    if (!stat) throw new AppletError('No such file or directory');
    if (stat.type === 'directory') return;
    await context.files.writeFile(real, await context.files.readFile(real), {
      mode: newMode(mode, stat.mode),
    });
  });
};

function newMode(text: string, before: number): number {
  if (/^[0-7]{1,4}$/.test(text)) return Number.parseInt(text, 8) & 0o777;
  let mode = before;
  for (const clause of text.split(',')) {
    const match = /^([ugoa]*)([-+=])([rwxX]*)$/.exec(clause);
    if (!match) throw new AppletError(`invalid mode '${text}'`);
    const who = match[1] === '' || match[1]?.includes('a') ? 'ugo' : (match[1] ?? '');
    const bits = [...(match[3] ?? '')].reduce(
      (sum, letter) => sum | (letter === 'r' ? 4 : letter === 'w' ? 2 : 1),
      0,
    );
    const mask = [...who].reduce((sum, one) => sum | (bits << (one === 'u' ? 6 : one === 'g' ? 3 : 0)), 0);
    const all = [...who].reduce((sum, one) => sum | (7 << (one === 'u' ? 6 : one === 'g' ? 3 : 0)), 0);
    mode = match[2] === '+' ? mode | mask : match[2] === '-' ? mode & ~mask : (mode & ~all) | mask;
  }
  return mode;
}

const stat: Applet = async (context) => {
  const options = parseOptions(context.argv, 'c:Lft');
  return forEachPath(
    context,
    options.rest,
    async (path) => {
      const found = options.has('L')
        ? await context.files.stat(at(context, path))
        : await context.files.lstat(at(context, path));
      if (!found) throw new AppletError('No such file or directory');
      const format = options.value('c');
      const kind =
        found.type === 'file' ? 'regular file' : found.type === 'symlink' ? 'symbolic link' : 'directory';
      const octal = found.mode.toString(8).padStart(4, '0');
      if (format !== undefined) {
        const values: Readonly<Record<string, string>> = {
          n: path,
          s: String(found.size),
          a: found.mode.toString(8),
          A: permissions(found),
          F: kind,
          U: 'root',
          G: 'root',
          u: '0',
          g: '0',
          Y: String(Math.floor(found.modified / 1000)),
          '%': '%',
        };
        await context.stdout.write(
          `${format.replace(/%(.)/g, (_, letter: string) => values[letter] ?? '?')}\n`,
        );
        return;
      }
      const time = `${new Date(found.modified).toISOString().replace('T', ' ').slice(0, 23)}000000 +0000`;
      await context.stdout.write(
        `  File: ${path}\n  Size: ${found.size}\t\tBlocks: ${Math.ceil(found.size / 512)}\tIO Block: 4096   ${kind}\nAccess: (${octal}/${permissions(found)})  Uid: (    0/    root)   Gid: (    0/    root)\nModify: ${time}\n`,
      );
    },
    (path) => `can't stat '${path}'`,
  );
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
  cat,
  ls,
  mkdir,
  rmdir,
  rm,
  cp,
  mv,
  ln,
  touch,
  chmod,
  stat,
  readlink,
  find,
  du,
  chown: async () => 0,
  realpath: async (context) =>
    forEachPath(context, parseOptions(context.argv, 'esmq').rest, async (path) =>
      context.stdout.write(`${await realPath(context, at(context, path))}\n`),
    ),
  basename: async (context) => {
    const [path = '', suffix = ''] = parseOptions(context.argv, '').rest;
    const name = baseName(path.replace(/\/+$/, '')) || path;
    await context.stdout.write(
      `${suffix !== '' && name !== suffix && name.endsWith(suffix) ? name.slice(0, -suffix.length) : name}\n`,
    );
    return 0;
  },
  dirname: async (context) => {
    const path = (parseOptions(context.argv, '').rest[0] ?? '.').replace(/\/+$/, '');
    await context.stdout.write(`${path.includes('/') ? parentPath(path) : path === '' ? '/' : '.'}\n`);
    return 0;
  },
};
