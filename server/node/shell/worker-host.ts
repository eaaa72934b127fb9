import { PassThrough, type Readable, type Writable } from 'node:stream';
import type { Worker } from 'node:worker_threads';
import { errorMessage, InternalError } from '#server/base';
import { FileError, type Process } from '../contract.ts';
import { createAsyncFiles } from '../files/async-files.ts';
import { rest } from '../kubelet/retry.ts';
import type { FromWorker, SpawnRequest, StartMessage, ToWorker } from './protocol.ts';
import { acquireWorker, releaseWorker } from './worker-pool.ts';

/** Bytes a worker may print a second: what it prints is handled on the main thread. */
const OUTPUT_RATE = 8 * 1024 * 1024;
/** Messages (writes, calls) of one worker that are handled a second: a tight loop in a shell must not fill the main thread. */
const MESSAGE_RATE = 4_000;

/** Runs a shell or an applet in a worker of its own, on behalf of a process. Resolves with its status. */
export async function runInWorker(
  process: Process,
  start: Omit<StartMessage, 'kind' | 'argv' | 'env' | 'cwd' | 'isTerminal' | 'isInit' | 'size'>,
): Promise<number> {
  let worker: Worker;
  try {
    worker = await acquireWorker();
  } catch (error) {
    process.stderr.write(`${process.argv[0]}: ${errorMessage(error)}\n`);
    return 2;
  }
  const session = createSession(process, worker);
  try {
    worker.ref();
    const send = (message: ToWorker): void => worker.postMessage(message);
    send({
      kind: 'start',
      ...start,
      argv: process.argv,
      env: process.env,
      cwd: process.cwd,
      isTerminal: process.tty !== undefined,
      isInit: process.init === true,
      size: process.tty?.size ?? { width: 80, height: 24 },
    });
    process.onSignal((signal) => send({ kind: 'signal', signal }));
    process.tty?.onResize((size) => send({ kind: 'size', ...size }));
    return await session.ended;
  } finally {
    session.stop();
    releaseWorker(worker);
  }
}

function createSession(process: Process, worker: Worker): { ended: Promise<number>; stop(): void } {
  const stopping = new AbortController();
  const files = createAsyncFiles(process.files);
  const input = createPuller(process.stdin);
  const children = new Map<number, Child>();
  const calls = new Map<number, AbortController>();
  let writing = Promise.resolve();
  let window = { since: 0, bytes: 0, messages: 0 };
  const send = (message: ToWorker): void => {
    if (!stopping.signal.aborted) worker.postMessage(message);
  };
  const pace = async (bytes: number): Promise<void> => {
    const now = process.clock.now();
    if (now - window.since >= 1_000) window = { since: now, bytes: 0, messages: 0 };
    window.bytes += bytes;
    window.messages += 1;
    if (window.bytes <= OUTPUT_RATE && window.messages <= MESSAGE_RATE) return;
    await rest(process.clock, window.since + 1_000 - now, stopping.signal);
  };
  const write = (fd: 1 | 2, data: Uint8Array): void => {
    writing = writing.then(async () => {
      const ok = await writeTo(fd === 1 ? process.stdout : process.stderr, data, stopping.signal);
      await pace(data.length);
      send({ kind: 'written', bytes: data.length, broken: !ok });
    });
  };
  const perform = async (
    id: number,
    operation: string,
    args: readonly unknown[],
    signal: AbortSignal,
  ): Promise<unknown> => {
    if (operation === 'sleep') return process.clock.sleep(Number(args[0]), signal);
    if (operation === 'raw') return process.tty?.setRaw(args[0] === true);
    if (operation === 'now') return process.clock.now();
    if (operation === 'spawn') return runChild(process, id, args[0] as SpawnRequest, children, send, signal);
    const methods = files as unknown as Readonly<Record<string, FileOperation | undefined>>;
    const method = methods[operation.slice(3)];
    if (!method) throw new InternalError(`the worker asked for ${operation}`);
    return method(...args);
  };
  const answer = async (message: Extract<FromWorker, { kind: 'call' }>): Promise<void> => {
    const own = new AbortController();
    calls.set(message.id, own);
    try {
      await pace(0);
      const value = await perform(
        message.id,
        message.operation,
        message.args,
        AbortSignal.any([own.signal, stopping.signal]),
      );
      send({ kind: 'answer', id: message.id, value });
    } catch (error) {
      if (own.signal.aborted || stopping.signal.aborted) return;
      if (!(error instanceof FileError)) throw error;
      send({ kind: 'answer', id: message.id, error: { code: error.code, path: error.message } });
    } finally {
      calls.delete(message.id);
    }
  };
  const ended = new Promise<number>((resolve, reject) => {
    process.signal.addEventListener('abort', () => resolve(137), { once: true });
    worker.on('error', (error) => {
      process.stderr.write(
        `${process.argv[0]}: ${(error as NodeJS.ErrnoException).code === 'ERR_WORKER_OUT_OF_MEMORY' ? 'out of memory' : error.message}\n`,
      );
      resolve(137);
    });
    worker.on('message', (message: FromWorker) => {
      switch (message.kind) {
        case 'read':
          void input().then((data) => send({ kind: 'stdin', data }));
          return;
        case 'write':
          write(message.fd, message.data);
          return;
        case 'call':
          answer(message).catch(reject);
          return;
        case 'cancel':
          calls.get(message.id)?.abort();
          return;
        case 'child-input':
          children.get(message.id)?.give(message.data);
          return;
        case 'child-output-taken':
          children.get(message.id)?.taken(message.fd, message.broken);
          return;
        case 'exit':
          void writing.then(() => resolve(message.code));
          return;
      }
    });
  });
  return {
    ended,
    stop() {
      stopping.abort();
      worker.removeAllListeners('message');
    },
  };
}

/** One of AsyncFiles' methods, its arguments as the worker sent them: our own code on both sides. */
type FileOperation = (...args: readonly unknown[]) => Promise<unknown>;

interface Child {
  give(data: Uint8Array | undefined): void;
  taken(fd: 1 | 2, broken: boolean): void;
}

/** A program beside the shell, its streams carried where they are not the shell's own. */
async function runChild(
  process: Process,
  id: number,
  request: SpawnRequest,
  children: Map<number, Child>,
  send: (message: ToWorker) => void,
  signal: AbortSignal,
): Promise<number | undefined> {
  const stdin = request.stdin === 'carry' ? new PassThrough({ highWaterMark: 16 * 1024 }) : undefined;
  const waiting = new Map<1 | 2, (broken: boolean) => void>();
  const carry = (fd: 1 | 2): PassThrough => {
    const stream = new PassThrough({ highWaterMark: 16 * 1024 });
    void (async () => {
      for await (const chunk of stream as AsyncIterable<Buffer>) {
        const broken = await new Promise<boolean>((resolve) => {
          waiting.set(fd, resolve);
          send({ kind: 'child-output', id, fd, data: chunk });
        });
        if (broken) return;
      }
    })().catch(() => undefined);
    return stream;
  };
  const stdout = request.stdout === 'carry' ? carry(1) : undefined;
  const stderr = request.stderr === 'carry' ? carry(2) : undefined;
  children.set(id, {
    give(data) {
      if (!stdin || stdin.writableEnded) return;
      if (data === undefined) stdin.end();
      else if (stdin.write(data)) send({ kind: 'child-wants-input', id });
      else stdin.once('drain', () => send({ kind: 'child-wants-input', id }));
    },
    taken(fd, broken) {
      waiting.get(fd)?.(broken);
      waiting.delete(fd);
    },
  });
  const running = process.spawn(request.argv, {
    env: request.env,
    cwd: request.cwd,
    signal,
    ...(stdin ? { stdin } : {}),
    ...(stdout ? { stdout } : {}),
    ...(stderr ? { stderr } : {}),
  });
  try {
    if (!running) return undefined;
    if (stdin) send({ kind: 'child-wants-input', id });
    const code = await running;
    for (const stream of [stdout, stderr]) if (stream) await drained(stream);
    return code;
  } finally {
    children.delete(id);
  }
}

function drained(stream: PassThrough): Promise<void> {
  return new Promise((resolve) => {
    stream.once('close', () => resolve());
    stream.once('end', () => resolve());
    if (stream.destroyed || stream.readableEnded) resolve();
    stream.end();
  });
}

/** Reads a stream one chunk at a time; undefined at its end, or once for an empty chunk: ^D on a terminal. */
export function createPuller(stream: Readable): () => Promise<Uint8Array | undefined> {
  return () =>
    new Promise((resolve) => {
      const attempt = (): void => {
        const chunk = stream.read() as Buffer | string | null;
        if (chunk !== null) done(chunk.length === 0 ? undefined : Buffer.from(chunk));
        else if (stream.readableEnded || stream.destroyed) done(undefined);
      };
      const onEnd = (): void => done(undefined);
      const done = (data: Uint8Array | undefined): void => {
        stream.off('readable', attempt);
        stream.off('end', onEnd);
        stream.off('close', onEnd);
        stream.off('error', onEnd);
        resolve(data);
      };
      stream.on('readable', attempt);
      stream.on('end', onEnd);
      stream.on('close', onEnd);
      stream.on('error', onEnd);
      attempt();
    });
}

/** Writes and waits while the other side is behind. False: nobody reads any more. */
export function writeTo(stream: Writable, data: Uint8Array | string, signal: AbortSignal): Promise<boolean> {
  if (stream.destroyed || stream.writableEnded) return Promise.resolve(false);
  return new Promise((resolve) => {
    const done = (ok: boolean): void => {
      stream.off('close', onClose);
      signal.removeEventListener('abort', onClose);
      resolve(ok);
    };
    const onClose = (): void => done(false);
    stream.once('close', onClose);
    signal.addEventListener('abort', onClose, { once: true });
    stream.write(data, (error) => done(!error));
  });
}
