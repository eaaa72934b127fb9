import type { Clock, Ids } from '#server/base';
import { isConflict } from '#server/kube';

export interface ConflictRetry {
  clock: Clock;
  ids: Pick<Ids, 'random'>;
  /** How often it is tried in all. */
  steps: number;
  /** Milliseconds between two tries; up to as much again is added at random. */
  delay: number;
  /** Ends a wait early: called before each with what to call once trying again makes sense. */
  sooner?: (wake: () => void) => void;
  /** Aborts the wait between two tries, which then rejects with the signal's reason. */
  signal: AbortSignal;
}

/**
 * Calls `attempt` again as long as it rejects with a stale write (409 Conflict). Rejects with its last error, at once
 * with any other. Models client-go retry.RetryOnConflict with a constant back-off and jitter 1.0.
 */
export async function retryStaleWrites<T>(options: ConflictRetry, attempt: () => Promise<T>): Promise<T> {
  const { steps } = options;
  for (let step = 1; ; step++) {
    try {
      return await attempt();
    } catch (error) {
      if (!isConflict(error) || step >= steps) throw error;
      await pause(options);
    }
  }
}

function pause({ clock, ids, delay, sooner, signal }: ConflictRetry): Promise<void> {
  const waking = new AbortController();
  const over = clock.sleep(delay * (1 + ids.random()), AbortSignal.any([signal, waking.signal]));
  sooner?.(() => waking.abort());
  return over.catch((error: unknown) => {
    if (signal.aborted) throw error;
  });
}
