import { Duplex } from 'node:stream';

/** Bytes a direction holds before the writer waits. */
const WINDOW = 64 * 1024;

/** One end of a simulated TCP connection: half-close, back-pressure, and a reset when the other end fails. */
class Socket extends Duplex {
  #peer: Socket | undefined;
  #unread: (() => void) | undefined;
  readonly remoteAddress: string;
  readonly remotePort: number;

  constructor(remote: { ip: string; port: number }) {
    super({ readableHighWaterMark: WINDOW, writableHighWaterMark: WINDOW, allowHalfOpen: true });
    this.remoteAddress = remote.ip;
    this.remotePort = remote.port;
  }

  connectTo(peer: Socket): void {
    this.#peer = peer;
  }

  override _read(): void {
    const resume = this.#unread;
    this.#unread = undefined;
    resume?.();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    const peer = this.#peer;
    if (!peer || peer.destroyed) {
      done(resetError());
      return;
    }
    peer.#deliver(chunk, done);
  }

  override _final(done: (error?: Error | null) => void): void {
    const peer = this.#peer;
    if (peer && !peer.destroyed) peer.push(null);
    done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    const peer = this.#peer;
    this.#peer = undefined;
    this.#unread?.();
    this.#unread = undefined;
    if (peer && !peer.destroyed) {
      // Closing sends FIN; an error is a reset. What was sent can still be read.
      if (error) peer.destroy(resetError());
      else if (!this.writableFinished) peer.push(null);
    }
    done(error);
  }

  #deliver(chunk: Buffer, done: () => void): void {
    if (this.push(chunk)) done();
    else this.#unread = done;
  }
}

function resetError(): Error {
  return Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET', errno: -104, syscall: 'read' });
}

/** Both ends of a new connection. */
export function createSocketPair(
  client: { ip: string; port: number },
  server: { ip: string; port: number },
): { client: Duplex; server: Duplex } {
  const near = new Socket(server);
  const far = new Socket(client);
  near.connectTo(far);
  far.connectTo(near);
  return { client: near, server: far };
}
