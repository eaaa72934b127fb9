import { PassThrough, type Readable } from 'node:stream';
import { type Clock, createClock, createSeededIds } from '#server/base';
import type { FileSystem, NetworkNamespace, Program } from '../contract.ts';
import { createMemoryFileSystem } from '../files/memory-files.ts';
import { noNetwork } from '../network/network.ts';
import { busyboxPrograms } from '../programs/busybox.ts';
import { hostPrograms } from '../programs/host-programs.ts';
import { emptyInput, type RunningProcess, startProcess } from '../runtime/process.ts';

export interface RunOptions {
  programs?: Readonly<Record<string, Program>>;
  files?: FileSystem;
  network?: NetworkNamespace;
  stdin?: Readable | string;
  env?: Readonly<Record<string, string>>;
  clock?: Clock;
  init?: boolean;
}

export interface Running {
  process: RunningProcess;
  stdout: PassThrough;
  stderr: PassThrough;
}

const standard = busyboxPrograms({ directories: ['/bin'], shells: ['sh'] });

/** Starts a command in a small container. */
export function start(argv: readonly string[], options: RunOptions = {}): Running {
  const clock = options.clock ?? createClock({ scale: 0 });
  const stdout = new PassThrough();
  const stderr = new PassThrough();
  let stdin: Readable = emptyInput();
  if (typeof options.stdin === 'string') {
    const input = new PassThrough();
    input.end(options.stdin);
    stdin = input;
  } else if (options.stdin) stdin = options.stdin;
  const process = startProcess(
    {
      programs: options.programs ?? standard,
      hostPrograms: hostPrograms(),
      files:
        options.files ?? createMemoryFileSystem({ '/etc/hostname': 'box\n', '/tmp/x': 'x\n' }, { clock }),
      network: options.network ?? noNetwork,
      clock,
      ids: createSeededIds(),
      dialer: {
        dial: () => {
          throw new Error('no API server here');
        },
      },
      pod: { namespace: 'default', name: 'pod', uid: 'uid', nodeName: 'node' },
    },
    {
      argv,
      env: { PATH: '/bin', HOME: '/root', HOSTNAME: 'box', ...options.env },
      cwd: '/',
      stdin,
      stdout,
      stderr,
      ...(options.init ? { init: true } : {}),
    },
  );
  return { process, stdout, stderr };
}

/** Runs a command to its end and collects what it says. */
export async function run(
  argv: readonly string[],
  options: RunOptions = {},
): Promise<{ code: number; stdout: string; stderr: string; bytes: number }> {
  const { process, stdout, stderr } = start(argv, options);
  const out = collect(stdout);
  const err = collect(stderr);
  const code = await process.exited;
  stdout.end();
  stderr.end();
  const bytes = await out;
  return { code, stdout: bytes.toString('utf8'), stderr: (await err).toString('utf8'), bytes: bytes.length };
}

/** A script in `sh -c`. */
export function sh(script: string, options: RunOptions = {}): ReturnType<typeof run> {
  return run(['sh', '-c', script], options);
}

async function collect(stream: PassThrough): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const chunk of stream as AsyncIterable<Buffer>) parts.push(chunk);
  return Buffer.concat(parts);
}
