import type { Clock } from '#server/base';
import { type Event, formatTime } from '#server/kube';

/** What to write for one event: the event as a whole when it is new, else the change of the one that exists. */
export interface Correlated {
  event: Event;
  /** Present when the event was written before under the same name. */
  patch?: { count: number; lastTimestamp: string; message: string };
}

/** Keeps a component from flooding a cluster with events: counts, combines and drops. */
export interface EventCorrelator {
  /** Undefined: the source told too much about this object lately, drop the event. */
  correlate(event: Event): Correlated | undefined;
  /** Takes note of the event as the server now has it. */
  wrote(event: Event): void;
}

/** How many keys each memory holds; the one used longest ago goes first. */
const MAX_ENTRIES = 4096;
/** From so many different messages on within the interval, similar events are combined into one. */
const MAX_SIMILAR = 10;
const SIMILAR_INTERVAL = 600_000;
/** Per source and object: this many events at once, and one more per refill time (milliseconds). */
const SPAM_BURST = 25;
const SPAM_REFILL = 300_000;

interface Similar {
  messages: Set<string>;
  last: number;
}

interface Observation {
  count: number;
  firstTimestamp: string | undefined;
  name: string;
  resourceVersion: string | undefined;
}

interface Bucket {
  tokens: number;
  at: number;
}

function createLru<V>(limit: number): { get(key: string): V | undefined; set(key: string, value: V): void } {
  const entries = new Map<string, V>();
  const set = (key: string, value: V): void => {
    entries.delete(key);
    entries.set(key, value);
    if (entries.size <= limit) return;
    const [oldest] = entries.keys();
    if (oldest !== undefined) entries.delete(oldest);
  };
  return {
    get(key) {
      const value = entries.get(key);
      if (value !== undefined) set(key, value);
      return value;
    },
    set,
  };
}

/** One key of several texts, none of which has a NUL in it. */
function joined(...parts: (string | undefined)[]): string {
  return parts.join('\0');
}

/** Who says it about what. */
function sourceKey({ source, involvedObject: o }: Event): string {
  return joined(source?.component, source?.host, o.kind, o.namespace, o.name, o.uid, o.apiVersion);
}

/** Equal for events that differ in nothing but when they happened. */
function identityKey(event: Event): string {
  return joined(
    'same',
    sourceKey(event),
    event.involvedObject.fieldPath,
    event.type,
    event.reason,
    event.message,
  );
}

/** Equal for events that differ in their message only. */
function similarKey(event: Event): string {
  const { type, reason, reportingComponent, reportingInstance } = event;
  return joined('similar', sourceKey(event), type, reason, reportingComponent, reportingInstance);
}

function createSpamFilter(clock: Clock): (event: Event) => boolean {
  const buckets = createLru<Bucket>(MAX_ENTRIES);
  return (event) => {
    const key = sourceKey(event);
    const now = clock.now();
    const before = buckets.get(key) ?? { tokens: SPAM_BURST, at: now };
    const tokens = Math.min(SPAM_BURST, before.tokens + (now - before.at) / SPAM_REFILL);
    const accepted = tokens >= 1;
    buckets.set(key, { tokens: accepted ? tokens - 1 : tokens, at: now });
    return accepted;
  };
}

/** Models k8s.io/client-go/tools/record/events_cache.go: aggregator, event logger and spam filter, in this order. */
export function createEventCorrelator(options: {
  clock: Clock;
  nameOf: (object: string) => string;
}): EventCorrelator {
  const { clock, nameOf } = options;
  const similar = createLru<Similar>(MAX_ENTRIES);
  const observed = createLru<Observation>(MAX_ENTRIES);
  const accept = createSpamFilter(clock);

  const aggregate = (event: Event): { event: Event; key: string } => {
    const key = similarKey(event);
    const now = clock.now();
    let record = similar.get(key);
    if (!record || now - record.last > SIMILAR_INTERVAL) record = { messages: new Set(), last: now };
    const message = event.message ?? '';
    record.messages.add(message);
    record.last = now;
    similar.set(key, record);
    if (record.messages.size < MAX_SIMILAR) return { event, key: identityKey(event) };
    const [any] = record.messages;
    if (any !== undefined) record.messages.delete(any);
    const time = formatTime(now);
    const combined: Event = {
      ...event,
      metadata: {
        name: nameOf(event.involvedObject.name ?? ''),
        namespace: event.metadata.namespace ?? 'default',
      },
      message: `(combined from similar events): ${message}`,
      count: 1,
      firstTimestamp: time,
      lastTimestamp: time,
      // As upstream: a combined event names its source only.
      reportingComponent: '',
      reportingInstance: '',
    };
    return { event: combined, key };
  };
  const remember = (key: string, event: Event): void => {
    const { name, resourceVersion } = event.metadata;
    observed.set(key, {
      count: event.count ?? 1,
      firstTimestamp: event.firstTimestamp,
      name,
      resourceVersion,
    });
  };
  const count = (event: Event, key: string): Correlated => {
    const before = observed.get(key);
    if (!before) {
      remember(key, event);
      return { event };
    }
    const { resourceVersion: _, ...metadata } = event.metadata;
    const again: Event = {
      ...event,
      metadata: {
        ...metadata,
        name: before.name,
        ...(before.resourceVersion ? { resourceVersion: before.resourceVersion } : {}),
      },
      ...(before.firstTimestamp ? { firstTimestamp: before.firstTimestamp } : {}),
      count: before.count + 1,
    };
    remember(key, again);
    const patch = {
      count: before.count + 1,
      lastTimestamp: again.lastTimestamp ?? '',
      message: again.message ?? '',
    };
    return { event: again, patch };
  };
  return {
    correlate(event) {
      const { event: aggregated, key } = aggregate(event);
      const correlated = count(aggregated, key);
      return accept(correlated.event) ? correlated : undefined;
    },
    wrote: (event) => remember(identityKey(event), event),
  };
}
