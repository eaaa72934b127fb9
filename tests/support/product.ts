import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const { kubectlFolder } = (await import(join(root, 'scripts/kubectl.mjs'))) as {
  kubectlFolder: () => Promise<string | undefined>;
};

export interface CommandResult {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** The product as `npm start` runs it, in a folder of its own. */
export interface Product {
  readonly dataDir: string;
  /** `http://127.0.0.1:<port>`. */
  readonly url: string;
  readonly token: string;
  readonly web: ChildProcess;
  /** Process id of the cluster process. */
  clusterPid(): number;
  get(path: string, init?: RequestInit): Promise<Response>;
  /** Writes a fresh kubeconfig from GET /api/kubeconfig and returns kubectl bound to it. */
  kubectl(cluster?: 'tenant' | 'management'): Promise<Kubectl>;
  /** SIGTERM; resolves when both processes are gone. */
  stop(): Promise<void>;
}

export interface Kubectl {
  readonly kubeconfig: string;
  /** Runs kubectl; rejects when it exits non-zero. */
  (...args: string[]): Promise<string>;
  /** Runs a bash line with `kubectl` first on PATH; never rejects. */
  bash(line: string, timeoutSeconds?: number): Promise<CommandResult>;
}

export class CommandError extends Error {
  override readonly name = 'CommandError';
}

/** Runs a program to its end. */
export function run(
  command: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  timeoutSeconds = 60,
): Promise<CommandResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: timeoutSeconds * 1000,
      cwd: root,
    });
    let [stdout, stderr] = ['', ''];
    child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, stdout, stderr }));
  });
}

/** Starts the product and waits for the line it prints when ready. Without `dataDir` a temporary one is made. */
export async function startProduct(
  options: { dataDir?: string; env?: NodeJS.ProcessEnv } = {},
): Promise<Product> {
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), 'kube-classroom-'));
  const web = spawn(process.execPath, ['scripts/start.mjs'], {
    cwd: root,
    env: {
      PATH: process.env.PATH,
      HOME: dataDir,
      DATA_DIR: dataDir,
      PORT: '0',
      API_PORT: '0',
      CLOUD_SPEED: '0',
      ...options.env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const url = await readyUrl(web);
  const token = readFileSync(join(dataDir, 'token'), 'utf8').trim();
  const gone = new Promise<void>((resolve) => web.once('exit', () => resolve()));
  const product: Product = {
    dataDir,
    url,
    token,
    web,
    clusterPid: () => childOf(web.pid ?? 0),
    get: (path, init = {}) =>
      fetch(`${url}${path}`, { ...init, headers: { authorization: `Bearer ${token}`, ...init.headers } }),
    async kubectl(cluster = 'tenant') {
      const response = await product.get(`/api/kubeconfig?cluster=${cluster}`);
      const text = await response.text();
      if (!response.ok) throw new CommandError(`GET /api/kubeconfig: ${response.status} ${text}`);
      return bindKubectl(text);
    },
    async stop() {
      web.kill('SIGTERM');
      await gone;
    },
  };
  return product;
}

function readyUrl(web: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let [stdout, stderr] = ['', ''];
    web.stdout?.on('data', (chunk: Buffer) => {
      stdout += chunk.toString();
      const found = /^(http:\/\/\S+)\/\?t=/m.exec(stdout);
      if (found?.[1]) resolve(found[1]);
    });
    web.stderr?.on('data', (chunk: Buffer) => {
      stderr = (stderr + chunk.toString()).slice(-20_000);
      if (process.env.SHOW_LOG) process.stderr.write(chunk);
    });
    web.once('exit', (code) => reject(new CommandError(`npm start ended with ${code}\n${stdout}${stderr}`)));
  });
}

/** The one child of a process (Linux). */
export function childOf(pid: number): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    .trim()
    .split(' ')
    .filter(Boolean);
  for (const child of children) {
    if (readFileSync(`/proc/${child}/cmdline`, 'utf8').match(/cluster[/-]main\.(ts|js)/))
      return Number(child);
  }
  throw new CommandError(`process ${pid} has no cluster process`);
}

/** kubectl with this kubeconfig and a home of its own. */
export async function bindKubectl(kubeconfigText: string): Promise<Kubectl> {
  const home = mkdtempSync(join(tmpdir(), 'kubectl-home-'));
  process.once('exit', () => rmSync(home, { recursive: true, force: true }));
  const kubeconfig = join(home, 'config');
  writeFileSync(kubeconfig, kubeconfigText, { mode: 0o600 });
  const folder = await kubectlFolder();
  const env = {
    PATH: [folder, process.env.PATH].filter(Boolean).join(':'),
    HOME: home,
    KUBECONFIG: kubeconfig,
  };
  const kubectl = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await run('kubectl', args, env);
    if (code !== 0)
      throw new CommandError(`kubectl ${args.join(' ')} exited with ${code}: ${stderr}${stdout}`);
    return stdout;
  };
  return Object.assign(kubectl, {
    kubeconfig,
    bash: (line: string, timeoutSeconds = 60) =>
      run('bash', ['-o', 'pipefail', '-c', line], env, timeoutSeconds),
  });
}

/** Asks again until `ask` gives something, at most `seconds` long: for what the outside can only see by asking. */
export async function eventually<T>(
  what: string,
  ask: () => Promise<T | undefined | false>,
  seconds = 30,
): Promise<T> {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    const found = await ask();
    if (found !== undefined && found !== false) return found;
    if (Date.now() > end) throw new CommandError(`not within ${seconds} s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
