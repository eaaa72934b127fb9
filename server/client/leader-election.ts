import { type Clock, errorMessage, type Ids, InternalError, type Logger } from '#server/base';
import { leases } from '#server/kube';
import type { Client } from './contract.ts';
import type { EventRecorder } from './event-recorder.ts';
import { createLeaseLock, type LeaseLock } from './lease-lock.ts';

export interface LeaderElectionOptions {
  client: Client;
  clock: Clock;
  ids: Pick<Ids, 'random'>;
  log: Logger;
  /** The Lease to hold. */
  lease: { namespace: string; name: string };
  /** This candidate among the others: `<hostname>_<uuid>`. */
  identity: string;
  /** Milliseconds: how long others wait for a lease that is not renewed. Default 15,000. */
  leaseDuration?: number;
  /** Milliseconds: how long the leader tries to renew before it gives up. Default 10,000. */
  renewDeadline?: number;
  /** Milliseconds between two attempts. Default 2,000. */
  retryPeriod?: number;
  /** Leading began. `signal` aborts when it ends, before `onStopped`. */
  onStarted(signal: AbortSignal): void | Promise<void>;
  /** Leading ended, by a lost lease or `stop`. Not called when it never began. The election is over then. */
  onStopped(): void;
  /** Somebody (also this candidate) was seen to lead who did not before. */
  onNewLeader?(identity: string): void;
  /** Told `<identity> became leader` and `<identity> stopped leading`, about the Lease. */
  recorder?: EventRecorder;
}

export interface LeaderElection {
  readonly isLeader: boolean;
  /** Resolves when the election is over: the lease was lost, or `stop`. */
  readonly finished: Promise<void>;
  /** Ends it and resolves when it has ended. `release`: give the lease up, so that the next leader need not wait. */
  stop(release?: boolean): Promise<void>;
}

const JITTER = 1.2;

interface Durations {
  leaseDuration: number;
  renewDeadline: number;
  retryPeriod: number;
}

function checkedDurations(options: LeaderElectionOptions): Durations {
  const { leaseDuration = 15_000, renewDeadline = 10_000, retryPeriod = 2000 } = options;
  if (leaseDuration <= renewDeadline)
    throw new InternalError('leaseDuration must be greater than renewDeadline');
  if (renewDeadline <= retryPeriod * JITTER) {
    throw new InternalError('renewDeadline must be greater than retryPeriod*JitterFactor');
  }
  if (retryPeriod < 1) throw new InternalError('retryPeriod must be greater than zero');
  return { leaseDuration, renewDeadline, retryPeriod };
}

/** True when `work` said so before `milliseconds` had passed; false on a no, when time is up or `signal` aborts. */
function within(
  clock: Clock,
  milliseconds: number,
  signal: AbortSignal,
  work: Promise<boolean>,
): Promise<boolean> {
  return new Promise((resolve) => {
    const finish = (result: boolean): void => {
      timer.cancel();
      signal.removeEventListener('abort', onAbort);
      resolve(result);
    };
    const onAbort = (): void => finish(false);
    const timer = clock.after(milliseconds, onAbort);
    signal.addEventListener('abort', onAbort, { once: true });
    void work.then(finish);
  });
}

/** Renews until that fails for `renewDeadline`, or `signal` aborts. */
async function keep(
  options: LeaderElectionOptions,
  times: Durations,
  signal: AbortSignal,
  attempt: () => Promise<boolean>,
) {
  const { clock } = options;
  while (!signal.aborted) {
    const deadline = clock.now() + times.renewDeadline;
    for (;;) {
      const left = deadline - clock.now();
      if (left <= 0) return;
      if (await within(clock, left, signal, attempt())) break;
      if (signal.aborted) return;
      await clock.sleep(Math.min(times.retryPeriod, Math.max(0, deadline - clock.now())), signal);
    }
    await clock.sleep(times.retryPeriod, signal);
  }
}

/** What the election tells the outside: the callbacks, the log, the events. */
function createAnnouncer(options: LeaderElectionOptions, lock: LeaseLock) {
  const { log, lease, identity } = options;
  let reported = '';
  return {
    newLeader(): void {
      if (lock.holder === reported) return;
      reported = lock.holder;
      options.onNewLeader?.(reported);
    },
    record(what: 'became leader' | 'stopped leading'): void {
      log.info({ lease, identity }, what);
      if (!lock.observed) return;
      const { metadata } = lock.observed;
      const involved = { apiVersion: `${leases.group}/${leases.version}`, kind: leases.kind, metadata };
      options.recorder?.event(involved, 'Normal', 'LeaderElection', `${identity} ${what}`);
    },
    started(signal: AbortSignal): void {
      const failed = (error: unknown): void =>
        log.error({ lease, identity, error: errorMessage(error) }, 'what the leader was to start failed');
      try {
        void Promise.resolve(options.onStarted(signal)).catch(failed);
      } catch (error) {
        failed(error);
      }
    },
  };
}

/**
 * Takes part in the election of a leader by a Lease: waits for it, leads, renews. It ends when a held lease is lost, as
 * upstream's processes do: whoever wants to stand again starts a new one. Bad durations throw InternalError.
 * Models k8s.io/client-go/tools/leaderelection.
 */
export function runLeaderElection(options: LeaderElectionOptions): LeaderElection {
  const { clock, ids } = options;
  const times = checkedDurations(options);
  const lock = createLeaseLock({ ...options, leaseDuration: times.leaseDuration });
  const announce = createAnnouncer(options, lock);
  const stopping = new AbortController();
  let leading = false;
  let underWay: Promise<boolean> | undefined;

  const attempt = async (): Promise<boolean> => {
    underWay = lock.tryAcquireOrRenew();
    const ours = await underWay;
    if (!stopping.signal.aborted) announce.newLeader();
    return ours;
  };
  const run = async (): Promise<void> => {
    while (!(await attempt())) {
      if (stopping.signal.aborted) return;
      await clock.sleep(times.retryPeriod * (1 + ids.random() * JITTER), stopping.signal);
    }
    if (stopping.signal.aborted) return;
    leading = true;
    announce.record('became leader');
    const term = new AbortController();
    announce.started(term.signal);
    try {
      await keep(options, times, stopping.signal, attempt);
    } finally {
      leading = false;
      term.abort();
      announce.record('stopped leading');
      options.onStopped();
    }
  };
  const finished = run().catch((error: unknown) => {
    if (!stopping.signal.aborted) throw error;
  });
  return {
    get isLeader() {
      return leading;
    },
    finished,
    async stop(release = false) {
      stopping.abort();
      await finished;
      if (!release) return;
      await underWay;
      await lock.release();
    },
  };
}
