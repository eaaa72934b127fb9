import { Readable, Writable } from 'node:stream';
import { WebSocket } from 'ws';
import type { StreamIo } from '../kubelet-api.ts';

export const STDIN = 0;
export const STDOUT = 1;
export const STDERR = 2;
export const STATUS = 3;
export const RESIZE = 4;
/** v5: the next byte names a channel that the sender closed. */
const CLOSE = 255;

/** Bytes of output that wait before the program is held. */
const OUTPUT_BUFFER = 256 * 1024;
/** Bytes of input that wait before the client is held. */
const INPUT_BUFFER = 256 * 1024;
const MAX_RESIZE_BYTES = 256;

/** A subprotocol of remote command over WebSocket. */
export interface ChannelProtocol {
  readonly name: string;
  /** Frames are text: a digit, then base64. */
  readonly base64: boolean;
  /** The end is told as a Status on the status channel; before v4 as text. */
  readonly status: boolean;
  /** Channels can be closed one by one. */
  readonly close: boolean;
}

/** Newest first. Models apiserver/pkg/util/wsstream and kubelet's remotecommand/websocket.go. */
export const PROTOCOLS: readonly ChannelProtocol[] = [
  { name: 'v5.channel.k8s.io', base64: false, status: true, close: true },
  { name: 'v4.channel.k8s.io', base64: false, status: true, close: false },
  { name: 'v4.base64.channel.k8s.io', base64: true, status: true, close: false },
  { name: 'channel.k8s.io', base64: false, status: false, close: false },
  { name: 'base64.channel.k8s.io', base64: true, status: false, close: false },
];

/** Without a subprotocol the first one is spoken. */
export const UNNAMED: ChannelProtocol = { name: '', base64: false, status: false, close: false };

export interface Wanted {
  stdin: boolean;
  stdout: boolean;
  stderr: boolean;
  tty: boolean;
}

/** The streams of one command, which exist before the socket does: what is written waits until `attach`. */
export interface Channels {
  readonly io: StreamIo;
  attach(socket: WebSocket, protocol: ChannelProtocol): void;
  /** Resolves when all output has been handed to the socket (or cannot be any more). */
  drained(): Promise<void>;
  /** Sends the last word and closes. `status` for v4 and later, `text` before. */
  finish(status: object, text: string): Promise<void>;
  /** Ends everything at once. */
  abort(): void;
}

interface Line {
  socket: WebSocket;
  protocol: ChannelProtocol;
}

export function createChannels(wanted: Wanted): Channels {
  const aborted = new AbortController();
  const resizeListeners: ((size: { width: number; height: number }) => void)[] = [];
  const sizes: { width: number; height: number }[] = [];
  let line: Line | undefined;
  let onLine: (() => void)[] = [];

  const whenAttached = (callback: () => void): void => {
    if (line || aborted.signal.aborted) callback();
    else onLine.push(callback);
  };
  const send = (channel: number, data: Uint8Array, done: (error?: Error | null) => void): void => {
    whenAttached(() => {
      if (!line || line.socket.readyState !== WebSocket.OPEN) {
        done(new ClientGoneError('the client is gone'));
        return;
      }
      line.socket.send(frameOf(line.protocol, channel, data), (error) => done(error ?? null));
    });
  };
  const output = (channel: number): Writable => {
    const writable = new Writable({
      highWaterMark: OUTPUT_BUFFER,
      write: (chunk: Uint8Array, _encoding, done) => send(channel, chunk, done),
    });
    // A client that left is told by the signal; its streams have nobody else to tell.
    writable.on('error', () => undefined);
    return writable;
  };
  const stdin = wanted.stdin
    ? new Readable({ highWaterMark: INPUT_BUFFER, read: () => line?.socket.isPaused && line.socket.resume() })
    : undefined;
  stdin?.on('error', () => undefined);
  const stdout = wanted.stdout ? output(STDOUT) : discard();
  const stderr = wanted.stderr && !wanted.tty ? output(STDERR) : undefined;
  const abort = (): void => {
    if (aborted.signal.aborted) return;
    aborted.abort();
    stdin?.destroy();
    const waiting = onLine;
    onLine = [];
    for (const callback of waiting) callback();
  };
  const receive = (channel: number, data: Buffer): void => {
    if (channel === STDIN) {
      if (!stdin || stdin.readableEnded || stdin.destroyed || data.length === 0) return;
      if (!stdin.push(data)) line?.socket.pause();
    } else if (channel === RESIZE) {
      const size = parseSize(data);
      if (!size) return;
      if (resizeListeners.length === 0) sizes.splice(0, sizes.length, size);
      for (const listener of resizeListeners) listener(size);
    } else if (channel === CLOSE && line?.protocol.close && data[0] === STDIN) endInput(stdin);
  };
  const io: StreamIo = {
    ...(stdin ? { stdin } : {}),
    stdout,
    ...(stderr ? { stderr } : {}),
    tty: wanted.tty,
    onResize(callback) {
      resizeListeners.push(callback);
      for (const size of sizes.splice(0)) callback(size);
    },
    signal: aborted.signal,
  };
  const drained = async (): Promise<void> => {
    await Promise.all(stderr ? [flushed(stdout), flushed(stderr)] : [flushed(stdout)]);
  };
  return {
    io,
    drained,
    attach(socket, protocol) {
      line = { socket, protocol };
      socket.on('message', (data: Buffer, isBinary: boolean) => {
        const frame = parseFrame(protocol, data, isBinary);
        if (frame) receive(frame.channel, frame.data);
      });
      socket.on('close', abort);
      socket.on('error', abort);
      const waiting = onLine;
      onLine = [];
      for (const callback of waiting) callback();
    },
    async finish(status, text) {
      await drained();
      if (!line || line.socket.readyState !== WebSocket.OPEN) return;
      const { socket, protocol } = line;
      const last = protocol.status ? JSON.stringify(status) : text;
      if (last)
        await new Promise<void>((resolve) =>
          socket.send(frameOf(protocol, STATUS, Buffer.from(last)), () => resolve()),
        );
      // A client that is held for its input could not say goodbye.
      if (socket.isPaused) socket.resume();
      socket.close(1000);
    },
    abort() {
      abort();
      line?.socket.terminate();
    },
  };
}

/** Writing to somebody who left. */
class ClientGoneError extends Error {
  override readonly name = 'ClientGoneError';
}

function discard(): Writable {
  return new Writable({ write: (_chunk, _encoding, done) => done() });
}

function endInput(stdin: Readable | undefined): void {
  if (stdin && !stdin.destroyed && !stdin.readableEnded) stdin.push(null);
}

function flushed(writable: Writable): Promise<void> {
  if (writable.writableFinished || writable.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    writable.once('finish', resolve);
    writable.once('close', resolve);
    if (!writable.writableEnded) writable.end();
  });
}

function frameOf(protocol: ChannelProtocol, channel: number, data: Uint8Array): Buffer | string {
  if (protocol.base64) return `${channel}${Buffer.from(data).toString('base64')}`;
  const frame = Buffer.allocUnsafe(data.length + 1);
  frame[0] = channel;
  frame.set(data, 1);
  return frame;
}

function parseFrame(
  protocol: ChannelProtocol,
  data: Buffer,
  isBinary: boolean,
): { channel: number; data: Buffer } | undefined {
  const first = data[0];
  if (first === undefined) return undefined;
  if (protocol.base64 && !isBinary)
    return { channel: first - 48, data: Buffer.from(data.subarray(1).toString('latin1'), 'base64') };
  return { channel: first, data: data.subarray(1) };
}

/** `{"Width":80,"Height":24}`; zeros say nothing. */
function parseSize(data: Buffer): { width: number; height: number } | undefined {
  if (data.length > MAX_RESIZE_BYTES) return undefined;
  let value: { Width?: unknown; Height?: unknown } | null;
  try {
    value = JSON.parse(data.toString('utf8')) as typeof value;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
  const [width, height] = [Number(value?.Width), Number(value?.Height)];
  return width > 0 && height > 0 ? { width, height } : undefined;
}
