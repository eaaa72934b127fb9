import { PassThrough, Writable } from 'node:stream';
import type { Terminal } from '../contract.ts';

export type TerminalSignal = 'SIGINT' | 'SIGQUIT' | 'SIGHUP';

/** Longest line a cooked terminal collects (Linux: 4096); what is beyond is dropped with a bell. */
const MAX_LINE = 4096;
/** Chunks typed ahead before more is dropped. */
const MAX_WAITING = 1024;
const BELL = Buffer.from([7]);

const KEY = {
  interrupt: 3,
  endOfFile: 4,
  backspace: 8,
  newline: 10,
  return: 13,
  killLine: 21,
  eraseWord: 23,
  quit: 28,
  delete: 127,
};

/** The kernel's side of a pseudo-terminal: line editing, echo and signals for cooked mode, CR LF on the way out. */
export interface PseudoTerminal {
  readonly terminal: Terminal;
  /** What the process reads. */
  readonly stdin: PassThrough;
  /** What the process writes; comes out of `output` with CR LF. */
  readonly stdout: Writable;
  /** A key press of the person, or a paste. */
  input(bytes: Uint8Array): void;
  /** The person hung up. */
  hangUp(): void;
  resize(size: { width: number; height: number }): void;
}

/**
 * `output` gets what the screen shows; `onSignal` is told of ^C and ^\. Models the n_tty line discipline
 * (ICANON ECHO ISIG ICRNL ONLCR).
 */
export function createPseudoTerminal(options: {
  output: (bytes: Uint8Array) => void;
  onSignal: (signal: TerminalSignal) => void;
}): PseudoTerminal {
  const { output, onSignal } = options;
  // Chunks stay apart: an empty one is ^D, the end for whoever reads it and for nobody else.
  const stdin = new PassThrough({ objectMode: true, highWaterMark: MAX_WAITING });
  const resizers = new Set<(size: { width: number; height: number }) => void>();
  let size = { width: 80, height: 24 };
  let raw = false;
  let line: number[] = [];

  const stdout = new Writable({
    highWaterMark: 64 * 1024,
    write(chunk: Buffer, _encoding, done) {
      output(mapNewlines(chunk));
      done();
    },
  });
  const echo = (bytes: readonly number[]): void => output(Buffer.from(bytes));
  const erase = (): boolean => {
    let last = line.pop();
    // A character of several bytes goes as a whole.
    while (last !== undefined && (last & 0xc0) === 0x80) last = line.pop();
    if (last === undefined) return false;
    echo(last < 32 ? [8, 32, 8, 8, 32, 8] : [8, 32, 8]);
    return true;
  };
  const deliver = (): void => {
    stdin.write(Buffer.from(line));
    line = [];
  };
  const cooked = (byte: number): void => {
    switch (byte) {
      case KEY.interrupt:
      case KEY.quit:
        echo([94, byte + 64, 13, 10]);
        line = [];
        onSignal(byte === KEY.interrupt ? 'SIGINT' : 'SIGQUIT');
        return;
      case KEY.endOfFile:
        if (line.length > 0) deliver();
        else stdin.write(Buffer.alloc(0));
        return;
      case KEY.return:
      case KEY.newline:
        echo([13, 10]);
        line.push(10);
        deliver();
        return;
      case KEY.delete:
      case KEY.backspace:
        erase();
        return;
      case KEY.killLine:
        while (erase());
        return;
      case KEY.eraseWord:
        while (line.at(-1) === 32) erase();
        while (line.length > 0 && line.at(-1) !== 32) erase();
        return;
      default:
        if (line.length >= MAX_LINE) {
          output(BELL);
          return;
        }
        line.push(byte);
        echo(byte < 32 && byte !== 9 ? [94, byte + 64] : [byte]);
    }
  };
  return {
    stdin,
    stdout,
    terminal: {
      get size() {
        return size;
      },
      onResize: (callback) => void resizers.add(callback),
      setRaw(on) {
        raw = on;
        if (on && line.length > 0) deliver();
      },
    },
    input(bytes) {
      if (stdin.writableEnded || stdin.readableLength >= MAX_WAITING) return;
      if (raw) stdin.write(Buffer.from(bytes));
      else for (const byte of bytes) if (!stdin.writableEnded) cooked(byte);
    },
    hangUp() {
      if (!stdin.writableEnded) stdin.end();
      onSignal('SIGHUP');
    },
    resize(next) {
      size = next;
      for (const callback of resizers) callback(next);
    },
  };
}

/** ONLCR, without doubling what already has a carriage return. */
function mapNewlines(chunk: Buffer): Buffer {
  if (!chunk.includes(10)) return chunk;
  const out: number[] = [];
  let before = 0;
  for (const byte of chunk) {
    if (byte === 10 && before !== 13) out.push(13);
    out.push(byte);
    before = byte;
  }
  return Buffer.from(out);
}
