import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { OperationalError } from '#server/base';

/** Shells and unbounded applets that may run at once in this process. */
export const MAX_WORKERS = 256;
/** One shell's memory; beyond it the shell dies alone. */
const LIMITS = { maxOldGenerationSizeMb: 96, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 };

let source: Promise<string> | undefined;
let spare: Worker | undefined;
let running = 0;

/**
 * The worker's program in one piece: built with the server, or here when that runs as TypeScript (a worker has no
 * loader, and starting one each time would cost 200 ms).
 */
async function bundle(): Promise<string> {
  const entry = fileURLToPath(new URL('./worker-main.ts', import.meta.url));
  if (!entry.endsWith('.ts')) return readFile(entry, 'utf8');
  const { build } = await import('esbuild');
  const result = await build({
    entryPoints: [entry],
    bundle: true,
    platform: 'node',
    format: 'cjs',
    target: 'node20',
    write: false,
    logLevel: 'silent',
  });
  const text = result.outputFiles[0]?.text;
  if (text === undefined) throw new OperationalError('the shell worker could not be bundled');
  return text;
}

function create(program: string): Worker {
  const worker = new Worker(program, {
    eval: true,
    env: {},
    execArgv: [],
    resourceLimits: LIMITS,
    stdout: true,
    stderr: true,
  });
  worker.unref();
  return worker;
}

/** A worker that waits for its start message. Rejects with OperationalError when too many run. Must be given back by `release`. */
export async function acquireWorker(): Promise<Worker> {
  if (running >= MAX_WORKERS) throw new OperationalError("can't fork: Resource temporarily unavailable");
  running += 1;
  try {
    source ??= bundle();
    const program = await source;
    const worker = spare ?? create(program);
    // The next shell finds one that has started already.
    spare = create(program);
    spare.once('exit', forget(spare));
    return worker;
  } catch (error) {
    running -= 1;
    source = undefined;
    throw error;
  }
}

function forget(worker: Worker): () => void {
  return () => {
    if (spare === worker) spare = undefined;
  };
}

export function releaseWorker(worker: Worker): void {
  running -= 1;
  void worker.terminate();
}
