import { PassThrough, type Readable, type Writable } from 'node:stream';
import { type Clock, errorMessage, type Ids } from '#server/base';
import type { Dialer } from '#server/client';
import type { FileSystem, NetworkNamespace, Process, Program, SpawnOptions, Terminal } from '../contract.ts';
import { ExecError, lookUpProgram } from './program-lookup.ts';

export type ProcessSignal = 'SIGTERM' | 'SIGINT' | 'SIGHUP' | 'SIGQUIT';

const SIGNAL_NUMBERS: Record<ProcessSignal | 'SIGKILL', number> = {
  SIGHUP: 1,
  SIGINT: 2,
  SIGQUIT: 3,
  SIGKILL: 9,
  SIGTERM: 15,
};
/** Processes one container's process may have started and not ended. */
const MAX_CHILDREN = 64;

/** What all processes of one container share. */
export interface ProcessWorld {
  readonly programs: Readonly<Record<string, Program>>;
  /** What is found below another root (`chroot`): the machine's own programs. */
  readonly hostPrograms: Readonly<Record<string, Program>>;
  readonly files: FileSystem;
  readonly network: NetworkNamespace;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly dialer: Dialer;
  readonly pod: Process['pod'];
}

export interface ProcessOptions {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly stdin: Readable;
  readonly stdout: Writable;
  readonly stderr: Writable;
  readonly tty?: Terminal | undefined;
  readonly init?: boolean;
}

export interface RunningProcess {
  /** The exit code, 128 + n when a signal ended it. Never rejects. */
  readonly exited: Promise<number>;
  signal(signal: ProcessSignal): void;
  /** SIGKILL: over at once, whatever the program does. */
  kill(): void;
}

/** Starts a command. Throws ExecError when there is none. */
export function startProcess(world: ProcessWorld, options: ProcessOptions): RunningProcess {
  const { program, argv } = lookUpProgram(options.argv, { ...world, env: options.env, cwd: options.cwd });
  const aborter = new AbortController();
  const handlers: ((signal: ProcessSignal) => void)[] = [];
  let finish: (code: number) => void = () => undefined;
  let ended = false;
  const exited = new Promise<number>((resolve) => {
    finish = (code) => {
      if (ended) return;
      ended = true;
      resolve(code);
      // Whatever the program left running stops with it.
      aborter.abort();
    };
  });
  const children = { count: 0 };
  const process: Process = {
    argv,
    env: options.env,
    cwd: options.cwd,
    stdin: options.stdin,
    stdout: options.stdout,
    stderr: options.stderr,
    tty: options.tty,
    files: world.files,
    network: world.network,
    clock: world.clock,
    ids: world.ids,
    signal: aborter.signal,
    onSignal: (handler) => void handlers.push(handler),
    spawn: (childArgv, spawnOptions) =>
      spawn(world, options, aborter.signal, children, childArgv, spawnOptions ?? {}),
    dialer: world.dialer,
    pod: world.pod,
    ...(options.init ? { init: true } : {}),
  };
  const run = async (): Promise<void> => {
    try {
      finish(await program.run(process));
    } catch (error) {
      if (!ended && !options.stderr.destroyed && !options.stderr.writableEnded)
        options.stderr.write(`${errorMessage(error)}\n`);
      finish(1);
    }
  };
  void run();
  return {
    exited,
    signal(signal) {
      if (ended) return;
      if (handlers.length === 0) finish(128 + SIGNAL_NUMBERS[signal]);
      else for (const handler of handlers) handler(signal);
    },
    kill: () => finish(128 + SIGNAL_NUMBERS.SIGKILL),
  };
}

function spawn(
  world: ProcessWorld,
  parent: ProcessOptions,
  parentSignal: AbortSignal,
  children: { count: number },
  argv: readonly string[],
  options: SpawnOptions,
): Promise<number> | undefined {
  if (children.count >= MAX_CHILDREN || parentSignal.aborted) return undefined;
  const files = options.files ?? world.files;
  const childWorld: ProcessWorld = {
    ...world,
    files,
    programs: options.files ? world.hostPrograms : world.programs,
  };
  let child: RunningProcess;
  try {
    child = startProcess(childWorld, {
      argv,
      env: options.env ?? parent.env,
      cwd: options.cwd ?? (options.files ? '/' : parent.cwd),
      stdin: options.stdin ?? parent.stdin,
      stdout: options.stdout ?? parent.stdout,
      stderr: options.stderr ?? parent.stderr,
      tty: parent.tty,
    });
  } catch (error) {
    if (error instanceof ExecError) return undefined;
    throw error;
  }
  children.count += 1;
  const onAbort = (): void => child.kill();
  parentSignal.addEventListener('abort', onAbort, { once: true });
  options.signal?.addEventListener('abort', onAbort, { once: true });
  if (options.signal?.aborted) child.kill();
  return child.exited.finally(() => {
    children.count -= 1;
    options.signal?.removeEventListener('abort', onAbort);
    parentSignal.removeEventListener('abort', onAbort);
  });
}

/** An input that has ended already: of a process nobody talks to. */
export function emptyInput(): Readable {
  const stream = new PassThrough();
  stream.end();
  return stream;
}
