// Compiles the server for `npm start`: the sources stay TypeScript for tests and tools, but a running product should pay
// neither for a loader nor for the wrappers it puts around every function. A build lives in .cache/build/<hash of what
// it was made of> and is made once.
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
} from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const builds = join(root, '.cache/build');
/** Older builds kept: a server that still runs may yet load a part of its own. */
const KEPT = 5;
/** How server code names another program of ours: a process to fork, a worker to start. */
const PROGRAM = /new URL\('(\.\/[\w-]+\.ts)', import\.meta\.url\)/g;
/** Programs run from their text, in a worker: each is one file with nothing to load. */
const WORKER = /worker-main\.ts$/;

/** Builds what is not built yet. Returns the folder; `entry` names the file of a source in it. */
export async function buildServer() {
  const sources = sourceFiles(join(root, 'server'));
  const folder = join(builds, fingerprint(sources));
  if (existsSync(folder)) {
    // Marks it as used, for `prune`.
    utimesSync(folder, new Date(), new Date());
    return folder;
  }
  mkdirSync(builds, { recursive: true });
  const unfinished = mkdtempSync(join(builds, 'unfinished-'));
  try {
    await compile(sources, unfinished);
    renameSync(unfinished, folder);
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    // Two starts at once: the other one was first.
    if (!existsSync(folder)) throw error;
  }
  prune();
  return folder;
}

/** The built file of `server/<source>`: `cluster/main.ts` is `cluster-main.js`. All lie in one folder. */
export function entry(folder, source) {
  return join(folder, `${entryName(join(root, 'server', source))}.js`);
}

function entryName(source) {
  return relative(join(root, 'server'), source).replaceAll('/', '-').replace(/\.ts$/, '');
}

async function compile(sources, outdir) {
  const { build, stop } = await import('esbuild');
  const programs = sources.flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(PROGRAM)].map((found) => resolve(dirname(file), found[1])),
  );
  const modules = [join(root, 'server/main.ts'), ...programs.filter((file) => !WORKER.test(file))];
  const workers = programs.filter((file) => WORKER.test(file));
  const common = {
    outdir,
    bundle: true,
    platform: 'node',
    target: 'node20',
    absWorkingDir: root,
    sourcemap: 'linked',
    sourcesContent: false,
    logLevel: 'error',
    plugins: [programUrls],
  };
  const named = (files) => Object.fromEntries(files.map((file) => [entryName(file), file]));
  try {
    await build({
      ...common,
      entryPoints: named(modules),
      format: 'esm',
      splitting: true,
      packages: 'external',
    });
    await build({ ...common, entryPoints: named(workers), format: 'cjs', sourcemap: false });
  } finally {
    // Its service would stay a child of the product.
    await stop();
  }
}

/** In a build every program lies beside the code that names it. */
const programUrls = {
  name: 'program-urls',
  setup(build) {
    build.onLoad({ filter: /\/server\/.*\.ts$/ }, ({ path }) => {
      const text = readFileSync(path, 'utf8');
      if (!text.includes('import.meta.url')) return undefined;
      const contents = text.replace(
        PROGRAM,
        (_, file) => `new URL('./${entryName(resolve(dirname(path), file))}.js', import.meta.url)`,
      );
      return { contents, loader: 'ts' };
    });
  },
};

function sourceFiles(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((file) => file.isFile() && /\.(ts|json)$/.test(file.name) && !/\.test\.ts$/.test(file.name))
    .map((file) => join(file.parentPath ?? file.path, file.name))
    .sort();
}

function fingerprint(sources) {
  const hash = createHash('sha256').update(process.version);
  for (const file of [...sources, join(root, 'package-lock.json'), fileURLToPath(import.meta.url)]) {
    hash.update(relative(root, file)).update('\0').update(readFileSync(file)).update('\0');
  }
  return hash.digest('hex').slice(0, 16);
}

function prune() {
  const all = readdirSync(builds).map((name) => ({
    path: join(builds, name),
    time: statSync(join(builds, name)).mtimeMs,
  }));
  all.sort((one, other) => other.time - one.time);
  for (const { path } of all.slice(KEPT)) rmSync(path, { recursive: true, force: true });
}

if (process.argv[1] && basename(process.argv[1]) === basename(fileURLToPath(import.meta.url)))
  console.log(await buildServer());
