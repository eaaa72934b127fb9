import type { Entry, StoreEvent } from './contract.ts';

/** How much of the past one store keeps in memory; whichever limit is reached first. */
export interface HistoryLimits {
  readonly events: number;
  /** Bytes that only the history keeps alive: replaced and removed values, and EVENT_OVERHEAD_BYTES an event. */
  readonly bytes: number;
}

/**
 * A tenant may cost 2 MB in all while awake. A cluster just born has made some 300 changes of 2 KB; a tenth of the budget
 * holds the last quarter of them, or, at rest, minutes of lease renewals: enough for a watch that reconnects and for a
 * list read page by page. A busier cluster (management) is given more by who builds the engine.
 */
export const DEFAULT_HISTORY_LIMITS: HistoryLimits = { events: 1_000, bytes: 192 * 1024 };

/** What an event costs beside its values: its own object, the previous entry's, and a buffer's headers. */
export const EVENT_OVERHEAD_BYTES = 320;

/**
 * The changes after `compactedRevision`, oldest first and without a gap. Every change has the revision after the one
 * before it, so a revision is found by counting.
 */
export interface History {
  readonly compactedRevision: number;
  /** `event` must have the next revision. Forgets the oldest events beyond the limits. */
  add(event: StoreEvent): void;
  /** Forgets events at or below `revision`. */
  compact(revision: number): void;
  /** The events after `revision`, oldest first; `revision` must not be below compactedRevision. */
  after(revision: number): StoreEvent[];
  /** What stood at `revision` under each key of `prefix` that changed since (undefined: nothing). */
  undo(prefix: string, revision: number): Map<string, Entry | undefined>;
}

/** An empty history of a store that is at `revision`. */
export function createHistory(limits: HistoryLimits, revision: number): History {
  // A ring: the event of revision r is at (r - revision - 1) % limits.events.
  const ring: (StoreEvent | undefined)[] = [];
  let compacted = revision;
  let newest = revision;
  let bytes = 0;
  const slot = (at: number): number => (at - revision - 1) % limits.events;

  const forgetOldest = (): void => {
    compacted++;
    const event = ring[slot(compacted)];
    if (event) bytes -= cost(event);
    ring[slot(compacted)] = undefined;
  };
  const after = (from: number): StoreEvent[] => {
    const events: StoreEvent[] = [];
    for (let at = from + 1; at <= newest; at++) {
      const event = ring[slot(at)];
      if (event) events.push(event);
    }
    return events;
  };

  return {
    get compactedRevision() {
      return compacted;
    },
    add(event) {
      if (newest - compacted >= limits.events) forgetOldest();
      newest = event.revision;
      ring[slot(newest)] = event;
      bytes += cost(event);
      while (bytes > limits.bytes && compacted < newest) forgetOldest();
    },
    compact(upTo) {
      while (compacted < upTo && compacted < newest) forgetOldest();
    },
    after,
    undo(prefix, to) {
      const before = new Map<string, Entry | undefined>();
      for (const event of after(to))
        if (event.key.startsWith(prefix) && !before.has(event.key)) before.set(event.key, event.previous);
      return before;
    },
  };
}

/** A put's value is the current one, or the previous one of a later event: it is counted there. */
function cost(event: StoreEvent): number {
  const previous = event.previous?.value;
  const own = event.type === 'delete' && event.value !== previous ? event.value.byteLength : 0;
  return EVENT_OVERHEAD_BYTES + (previous?.byteLength ?? 0) + own;
}
