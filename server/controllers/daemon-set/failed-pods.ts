import type { Clock } from '#server/base';

/** Milliseconds before a failed pod is replaced again; doubles with each, starts anew after a quiet time. */
const FIRST = 1000;
const LONGEST = 15 * 60_000;
/** So many nodes are remembered; older ones are dropped. */
const LIMIT = 5000;

/** How long to wait with the replacement of failed pods. Models flowcontrol.Backoff as the DaemonSet controller uses it. */
export function createFailedPodBackoff(clock: Pick<Clock, 'now'>): { waitFor(key: string): number } {
  const failures = new Map<string, { delay: number; since: number }>();
  return {
    /** 0: replace it now, which counts as an attempt; else milliseconds until that is due. */
    waitFor(key) {
      const now = clock.now();
      const last = failures.get(key);
      const left = last ? last.since + last.delay - now : 0;
      if (left > 0) return left;
      const quiet = !last || now - last.since > 2 * LONGEST;
      failures.delete(key);
      failures.set(key, { delay: quiet ? FIRST : Math.min(LONGEST, last.delay * 2), since: now });
      const [oldest] = failures.keys();
      if (failures.size > LIMIT && oldest !== undefined) failures.delete(oldest);
      return 0;
    },
  };
}
