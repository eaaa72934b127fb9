import type { Clock } from '#server/base';

/** The first waits are short: an API server that is being started (by a static pod of this very kubelet) is found at once. */
const FIRST_DELAY = 2;
const MAX_DELAY = 7_000;

/** The same for informers. */
export const INFORMER_RETRY = { initial: FIRST_DELAY, max: MAX_DELAY };

/** Calls until it works, waiting 2 ms, 4 ms … 7 s in between; ends quietly when `signal` aborts. */
export async function untilDone(
  clock: Clock,
  signal: AbortSignal,
  attempt: () => Promise<void>,
  onError: (error: unknown) => void,
): Promise<boolean> {
  for (let delay = FIRST_DELAY; !signal.aborted; delay = Math.min(MAX_DELAY, delay * 2)) {
    try {
      await attempt();
      return true;
    } catch (error) {
      if (signal.aborted) return false;
      onError(error);
    }
    await rest(clock, delay, signal);
  }
  return false;
}

/** Waits; returns early, without an error, when `signal` aborts. */
export async function rest(clock: Clock, milliseconds: number, signal: AbortSignal): Promise<void> {
  try {
    await clock.sleep(milliseconds, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
