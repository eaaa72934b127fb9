import { type Clock, errorMessage, type Ids, type Logger } from '#server/base';
import {
  type Event,
  events,
  formatTime,
  isAlreadyExists,
  isNotFound,
  type KubeObject,
  StatusError,
} from '#server/kube';
import type { Client } from './contract.ts';
import { type Correlated, createEventCorrelator, type EventCorrelator } from './event-correlator.ts';

export type EventType = 'Normal' | 'Warning';

export interface EventOptions {
  /** A part of the object: `spec.containers{nginx}`. */
  fieldPath?: string;
  annotations?: Record<string, string>;
}

/** What an event is about: an object, or as much of one as names it. */
export type Involved = Pick<KubeObject, 'apiVersion' | 'kind' | 'metadata'>;

/** Tells users of a cluster what a component did, as v1 Events. */
export interface EventRecorder {
  /**
   * Records an event about `involved` (apiVersion, kind, and of the metadata name, namespace, uid, resourceVersion; given
   * as they are), in the object's namespace, `default` when it has none. Returns at once and never fails: what cannot be
   * written is logged.
   */
  event(involved: Involved, type: EventType, reason: string, message: string, options?: EventOptions): void;
  /** Resolves when everything recorded so far was written or given up. */
  flush(): Promise<void>;
  /** Drops what is not written yet. */
  stop(): void;
}

export interface EventRecorderOptions {
  client: Client;
  /** `source.component` and `reportingComponent`. */
  component: string;
  /** `source.host` and `reportingInstance`: the node of a component that lives on one. */
  host?: string;
  clock: Clock;
  ids: Pick<Ids, 'random'>;
  log: Logger;
}

/** How many events may wait to be written; further ones are dropped. */
const MAX_QUEUED = 1000;
/** How often one event is sent in all when no API server answers. */
const MAX_TRIES = 12;
/** Milliseconds between two such tries; the first wait is a random part of it. */
const RETRY_DELAY = 10_000;
/** The longest name an Event may have, and what the time in it needs. */
const MAX_NAME = 253;

/** Names events after the nanosecond they happened in; never twice the same. */
function createEventNames(clock: Clock, ids: Pick<Ids, 'random'>): (object: string) => string {
  let last = 0n;
  return (object) => {
    const nanos = BigInt(Math.floor(clock.now())) * 1_000_000n + BigInt(Math.floor(ids.random() * 1_000_000));
    last = nanos > last ? nanos : last + 1n;
    const suffix = `.${last.toString(16)}`;
    return `${object.slice(0, MAX_NAME - suffix.length)}${suffix}`;
  };
}

/** The event before it is correlated. */
function newEvent(
  { clock, component, host }: EventRecorderOptions,
  name: string,
  involved: Involved,
  { type, reason, message }: { type: EventType; reason: string; message: string },
  extra: EventOptions,
): Event {
  const now = formatTime(clock.now());
  const { namespace, uid, resourceVersion } = involved.metadata;
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: {
      name,
      namespace: namespace || 'default',
      ...(extra.annotations ? { annotations: extra.annotations } : {}),
    },
    involvedObject: {
      kind: involved.kind,
      ...(namespace ? { namespace } : {}),
      name: involved.metadata.name,
      ...(uid ? { uid } : {}),
      apiVersion: involved.apiVersion,
      ...(resourceVersion ? { resourceVersion } : {}),
      ...(extra.fieldPath ? { fieldPath: extra.fieldPath } : {}),
    },
    reason,
    message,
    source: { component, ...(host ? { host } : {}) },
    firstTimestamp: now,
    lastTimestamp: now,
    count: 1,
    type,
    reportingComponent: component,
    reportingInstance: host ?? '',
  };
}

async function write(client: Client, { event, patch }: Correlated): Promise<Event> {
  const ref = { namespace: event.metadata.namespace, name: event.metadata.name };
  if (patch) {
    try {
      return await client.patch(events, ref, { type: 'strategic', body: patch });
    } catch (error) {
      // The Event ran out of its time to live: begin anew, with the count so far.
      if (!isNotFound(error)) throw error;
    }
  }
  const { resourceVersion: _, ...metadata } = event.metadata;
  return client.create(events, { ...event, metadata });
}

/** Writes events one after the other; resolves when each is written, dropped or given up. Rejects when aborted. */
function createSender(options: EventRecorderOptions, correlator: EventCorrelator, signal: AbortSignal) {
  const { client, clock, ids, log, component } = options;
  /** False: worth another try. */
  const tried = async (correlated: Correlated): Promise<boolean> => {
    try {
      correlator.wrote(await write(client, correlated));
      return true;
    } catch (error) {
      const { reason, message, involvedObject } = correlated.event;
      const fields = { component, involvedObject, reason, message, error: errorMessage(error) };
      if (!(error instanceof StatusError)) {
        log.debug(fields, 'an event could not be written, may be tried again');
        return false;
      }
      const causes = error.status.details?.causes ?? [];
      const terminating = causes.some((cause) => cause.reason === 'NamespaceTerminating');
      if (isAlreadyExists(error) || terminating) log.debug(fields, 'the server rejected an event');
      else log.warn(fields, 'the server rejected an event');
      return true;
    }
  };
  return async (event: Event): Promise<void> => {
    const correlated = correlator.correlate(event);
    if (!correlated) return;
    for (let tries = 1; !(await tried(correlated)); tries++) {
      if (tries >= MAX_TRIES) {
        log.warn({ component, reason: event.reason }, 'an event was given up, no API server answered');
        return;
      }
      await clock.sleep(tries === 1 ? RETRY_DELAY * ids.random() : RETRY_DELAY, signal);
    }
  };
}

/** Models k8s.io/client-go/tools/record: EventBroadcaster, EventRecorder and the default EventCorrelator. */
export function createEventRecorder(options: EventRecorderOptions): EventRecorder {
  const { clock, ids, log, component } = options;
  const nameOf = createEventNames(clock, ids);
  const stopping = new AbortController();
  const send = createSender(options, createEventCorrelator({ clock, nameOf }), stopping.signal);
  const queue: Event[] = [];
  let sending: Promise<void> | undefined;

  const drain = async (): Promise<void> => {
    try {
      for (let next = queue.shift(); next && !stopping.signal.aborted; next = queue.shift()) await send(next);
    } catch (error) {
      if (!stopping.signal.aborted) {
        log.error({ component, error: errorMessage(error) }, 'recording events failed');
      }
    } finally {
      sending = undefined;
    }
  };
  return {
    event(involved, type, reason, message, extra = {}) {
      if (stopping.signal.aborted) return;
      if (queue.length >= MAX_QUEUED) {
        log.warn({ component, reason, message }, 'too many events wait to be written, one was dropped');
        return;
      }
      queue.push(
        newEvent(options, nameOf(involved.metadata.name), involved, { type, reason, message }, extra),
      );
      // Later, so that whoever tells of something is not in the middle of the write about it.
      sending ??= Promise.resolve().then(drain);
    },
    async flush() {
      while (sending) await sending;
    },
    stop() {
      stopping.abort();
      queue.length = 0;
    },
  };
}
