import type { FileStat } from '../contract.ts';
import type { ByteReader, ByteWriter } from '../shell/byte-stream.ts';

/** Files, asked for over a distance: the same in the main thread and in a worker. Rejects with FileError. */
export interface AsyncFiles {
  readFile(path: string): Promise<Uint8Array>;
  writeFile(path: string, content: Uint8Array, options?: { mode?: number; append?: boolean }): Promise<void>;
  mkdir(path: string, options?: { recursive?: boolean }): Promise<void>;
  readdir(path: string): Promise<string[]>;
  /** Of the name itself: a link is a link. */
  lstat(path: string): Promise<FileStat | undefined>;
  /** Links followed. */
  stat(path: string): Promise<FileStat | undefined>;
  remove(path: string, options?: { recursive?: boolean }): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  symlink(target: string, path: string): Promise<void>;
}

/** What a small program runs with. */
export interface AppletContext {
  /** argv[0] is the applet's name. */
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly stdin: ByteReader;
  readonly stdout: ByteWriter;
  readonly stderr: ByteWriter;
  readonly files: AsyncFiles;
  readonly signal: AbortSignal;
  readonly isTerminal: boolean;
  now(): Promise<number>;
  /** Rejects when `signal` aborts. */
  sleep(milliseconds: number): Promise<void>;
  /** Runs another command with these streams; 127 when there is none. */
  run(
    argv: readonly string[],
    io?: { stdin?: ByteReader; stdout?: ByteWriter; stderr?: ByteWriter },
  ): Promise<number>;
  /** Lets others go on: to be called in loops that do much. */
  breathe(): Promise<void>;
  readonly size: { width: number; height: number };
}

export type Applet = (context: AppletContext) => Promise<number>;

/** Ends an applet with a message `name: text` on standard error. */
export class AppletError extends Error {
  override readonly name = 'AppletError';
  readonly exitCode: number;
  constructor(message: string, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}
