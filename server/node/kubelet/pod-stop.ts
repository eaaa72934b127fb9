import type { Clock, Timer } from '#server/base';
import type { RunningContainer } from '../runtime/container.ts';
import type { ContainerRecord } from './container-record.ts';

/** What is left for the signal when a preStop hook used all of the grace period. */
const MINIMUM_GRACE = 2_000;

export interface StopOptions {
  readonly records: readonly ContainerRecord[];
  readonly graceMilliseconds: number;
  readonly clock: Clock;
  readonly announce: (record: ContainerRecord) => void;
  readonly preStop: (record: ContainerRecord, signal: AbortSignal) => Promise<void>;
}

/**
 * Ends every running container of a pod: the main ones together, then the sidecars from the last to the first, within one
 * grace period. Models kuberuntime killContainersWithSyncResult and termination order of sidecars.
 */
export async function stopPodContainers(options: StopOptions): Promise<void> {
  const { records, clock } = options;
  const deadline = clock.now() + options.graceMilliseconds;
  const running = records.filter((record) => record.run !== undefined);
  const sidecars = running.filter((record) => record.kind === 'sidecar').reverse();
  const others = running.filter((record) => record.kind !== 'sidecar');
  await Promise.all(others.map((record) => stopOne(record, options, deadline)));
  for (const record of sidecars) await stopOne(record, options, deadline);
}

async function stopOne(record: ContainerRecord, options: StopOptions, deadline: number): Promise<void> {
  const { clock } = options;
  const { run } = record;
  if (!run) return;
  options.announce(record);
  if (record.spec.lifecycle?.preStop && deadline > clock.now()) {
    const over = new AbortController();
    const timer = clock.after(deadline - clock.now(), () => over.abort());
    try {
      await Promise.race([options.preStop(record, over.signal), run.exited, whenAborted(over.signal)]);
    } finally {
      timer.cancel();
      over.abort();
    }
  }
  const signal = record.spec.lifecycle?.stopSignal;
  run.signal(signal === 'SIGINT' || signal === 'SIGQUIT' || signal === 'SIGHUP' ? signal : 'SIGTERM');
  const left =
    options.graceMilliseconds === 0
      ? 0
      : Math.max(record.spec.lifecycle?.preStop ? MINIMUM_GRACE : 0, deadline - clock.now());
  await endWithin(run, left, clock);
}

async function endWithin(run: RunningContainer, milliseconds: number, clock: Clock): Promise<void> {
  let timer: Timer | undefined;
  const late = new Promise<void>((resolve) => {
    timer = clock.after(milliseconds, resolve);
  });
  await Promise.race([run.exited, late]);
  timer?.cancel();
  run.kill();
  await run.exited;
}

function whenAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}
