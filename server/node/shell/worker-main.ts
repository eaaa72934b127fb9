import { parentPort } from 'node:worker_threads';
import type { AppletContext, AsyncFiles } from '../applets/contract.ts';
import { applets, runApplet } from '../applets/index-of-applets.ts';
import { FileError, type FileStat } from '../contract.ts';
import {
  BrokenPipeError,
  type ByteReader,
  type ByteWriter,
  createByteReader,
  nullWriter,
} from './byte-stream.ts';
import {
  type CallOperation,
  type FromWorker,
  MAX_CALLS,
  OUTPUT_MESSAGES,
  OUTPUT_WINDOW,
  type SpawnRequest,
  type StartMessage,
  type ToWorker,
} from './protocol.ts';
import { runShell } from './run-shell.ts';
import { exportedEnv, type Files, Interrupted, type ShellHost, type ShellState } from './shell-state.ts';

// The worker's side: a shell or one applet, everything outside asked for by messages.
const port = parentPort;
if (!port) throw new Interrupted('not a worker');
const send = (message: FromWorker): void => port.postMessage(message);

const BREATHS = 64;
let breaths = 0;
const breathe = async (): Promise<void> => {
  breaths += 1;
  if (breaths % BREATHS === 0) await new Promise<void>((resolve) => setImmediate(resolve));
};

const calls = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();
let nextCall = 1;
const call = (operation: CallOperation, args: readonly unknown[], signal?: AbortSignal): Promise<unknown> => {
  if (calls.size >= MAX_CALLS) return Promise.reject(new BrokenPipeError('too many calls'));
  const id = nextCall++;
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      calls.delete(id);
      send({ kind: 'cancel', id });
      reject(new Interrupted('interrupted'));
    };
    if (signal?.aborted) {
      reject(new Interrupted('interrupted'));
      return;
    }
    signal?.addEventListener('abort', onAbort, { once: true });
    calls.set(id, {
      resolve: (value) => {
        signal?.removeEventListener('abort', onAbort);
        resolve(value);
      },
      reject: (error) => {
        signal?.removeEventListener('abort', onAbort);
        reject(error);
      },
    });
    send({ kind: 'call', id, operation, args });
  });
};

const files: AsyncFiles = {
  readFile: (path) => call('fs.readFile', [path]) as Promise<Uint8Array>,
  writeFile: (path, content, options) => call('fs.writeFile', [path, content, options]) as Promise<void>,
  mkdir: (path, options) => call('fs.mkdir', [path, options]) as Promise<void>,
  readdir: (path) => call('fs.readdir', [path]) as Promise<string[]>,
  lstat: (path) => call('fs.lstat', [path]) as Promise<FileStat | undefined>,
  stat: (path) => call('fs.stat', [path]) as Promise<FileStat | undefined>,
  remove: (path, options) => call('fs.remove', [path, options]) as Promise<void>,
  rename: (from, to) => call('fs.rename', [from, to]) as Promise<void>,
  symlink: (target, path) => call('fs.symlink', [target, path]) as Promise<void>,
};

// One outstanding read at most: a reader that was interrupted leaves its bytes to the next.
let outstanding: Promise<Uint8Array | undefined> | undefined;
let deliver: ((data: Uint8Array | undefined) => void) | undefined;
const rootInput: ByteReader = createByteReader(() => {
  outstanding ??= new Promise<Uint8Array | undefined>((resolve) => {
    deliver = (data) => {
      outstanding = undefined;
      resolve(data);
    };
    send({ kind: 'read' });
  });
  return outstanding;
});

let unwritten = 0;
let unwrittenMessages = 0;
let broken = false;
const wakeWriters: (() => void)[] = [];
const rootOutput = (fd: 1 | 2): ByteWriter => ({
  async write(data) {
    const bytes = typeof data === 'string' ? Buffer.from(data) : data;
    if (bytes.length === 0) return;
    if (broken && fd === 1) throw new BrokenPipeError('Broken pipe');
    unwritten += bytes.length;
    unwrittenMessages += 1;
    send({ kind: 'write', fd, data: bytes });
    while (unwritten > OUTPUT_WINDOW || unwrittenMessages > OUTPUT_MESSAGES)
      await new Promise<void>((resolve) => wakeWriters.push(resolve));
    await breathe();
  },
});
const stdout = rootOutput(1);
const stderr = rootOutput(2);

/** Streams of programs that run outside, carried between here and there. */
const children = new Map<
  number,
  { stdin: ByteReader | undefined; stdout: ByteWriter | undefined; stderr: ByteWriter | undefined }
>();

const runProgram = async (
  argv: readonly string[],
  env: Readonly<Record<string, string>>,
  cwd: string,
  io: { stdin: ByteReader; stdout: ByteWriter; stderr: ByteWriter },
  signal: AbortSignal,
): Promise<number | undefined> => {
  const id = nextCall;
  children.set(id, { stdin: io.stdin, stdout: io.stdout, stderr: io.stderr });
  const request: SpawnRequest = {
    argv,
    env,
    cwd,
    stdin: io.stdin === rootInput ? 'inherit' : 'carry',
    stdout: io.stdout === stdout ? 'inherit' : 'carry',
    stderr: io.stderr === stderr ? 'inherit' : 'carry',
  };
  try {
    return (await call('spawn', [request], signal)) as number | undefined;
  } finally {
    children.delete(id);
  }
};

/** Reads give up when the job is interrupted. */
function interruptible(reader: ByteReader, signal: AbortSignal): ByteReader {
  const race = <T>(wanted: Promise<T>): Promise<T> =>
    new Promise<T>((resolve, reject) => {
      const onAbort = (): void => reject(new Interrupted('interrupted'));
      if (signal.aborted) onAbort();
      signal.addEventListener('abort', onAbort, { once: true });
      wanted.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
    });
  return {
    read: () => race(reader.read()),
    readLine: () => race(reader.readLine()),
    readAll: () => race(reader.readAll()),
    close: () => reader.close(),
  };
}

let size = { width: 80, height: 24 };
const appletContext = (
  argv: readonly string[],
  world: {
    env: Readonly<Record<string, string>>;
    cwd: string;
    isTerminal: boolean;
    signal: AbortSignal;
    stdin: ByteReader;
    stdout: ByteWriter;
    stderr: ByteWriter;
  },
  run: AppletContext['run'],
): AppletContext => ({
  argv,
  ...world,
  stdin: interruptible(world.stdin, world.signal),
  files,
  now: () => call('now', []) as Promise<number>,
  sleep: (milliseconds) => call('sleep', [milliseconds], world.signal) as Promise<void>,
  run,
  async breathe() {
    await breathe();
    if (world.signal.aborted) throw new Interrupted('interrupted');
  },
  get size() {
    return size;
  },
});

const signals: string[] = [];
const wakeSignalled: (() => void)[] = [];
const trapped = new Set<string>();

function createHost(start: StartMessage): ShellHost {
  const table = new Map(start.applets);
  const host: ShellHost = {
    files,
    applets: table,
    async runApplet(name, argv, shell, open, signal) {
      const applet = applets[name];
      const stdin = open.get(0)?.reader ?? createByteReader(async () => undefined);
      const streams = {
        stdin,
        stdout: open.get(1)?.writer ?? nullWriter,
        stderr: open.get(2)?.writer ?? nullWriter,
      };
      if (!applet) return (await host.runProgram(argv, shell, open, signal)) ?? 127;
      const world = {
        env: exportedEnv(shell),
        cwd: shell.cwd,
        isTerminal: start.isTerminal && streams.stdout === stdout,
        signal,
        ...streams,
      };
      return runApplet(
        applet,
        appletContext(argv, world, (words, io) => runNested(words, shell, { ...streams, ...io }, signal)),
      );
    },
    runProgram: (argv, shell, open, signal) =>
      runProgram(
        argv,
        exportedEnv(shell),
        shell.cwd,
        {
          stdin: open.get(0)?.reader ?? createByteReader(async () => undefined),
          stdout: open.get(1)?.writer ?? nullWriter,
          stderr: open.get(2)?.writer ?? nullWriter,
        },
        signal,
      ),
    sleep: (milliseconds, signal) => call('sleep', [milliseconds], signal) as Promise<void>,
    now: () => call('now', []) as Promise<number>,
    setRaw: (raw) => call('raw', [raw]) as Promise<void>,
    breathe,
    takeSignals: () => signals.splice(0),
    signalled: () =>
      signals.length > 0 ? Promise.resolve() : new Promise((resolve) => wakeSignalled.push(resolve)),
    get size() {
      return size;
    },
  };
  const runNested = async (
    words: readonly string[],
    shell: ShellState,
    io: { stdin: ByteReader; stdout: ByteWriter; stderr: ByteWriter },
    signal: AbortSignal,
  ): Promise<number> => {
    const open: Files = new Map([
      [0, { reader: io.stdin }],
      [1, { writer: io.stdout }],
      [2, { writer: io.stderr }],
    ]);
    const { runCommandLine } = await import('./run-shell.ts');
    return runCommandLine(host, words, shell, open, signal);
  };
  return host;
}

const whole = new AbortController();
/** What ^C ends; an interactive shell makes a new one for each command. */
let foreground = new AbortController();
let running: StartMessage | undefined;

const finish = (code: number): void => send({ kind: 'exit', code });

async function start(message: StartMessage): Promise<void> {
  running = message;
  size = message.size;
  const host = createHost(message);
  const open: Files = new Map([
    [0, { reader: rootInput }],
    [1, { writer: stdout }],
    [2, { writer: stderr }],
  ]);
  if (message.mode === 'applet') {
    const { createShellState } = await import('./shell-state.ts');
    const state = createShellState({
      name: 'sh',
      env: message.env,
      cwd: message.cwd,
      positional: [],
      interactive: false,
    });
    finish(await host.runApplet(message.applet, message.argv, state, open, whole.signal));
    return;
  }
  finish(
    await runShell(host, message, open, {
      whole: whole.signal,
      nextForeground: () => {
        foreground = new AbortController();
        return AbortSignal.any([foreground.signal, whole.signal]);
      },
      trapsChanged: (names) => {
        trapped.clear();
        for (const name of names) trapped.add(name);
      },
    }),
  );
}

function onSignal(name: string): void {
  const short = name.replace('SIG', '');
  if (trapped.has(short)) {
    signals.push(short);
    for (const wake of wakeSignalled.splice(0)) wake();
    return;
  }
  if (short === 'INT') {
    if (running?.mode === 'shell' && running.isTerminal) {
      foreground.abort();
      return;
    }
    if (!running?.isInit) finish(130);
    return;
  }
  if (short === 'QUIT') return;
  // Linux ignores what process 1 has no handler for; an interactive shell ignores SIGTERM.
  if (short === 'TERM' && (running?.isInit || (running?.isTerminal && running.mode === 'shell'))) return;
  finish(short === 'HUP' ? 129 : 143);
}

port.on('message', (message: ToWorker) => {
  switch (message.kind) {
    case 'start':
      void start(message).catch((error: unknown) => {
        if (error instanceof Interrupted) finish(130);
        else {
          send({
            kind: 'write',
            fd: 2,
            data: Buffer.from(
              `${message.argv[0]}: ${error instanceof Error ? error.message : String(error)}\n`,
            ),
          });
          finish(2);
        }
      });
      return;
    case 'stdin':
      deliver?.(message.data);
      return;
    case 'written':
      unwritten -= message.bytes;
      unwrittenMessages -= 1;
      broken ||= message.broken;
      for (const wake of wakeWriters.splice(0)) wake();
      return;
    case 'answer': {
      const waiting = calls.get(message.id);
      calls.delete(message.id);
      if (message.error)
        waiting?.reject(new FileError(message.error.code as FileError['code'], message.error.path));
      else waiting?.resolve(message.value);
      return;
    }
    case 'signal':
      onSignal(message.signal);
      return;
    case 'size':
      size = { width: message.width, height: message.height };
      return;
    case 'child-output': {
      const child = children.get(message.id);
      const writer = message.fd === 1 ? child?.stdout : child?.stderr;
      void (writer ?? nullWriter).write(message.data).then(
        () => send({ kind: 'child-output-taken', id: message.id, fd: message.fd, broken: false }),
        () => send({ kind: 'child-output-taken', id: message.id, fd: message.fd, broken: true }),
      );
      return;
    }
    case 'child-wants-input': {
      const child = children.get(message.id);
      void (child?.stdin?.read() ?? Promise.resolve(undefined)).then(
        (data) => send({ kind: 'child-input', id: message.id, data }),
        () => send({ kind: 'child-input', id: message.id, data: undefined }),
      );
      return;
    }
  }
});
