import type { Duplex, Readable, Writable } from 'node:stream';

/** How the API server reaches the kubelet of a node: the part of the kubelet's own API (port 10250) that it proxies. */
export interface KubeletDirectory {
  /** The kubelet serving this node now, or undefined (its machine is off). */
  kubelet(nodeName: string): KubeletApi | undefined;
}

export interface PodRef {
  namespace: string;
  name: string;
  uid: string;
}

/** All reject with StatusError worded as the kubelet words it (container not found, not running …). */
export interface KubeletApi {
  /** The log as bytes. With `follow` it ends when the container ends or `signal` aborts. */
  logs(
    pod: PodRef,
    container: string,
    options: LogOptions,
    signal: AbortSignal,
  ): Promise<AsyncIterable<Uint8Array>>;
  /** Runs a command in a running container; resolves with its end. */
  exec(pod: PodRef, container: string, command: readonly string[], io: StreamIo): Promise<ExitStatus>;
  /** Attaches to the container's main process; resolves when it ends or `signal` aborts. */
  attach(pod: PodRef, container: string, io: StreamIo): Promise<ExitStatus>;
  /** A connection to a port of the pod. */
  portForward(pod: PodRef, port: number): Promise<Duplex>;
}

export interface LogOptions {
  follow?: boolean;
  previous?: boolean;
  tailLines?: number;
  sinceSeconds?: number;
  sinceTime?: string;
  timestamps?: boolean;
  limitBytes?: number;
}

/** The streams a client holds. `stdin` is absent when the client sends none; with `tty` there is no `stderr`. */
export interface StreamIo {
  stdin?: Readable | undefined;
  stdout: Writable;
  stderr?: Writable | undefined;
  tty: boolean;
  /** Called with each terminal size the client reports (zeros are left out). */
  onResize?: (callback: (size: { width: number; height: number }) => void) => void;
  /** Aborted when the client went away. */
  signal: AbortSignal;
}

export interface ExitStatus {
  exitCode: number;
  /** Set when the process could not be started: the runtime's text. */
  failure?: string;
}
