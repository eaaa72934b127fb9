import { errorMessage } from '#server/base';
import type { Controller, ControllerContext } from '#server/client';
import { type Event, events, isNotFound } from '#server/kube';

/** Milliseconds an Event lives after it happened last. */
const TTL = 3600_000;
const SHORTEST_WAIT = 60_000;

function lastSeen(event: Event): number {
  const times = [
    event.series?.lastObservedTime,
    event.lastTimestamp,
    event.eventTime,
    event.metadata.creationTimestamp,
  ];
  return Math.max(0, ...times.map((time) => (time ? Date.parse(time) || 0 : 0)));
}

export function createEventTtl(context: ControllerContext): Controller {
  const { client, clock, log } = context;
  const stopping = new AbortController();
  let running: Promise<void> = Promise.resolve();

  /** Deletes what is due; resolves with milliseconds until more may be. */
  const sweep = async (): Promise<number> => {
    const { items } = await client.list(events);
    const now = clock.now();
    let wait = TTL;
    for (const event of items) {
      const left = lastSeen(event) + TTL - now;
      if (left > 0) {
        wait = Math.min(wait, left);
        continue;
      }
      const { namespace, name, uid } = event.metadata;
      try {
        await client.delete(events, { namespace, name }, uid ? { preconditions: { uid } } : {});
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
    }
    return Math.max(SHORTEST_WAIT, wait);
  };
  const run = async (): Promise<void> => {
    // Nothing can be due in a cluster that has just begun; in one that goes on, a minute more does no harm.
    let wait = SHORTEST_WAIT;
    while (!stopping.signal.aborted) {
      try {
        await clock.sleep(wait, stopping.signal);
        wait = await sweep();
      } catch (error) {
        if (stopping.signal.aborted) return;
        log.warn(
          { controller: 'event-ttl', error: errorMessage(error) },
          'old events could not be deleted, will be tried again',
        );
        wait = SHORTEST_WAIT;
      }
    }
  };
  return {
    start() {
      running = run();
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
