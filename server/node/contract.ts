import type { Duplex, Readable, Writable } from 'node:stream';
import type { Clock, Ids } from '#server/base';
import type { Dialer } from '#server/client';

/**
 * What a container runs. Programs are ours (nginx, curl, the CCM …) and never run a student's code on this thread:
 * shells run in terminable workers.
 */
export interface Program {
  /**
   * Runs until done and resolves with the exit code. A rejection is exit code 1 with the error's text on stderr.
   * `process.signal` aborts on SIGKILL: everything must stop then, at once.
   */
  run(process: Process): Promise<number>;
}

export interface Process {
  /** argv[0] is the program as it was named. */
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly stdin: Readable;
  readonly stdout: Writable;
  readonly stderr: Writable;
  /** Present when the container has a terminal. */
  readonly tty: Terminal | undefined;
  /** The container's files: image, mounts, writable layer. */
  readonly files: FileSystem;
  /** The pod's network (the node's own with hostNetwork). */
  readonly network: NetworkNamespace;
  readonly clock: Clock;
  readonly ids: Ids;
  /** Aborted by SIGKILL. */
  readonly signal: AbortSignal;
  /** Calls back for each catchable signal. A program that registers none is ended by SIGTERM, SIGINT, SIGHUP. */
  onSignal(handler: (signal: 'SIGTERM' | 'SIGINT' | 'SIGHUP' | 'SIGQUIT') => void): void;
  /** Starts another program of this container by its path or name; undefined when there is none. */
  spawn(argv: readonly string[], options?: SpawnOptions): Promise<number> | undefined;
  /** Reaches API servers named by a kubeconfig or, with `inCluster`, this pod's own. */
  readonly dialer: Dialer;
  readonly pod: {
    readonly namespace: string;
    readonly name: string;
    readonly uid: string;
    readonly nodeName: string;
  };
  /** It is process 1 of its container: where Linux ignores signals without a handler, a program that wants this registers an empty one. */
  readonly init?: boolean;
}

export interface SpawnOptions {
  env?: Readonly<Record<string, string>>;
  cwd?: string;
  stdin?: Readable;
  stdout?: Writable;
  stderr?: Writable;
  /** Another root for the files (`chroot`). */
  files?: FileSystem;
  /** Kills the child when aborted. */
  signal?: AbortSignal;
}

export interface Terminal {
  readonly size: { width: number; height: number };
  onResize(callback: (size: { width: number; height: number }) => void): void;
  /** Cooked (default): lines, echo, ^C makes a signal. Raw: every byte comes as typed, nothing is echoed; newlines are mapped on output all the same. */
  setRaw(raw: boolean): void;
}

/** A tree of files. Paths are absolute and normalised; errors carry a POSIX `code` (ENOENT, ENOTDIR, EROFS …). */
export interface FileSystem {
  readFile(path: string): Uint8Array;
  writeFile(path: string, content: Uint8Array | string, options?: { mode?: number }): void;
  mkdir(path: string, options?: { recursive?: boolean }): void;
  readdir(path: string): string[];
  stat(path: string): FileStat;
  exists(path: string): boolean;
  remove(path: string, options?: { recursive?: boolean }): void;
  rename(from: string, to: string): void;
  symlink(target: string, path: string): void;
  /** Calls back after any change below `path`; returns how to stop. */
  watch(path: string, onChange: (path: string) => void): { stop(): void };
}

export interface FileStat {
  readonly type: 'file' | 'directory' | 'symlink';
  readonly size: number;
  readonly mode: number;
  readonly modified: number;
  readonly target?: string;
}

export class FileError extends Error {
  override readonly name = 'FileError';
  readonly code:
    | 'ENOENT'
    | 'ENOTDIR'
    | 'EISDIR'
    | 'EEXIST'
    | 'EROFS'
    | 'ENOTEMPTY'
    | 'ELOOP'
    | 'ENOSPC'
    | 'EACCES'
    | 'EINVAL';
  constructor(code: FileError['code'], path: string) {
    super(`${code}: ${path}`);
    this.code = code;
  }
}

/**
 * One network namespace of the simulated network. There is no other network: an address that belongs to no cluster of
 * this server does not exist.
 */
export interface NetworkNamespace {
  readonly ips: readonly string[];
  /** Throws NetworkError EADDRINUSE. `port` 0 takes a free one. */
  listen(port: number, onConnection: (connection: Connection) => void, options?: ListenOptions): Listener;
  /** TCP. Goes through Services and NodePorts as on a node. Rejects with NetworkError. */
  connect(ip: string, port: number, options?: { signal?: AbortSignal }): Promise<Duplex>;
  /** Resolves a host name through the pod's resolv.conf (cluster DNS); rejects with NetworkError ENOTFOUND or EAI_AGAIN. */
  resolve(host: string, options?: { signal?: AbortSignal }): Promise<string[]>;
  /** UDP, one question and one answer a message. `answer` returns undefined to stay silent. Throws EADDRINUSE. */
  listenDatagrams(port: number, answer: DatagramHandler, options?: { ip?: string }): Listener;
  /** Sends a datagram and waits for the answer: ETIMEDOUT after `timeout` (default 5000 ms), ECONNREFUSED when nobody listens. */
  exchange(
    ip: string,
    port: number,
    message: Uint8Array,
    options?: { signal?: AbortSignal; timeout?: number },
  ): Promise<Uint8Array>;
}

export type DatagramHandler = (
  message: Uint8Array,
  remote: { ip: string; port: number },
) => Promise<Uint8Array | undefined>;

export interface ListenOptions {
  /** Only this address; default all. */
  ip?: string;
  /**
   * Answers a kubelet's HTTP or HTTPS probe of this port without a connection: what the program would answer to a GET.
   * Spares sockets and TLS where thousands of pods are probed; without it probes connect.
   */
  health?: (path: string) => ProbeAnswer | Promise<ProbeAnswer>;
}

export interface ProbeAnswer {
  readonly status: number;
  readonly body: string;
}

export interface Connection {
  readonly stream: Duplex;
  readonly remote: { ip: string; port: number };
}

export interface Listener {
  readonly port: number;
  close(): void;
}

export class NetworkError extends Error {
  override readonly name = 'NetworkError';
  readonly code:
    | 'ECONNREFUSED'
    | 'EHOSTUNREACH'
    | 'ENETUNREACH'
    | 'ETIMEDOUT'
    | 'ENOTFOUND'
    | 'EAI_AGAIN'
    | 'EADDRINUSE';
  constructor(code: NetworkError['code'], message: string) {
    super(message);
    this.code = code;
  }
}

/** An image of the lab's registry. */
export interface Image {
  /** `docker.io/library/nginx`: fully qualified, without tag. */
  readonly repository: string;
  /** Tags it carries; the first is what `latest` means. A pattern allows a family of tags. */
  readonly tags: readonly (string | RegExp)[];
  readonly entrypoint: readonly string[];
  readonly command: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly workingDir?: string;
  readonly user?: number;
  /** Bytes, for the node's image list. */
  readonly size: number;
  /** Programs by absolute path. */
  readonly programs: Readonly<Record<string, Program>>;
  /** Files by absolute path. */
  readonly files?: Readonly<Record<string, string>>;
}

/** Which images a cluster's nodes can pull. A new image is one more entry. */
export interface ImageCatalogue {
  /** Finds `nginx:1.29`, `quay.io/x/y:z`, …; undefined: not in the lab's registry. */
  find(reference: string): { image: Image; reference: string; digest: string } | undefined;
  /** What it carries, for messages. */
  list(): readonly string[];
}
