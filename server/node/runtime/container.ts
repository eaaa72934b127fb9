import { PassThrough, type Readable, Writable } from 'node:stream';
import type { ExitStatus, StreamIo } from '#server/apiserver';
import type { Clock } from '#server/base';
import { createLogBuffer, type LogBuffer } from './log-buffer.ts';
import {
  emptyInput,
  type ProcessSignal,
  type ProcessWorld,
  type RunningProcess,
  startProcess,
} from './process.ts';
import { ExecError } from './program-lookup.ts';
import { createPseudoTerminal, type PseudoTerminal } from './terminal.ts';

/** Output that waits for one attached client before it is dropped. */
const MAX_CLIENT_BYTES = 4 * 1024 * 1024;
const MAX_CLIENTS = 16;
/** Commands run in one container at once. */
const MAX_EXECS = 32;

export interface ContainerOptions {
  readonly world: ProcessWorld;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly stdin: boolean;
  readonly stdinOnce: boolean;
  readonly tty: boolean;
  readonly clock: Clock;
}

/** One run of one container, from start to exit. */
export interface RunningContainer {
  readonly exited: Promise<number>;
  readonly log: LogBuffer;
  signal(signal: ProcessSignal): void;
  kill(): void;
  /** Runs another command beside the main process; a command that cannot be started is an ExitStatus with `failure`. */
  exec(command: readonly string[], io: StreamIo): Promise<ExitStatus>;
  attach(io: StreamIo): Promise<ExitStatus>;
}

/** Starts the main process. Throws ExecError when there is no such command. */
export function startContainer(options: ContainerOptions): RunningContainer {
  const log = createLogBuffer(options.clock);
  const clients = new Set<StreamIo>();
  const tell = (stream: 'stdout' | 'stderr', chunk: Uint8Array): void => {
    log.write(stream, chunk);
    for (const client of clients) {
      const target = stream === 'stderr' && !client.tty ? client.stderr : client.stdout;
      if (!target || target.destroyed) continue;
      if (target.writableLength > MAX_CLIENT_BYTES) clients.delete(client);
      else target.write(chunk);
    }
  };
  const pace = createPace(options.clock);
  const sink = (stream: 'stdout' | 'stderr'): Writable =>
    new Writable({
      write(chunk: Buffer, _encoding, done) {
        tell(stream, chunk);
        pace(chunk.length, done);
      },
    });
  const terminal: PseudoTerminal | undefined = options.tty
    ? createPseudoTerminal({
        output: (bytes) => tell('stdout', bytes),
        onSignal: (signal) => process.signal(signal),
      })
    : undefined;
  const input = options.stdin && !terminal ? new PassThrough() : undefined;
  const process: RunningProcess = startProcess(options.world, {
    argv: options.argv,
    env: options.tty ? { TERM: 'xterm', ...options.env } : options.env,
    cwd: options.cwd,
    stdin: terminal?.stdin ?? input ?? emptyInput(),
    stdout: terminal?.stdout ?? sink('stdout'),
    stderr: terminal?.stdout ?? sink('stderr'),
    tty: terminal?.terminal,
    init: true,
  });
  const execs = new Set<RunningProcess>();
  let ended = false;
  const exited = process.exited.then(async (code) => {
    // What the process wrote last is in the log before anybody learns that it ended.
    await new Promise<void>((resolve) => setImmediate(resolve));
    ended = true;
    for (const exec of execs) exec.kill();
    log.close();
    return code;
  });
  return {
    exited,
    log,
    signal: (signal) => process.signal(signal),
    kill: () => process.kill(),
    exec(command, io) {
      if (ended) return Promise.resolve({ exitCode: 1, failure: 'cannot exec in a stopped state' });
      if (execs.size >= MAX_EXECS)
        return Promise.resolve({
          exitCode: 1,
          failure: `more than ${MAX_EXECS} commands run in this container`,
        });
      return runExec(options, command, io, execs);
    },
    async attach(io) {
      if (clients.size >= MAX_CLIENTS)
        return { exitCode: 1, failure: `more than ${MAX_CLIENTS} clients are attached` };
      clients.add(io);
      const detachInput = terminal ? feedTerminal(terminal, io) : feedPipe(input, io, options.stdinOnce);
      await Promise.race([exited, aborted(io.signal)]);
      clients.delete(io);
      detachInput();
      return { exitCode: 0 };
    },
  };
}

/** Bytes a container may write in one OUTPUT_WINDOW before it has to wait for the next: about 1.3 MB/s. */
const OUTPUT_BURST = 128 * 1024;
const OUTPUT_WINDOW = 100;

/** Holds back a process that floods its log: its writes are done only when their turn comes. */
function createPace(clock: Clock): (bytes: number, done: () => void) => void {
  let windowEnd = 0;
  let used = 0;
  return (bytes, done) => {
    const now = clock.now();
    if (now >= windowEnd) {
      windowEnd = now + OUTPUT_WINDOW;
      used = 0;
    }
    used += bytes;
    if (used <= OUTPUT_BURST) done();
    else clock.after(windowEnd - now, done);
  };
}

async function runExec(
  options: ContainerOptions,
  command: readonly string[],
  io: StreamIo,
  execs: Set<RunningProcess>,
): Promise<ExitStatus> {
  let process: RunningProcess | undefined;
  const terminal: PseudoTerminal | undefined = io.tty
    ? createPseudoTerminal({
        output: (bytes) => void (io.stdout.destroyed || io.stdout.write(bytes)),
        onSignal: (signal) => process?.signal(signal),
      })
    : undefined;
  const stdout = terminal?.stdout ?? through(io.stdout);
  const stderr = terminal?.stdout ?? (io.stderr ? through(io.stderr) : through(undefined));
  const stopInput = terminal ? feedTerminal(terminal, io) : undefined;
  try {
    process = startProcess(options.world, {
      argv: command,
      env: io.tty ? { TERM: 'xterm', ...options.env } : options.env,
      cwd: options.cwd,
      stdin: terminal?.stdin ?? io.stdin ?? emptyInput(),
      stdout,
      stderr,
      tty: terminal?.terminal,
    });
  } catch (error) {
    stopInput?.();
    if (!(error instanceof ExecError)) throw error;
    const execId = Buffer.from(options.world.ids.bytes(32)).toString('hex');
    return {
      exitCode: error.exitCode,
      failure: `failed to exec in container: failed to start exec "${execId}": OCI runtime exec failed: exec failed: unable to start container process: ${error.message}`,
    };
  }
  const running = process;
  execs.add(running);
  const onGone = (): void => {
    if (terminal) terminal.hangUp();
    running.kill();
  };
  io.signal.addEventListener('abort', onGone, { once: true });
  if (io.signal.aborted) onGone();
  const exitCode = await running.exited;
  io.signal.removeEventListener('abort', onGone);
  execs.delete(running);
  stopInput?.();
  await Promise.all([flushed(stdout), flushed(stderr)]);
  return { exitCode };
}

/** A stream of our own that passes on to the client's: the program may end it, the client's stays open. */
function through(target: Writable | undefined): Writable {
  return new Writable({
    highWaterMark: 64 * 1024,
    write(chunk: Buffer, _encoding, done) {
      if (!target || target.destroyed || target.writableEnded) done();
      else if (target.write(chunk)) done();
      else {
        const go = (): void => {
          target.off('drain', go);
          target.off('close', go);
          done();
        };
        target.on('drain', go);
        target.on('close', go);
      }
    },
  });
}

function flushed(stream: Writable): Promise<void> {
  if (stream.destroyed || stream.writableFinished) return Promise.resolve();
  return new Promise((resolve) => {
    stream.once('close', () => resolve());
    stream.once('finish', () => resolve());
    if (!stream.writableEnded) stream.end();
  });
}

function feedTerminal(terminal: PseudoTerminal, io: StreamIo): () => void {
  io.onResize?.((size) => terminal.resize(size));
  const source = io.stdin;
  if (!source) return () => undefined;
  const onData = (chunk: Buffer | string): void => terminal.input(Buffer.from(chunk));
  const onEnd = (): void => terminal.input(Buffer.from([4]));
  source.on('data', onData);
  source.once('end', onEnd);
  return () => {
    source.off('data', onData);
    source.off('end', onEnd);
  };
}

function feedPipe(input: PassThrough | undefined, io: StreamIo, once: boolean): () => void {
  const source: Readable | undefined = io.stdin;
  if (!input || !source || input.writableEnded) return () => undefined;
  source.pipe(input, { end: false });
  source.once('end', () => {
    if (once && !input.writableEnded) input.end();
  });
  return () => {
    source.unpipe(input);
    if (once && !input.writableEnded) input.end();
  };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
