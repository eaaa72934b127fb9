import type { Clock, Ids } from '#server/base';

export interface BackoffOptions {
  clock: Clock;
  ids: Pick<Ids, 'random'>;
  /** Milliseconds of the first pause, before jitter. */
  initial: number;
  /** The longest pause, milliseconds, before jitter. */
  max: number;
}

/** Growing pauses between failures. */
export interface Backoff {
  /** Pauses: doubled with every call, plus up to as much again by chance. Rejects when `signal` aborts. */
  pause(signal: AbortSignal): Promise<void>;
  /** A failure after which nobody waits. */
  count(): void;
  /** How many failures there were since the last reset. */
  readonly failures: number;
  reset(): void;
}

/** Milliseconds without a failure after which the next one counts as the first. */
const QUIET_TIME = 120_000;

/** Models k8s.io/apimachinery/pkg/util/wait: the exponential backoff manager with jitter 1.0 that reflectors use. */
export function createBackoff(options: BackoffOptions): Backoff {
  const { clock, ids, initial, max } = options;
  let failures = 0;
  let last = clock.now();
  return {
    async pause(signal) {
      if (clock.now() - last > QUIET_TIME) failures = 0;
      const delay = Math.min(initial * 2 ** failures, max);
      failures += 1;
      await clock.sleep(delay * (1 + ids.random()), signal);
      last = clock.now();
    },
    count() {
      failures += 1;
      last = clock.now();
    },
    get failures() {
      return failures;
    },
    reset() {
      failures = 0;
    },
  };
}
