import { InternalError } from './errors.ts';

/** A pending wait. `cancel` is idempotent and never throws. */
export interface Timer {
  cancel(): void;
}

/**
 * The only source of time in `server/`. `now` is wall-clock time, always; what can be scaled, paused or stepped is
 * *waiting*.
 */
export interface Clock {
  /** Wall-clock time, milliseconds since the epoch. */
  now(): number;
  /** Runs `callback` once after `milliseconds` (0 or less: on a later turn of the event loop). */
  after(milliseconds: number, callback: () => void): Timer;
  /** Resolves after `milliseconds`; rejects with the signal's reason when aborted first. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
}

/** A clock whose waiting can be frozen: nothing that waits on it wakes while paused; on resume the rest is waited. */
export interface PausableClock extends Clock {
  readonly paused: boolean;
  pause(): void;
  resume(): void;
  /** While paused: lets the earliest pending wait fire, and returns whether there was one. */
  step(): boolean;
  /** Cancels every wait; sleepers reject. */
  stop(): void;
}

/** A clock for tests: time moves only when told to. */
export interface ManualClock extends Clock {
  /** Moves time on, firing waits in order of their due time; promises settle between two waits. */
  advance(milliseconds: number): Promise<void>;
  /** How many waits are pending: a test that leaks one sees it here. */
  readonly pending: number;
}

function sleepOn(clock: Pick<Clock, 'after'>, milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason as Error);
      return;
    }
    const onAbort = (): void => {
      timer.cancel();
      reject(signal?.reason as Error);
    };
    const timer = clock.after(milliseconds, () => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    });
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

interface Wait {
  due: number;
  callback: () => void;
  handle: NodeJS.Timeout | undefined;
}

/** The longest delay Node's timers take; longer waits are re-armed. */
const LONGEST_TIMER = 2_000_000_000;

/**
 * The real clock. `scale` multiplies every wait (1 = real time, 0 = no waiting). Timers do not keep the process
 * alive.
 */
export function createClock(options: { scale?: number } = {}): PausableClock {
  const scale = options.scale ?? 1;
  const waits = new Set<Wait>();
  let frozenAt: number | undefined;

  const fire = (wait: Wait): void => {
    waits.delete(wait);
    wait.callback();
  };
  const arm = (wait: Wait): void => {
    const left = Math.max(0, wait.due - Date.now());
    wait.handle = setTimeout(
      () => (wait.due > Date.now() + 1 ? arm(wait) : fire(wait)),
      Math.min(left, LONGEST_TIMER),
    );
    wait.handle.unref();
  };
  const clock: PausableClock = {
    now: () => Date.now(),
    after(milliseconds, callback) {
      const wait: Wait = {
        due: (frozenAt ?? Date.now()) + Math.max(0, milliseconds * scale),
        callback,
        handle: undefined,
      };
      waits.add(wait);
      if (frozenAt === undefined) arm(wait);
      return {
        cancel() {
          if (wait.handle) clearTimeout(wait.handle);
          waits.delete(wait);
        },
      };
    },
    sleep: (milliseconds, signal) => sleepOn(clock, milliseconds, signal),
    get paused() {
      return frozenAt !== undefined;
    },
    pause() {
      if (frozenAt !== undefined) return;
      frozenAt = Date.now();
      for (const wait of waits) if (wait.handle) clearTimeout(wait.handle);
    },
    resume() {
      if (frozenAt === undefined) return;
      const lost = Date.now() - frozenAt;
      frozenAt = undefined;
      for (const wait of waits) {
        wait.due += lost;
        arm(wait);
      }
    },
    step() {
      if (frozenAt === undefined) throw new InternalError('a clock is stepped only while paused');
      const next = [...waits].sort((a, b) => a.due - b.due)[0];
      if (!next) return false;
      frozenAt = Math.max(frozenAt, next.due);
      fire(next);
      return true;
    },
    stop() {
      for (const wait of waits) if (wait.handle) clearTimeout(wait.handle);
      waits.clear();
    },
  };
  return clock;
}

/** A clock for tests. Starts at `start` (milliseconds since the epoch; default 2026-01-01T00:00:00Z). */
export function createManualClock(start = Date.UTC(2026, 0, 1)): ManualClock {
  let time = start;
  const waits: { due: number; callback: () => void; order: number }[] = [];
  let order = 0;
  const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  const clock: ManualClock = {
    now: () => time,
    after(milliseconds, callback) {
      const wait = { due: time + Math.max(0, milliseconds), callback, order: order++ };
      waits.push(wait);
      return {
        cancel() {
          const index = waits.indexOf(wait);
          if (index >= 0) waits.splice(index, 1);
        },
      };
    },
    sleep: (milliseconds, signal) => sleepOn(clock, milliseconds, signal),
    async advance(milliseconds) {
      const end = time + milliseconds;
      await settle();
      for (;;) {
        const next = waits.filter((w) => w.due <= end).sort((a, b) => a.due - b.due || a.order - b.order)[0];
        if (!next) break;
        waits.splice(waits.indexOf(next), 1);
        time = Math.max(time, next.due);
        next.callback();
        await settle();
      }
      time = end;
      await settle();
    },
    get pending() {
      return waits.length;
    },
  };
  return clock;
}
