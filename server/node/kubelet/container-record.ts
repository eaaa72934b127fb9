import type { Container, ContainerState, ContainerStateTerminated } from '#server/kube';
import type { FileSystem } from '../contract.ts';
import type { RunningContainer } from '../runtime/container.ts';
import type { LogBuffer } from '../runtime/log-buffer.ts';
import type { PulledImage } from './images.ts';

export type ContainerKind = 'init' | 'sidecar' | 'main' | 'ephemeral';

/** Back-off of restarts and of pulls: 10 s, doubling to 5 minutes. Models flowcontrol.Backoff as the kubelet sets it. */
const INITIAL_BACKOFF = 10_000;
const MAX_BACKOFF = 300_000;
/** A container that ran this long starts over at 10 s. */
const BACKOFF_RESET = 2 * MAX_BACKOFF;

/** Everything the kubelet knows of one container of one pod. */
export interface ContainerRecord {
  readonly name: string;
  readonly kind: ContainerKind;
  spec: Container;
  state: ContainerState;
  lastState: ContainerStateTerminated | undefined;
  restartCount: number;
  /** It was started at least once. */
  everStarted: boolean;
  image: PulledImage | undefined;
  containerID: string | undefined;
  startedAt: string | undefined;
  ready: boolean;
  /** Its startup probe succeeded, or it has none and runs. */
  started: boolean;
  run: RunningContainer | undefined;
  /** Of the run that is, or was last. */
  files: FileSystem | undefined;
  log: LogBuffer | undefined;
  previousLog: LogBuffer | undefined;
  restart: Backoff;
  pull: Backoff & { message: string; reason: string };
}

export interface Backoff {
  /** The wait in force, milliseconds; 0: none yet. */
  delay: number;
  /** When it began. */
  since: number;
}

export function createContainerRecord(
  spec: Container,
  kind: ContainerKind,
  waitingReason: string,
): ContainerRecord {
  return {
    name: spec.name,
    kind,
    spec,
    state: { waiting: { reason: waitingReason } },
    lastState: undefined,
    restartCount: 0,
    everStarted: false,
    image: undefined,
    containerID: undefined,
    startedAt: undefined,
    ready: false,
    started: false,
    run: undefined,
    files: undefined,
    log: undefined,
    previousLog: undefined,
    restart: { delay: 0, since: 0 },
    pull: { delay: 0, since: 0, message: '', reason: '' },
  };
}

/** Milliseconds that are left of a wait counted from `since`; 0: may go on. */
export function backoffLeft(backoff: Backoff, since: number, now: number): number {
  return backoff.delay === 0 ? 0 : Math.max(0, since + backoff.delay - now);
}

/** Notes another try: the next wait is twice the last. */
export function nextBackoff(backoff: Backoff, eventTime: number, now: number): void {
  const old = backoff.delay > 0 && eventTime - backoff.since > BACKOFF_RESET;
  backoff.delay = backoff.delay === 0 || old ? INITIAL_BACKOFF : Math.min(MAX_BACKOFF, backoff.delay * 2);
  backoff.since = now;
}

/** `10s`, `2m40s`, `5m0s`: Go's time.Duration. */
export function formatDuration(milliseconds: number): string {
  const seconds = milliseconds / 1000;
  if (seconds < 1) return `${Number(milliseconds.toPrecision(6))}ms`;
  if (seconds < 60) return `${Number(seconds.toFixed(3))}s`;
  const minutes = Math.floor(seconds / 60);
  const rest = `${Number((seconds % 60).toFixed(3))}s`;
  return minutes < 60 ? `${minutes}m${rest}` : `${Math.floor(minutes / 60)}h${minutes % 60}m${rest}`;
}

/** Whether a container that ended is to be run again. Models kubecontainer.ShouldContainerBeRestarted. */
export function restartsAfter(record: ContainerRecord, podPolicy: string, exitCode: number): boolean {
  if (record.kind === 'ephemeral') return false;
  if (record.kind === 'sidecar') return true;
  const policy = record.spec.restartPolicy ?? podPolicy;
  if (record.kind === 'init') return exitCode !== 0 && policy !== 'Never';
  return policy === 'Always' || (policy === 'OnFailure' && exitCode !== 0);
}
