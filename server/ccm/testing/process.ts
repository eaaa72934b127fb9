import { PassThrough } from 'node:stream';
import {
  createManualClock,
  createSeededIds,
  InternalError,
  type ManualClock,
  silentLogger,
} from '#server/base';
import { type Client, type Dialer, formatKubeconfig } from '#server/client';
import type { FakeBackend } from '#server/client/testing';
import { createMemoryFileSystem, createNetwork, type Process } from '#server/node';
import { ccmImage } from '../image.ts';
import { createOutput } from './harness.ts';

export const TENANT = 'https://tenant:6443';
export const INFRA = 'https://10.96.0.1:443';

const PEM = '-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n';

export function kubeconfig(server: string, namespace?: string): string {
  return formatKubeconfig({
    cluster: { name: 'c', server, caPem: PEM },
    user: { name: 'u', token: 'secret' },
    context: { name: 'x', ...(namespace ? { namespace } : {}) },
  });
}

export interface ProgramHarnessOptions {
  args: readonly string[];
  files?: Readonly<Record<string, string>>;
  /** By server URL. */
  backends?: Readonly<Record<string, FakeBackend>>;
  env?: Readonly<Record<string, string>>;
  clock?: ManualClock;
  podName?: string;
  /** A port somebody listens on already. */
  takenPort?: number;
}

/** The command as the process of a container that has the given files, clusters and arguments. */
export function startProgram(options: ProgramHarnessOptions) {
  const clock = options.clock ?? createManualClock();
  const network = createNetwork({ clock, log: silentLogger });
  const namespace = network.attach({ kind: 'pod', ips: ['10.244.0.5'], nodeName: 'infra-1' });
  if (options.takenPort !== undefined) namespace.listen(options.takenPort, () => undefined);
  const [stdout, stderr] = [createOutput(), createOutput()];
  const killing = new AbortController();
  const handlers: ((signal: 'SIGTERM' | 'SIGINT' | 'SIGHUP' | 'SIGQUIT') => void)[] = [];
  const agents: string[] = [];
  const dialer: Dialer = {
    dial(config, { userAgent = '' } = {}): Client {
      const backend = options.backends?.[config.server];
      if (!backend) throw new InternalError(`nobody serves ${config.server}`);
      agents.push(`${config.server} ${config.token ?? ''} ${userAgent}`);
      return backend.client({ userAgent });
    },
  };
  const image = ccmImage();
  const [path = ''] = image.entrypoint;
  const files = createMemoryFileSystem(options.files, { clock });
  const process: Process = {
    argv: [path, ...options.args],
    env: options.env ?? {},
    cwd: '/',
    stdin: new PassThrough(),
    stdout: stdout.stream,
    stderr: stderr.stream,
    tty: undefined,
    files,
    network: namespace,
    // Whole milliseconds, as of a real clock.
    clock: { ...clock, now: () => Math.floor(clock.now()) },
    ids: createSeededIds(),
    signal: killing.signal,
    onSignal: (handler) => void handlers.push(handler),
    spawn: () => undefined,
    dialer,
    pod: { namespace: 'handson-user', name: options.podName ?? 'ccm-1', uid: 'u', nodeName: 'infra-1' },
  };
  let code: number | undefined;
  const exited = image.programs[path]?.run(process).then((value) => {
    code = value;
    return value;
  });
  return {
    clock,
    stdout,
    stderr,
    files,
    agents,
    network: namespace,
    exited,
    /** The exit code, once there is one. */
    get code() {
      return code;
    },
    signal: (signal: 'SIGTERM' | 'SIGINT') => {
      for (const handler of handlers) handler(signal);
    },
    kill: () => killing.abort(),
    probe: (url: string) => network.health('10.244.0.5', 10_258)?.(url),
  };
}
