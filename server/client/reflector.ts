import { type Clock, errorMessage, type Logger } from '#server/base';
import {
  expired,
  isExpired,
  type KubeObject,
  type Resource,
  StatusError,
  type WatchEvent,
} from '#server/kube';
import type { Backoff } from './backoff.ts';
import { type Client, ConnectionError } from './contract.ts';

export interface ReflectorOptions<T extends KubeObject> {
  client: Client;
  resource: Resource<T>;
  query: { namespace?: string | undefined; labelSelector?: string; fieldSelector?: string };
  clock: Clock;
  backoff: Backoff;
  log: Logger;
  /** A complete list: what it does not name is gone. */
  onReplace(objects: readonly T[]): void;
  /** One change after the last list; never a bookmark. */
  onEvent(event: WatchEvent<T>): void;
}

export interface Reflector {
  /** Lists anew although nothing went wrong with the connection. */
  relist(): void;
  stop(): void;
}

/** Failures in a row from which on they are told as a warning. */
const LASTING_FAILURES = 3;

/** A watch that ends well after less than this without having told anything is not opened again at once. */
const SHORT_WATCH = 1000;

interface WatchEnd {
  error: unknown;
  /** It told something, or lived long enough to believe that it would have. */
  useful: boolean;
}

/** True for a list refused because of the resourceVersion it asked for: list again without one. */
function isVersionUnavailable(error: unknown): boolean {
  return isExpired(error) || (error instanceof StatusError && error.code === 504);
}

/**
 * Follows one collection: list, then watch from the list's resourceVersion; after a lost connection watch on from the
 * last version seen, after 410 list again. Runs until stopped, whatever fails.
 * Models k8s.io/client-go/tools/cache/reflector.go.
 */
export function startReflector<T extends KubeObject>(options: ReflectorOptions<T>): Reflector {
  const { client, resource, query, clock, backoff, log } = options;
  const stopping = new AbortController();
  /** The last version seen; undefined when a list is due. */
  let version: string | undefined;
  /** From which version the next list may be answered: '0' any, '' the newest. */
  let listFrom = '0';
  let endWatch: ((error: unknown) => void) | undefined;

  const list = async (): Promise<void> => {
    const answer = await client.list(resource, { ...query, resourceVersion: listFrom });
    if (stopping.signal.aborted) return;
    version = answer.metadata.resourceVersion ?? '';
    listFrom = version;
    options.onReplace(answer.items);
  };

  const watch = (from: string): Promise<WatchEnd> =>
    new Promise((resolve) => {
      const since = clock.now();
      let told = false;
      const onAbort = (): void => endWatch?.(undefined);
      const finish = (error: unknown): void => {
        endWatch = undefined;
        stopping.signal.removeEventListener('abort', onAbort);
        resolve({ error, useful: told || clock.now() - since >= SHORT_WATCH });
      };
      const stream = client.watch(
        resource,
        { ...query, resourceVersion: from },
        (event) => {
          if (!told) backoff.reset();
          told = true;
          const seen = event.object.metadata.resourceVersion;
          if (seen) version = listFrom = seen;
          if (event.type !== 'BOOKMARK') options.onEvent(event);
        },
        finish,
      );
      endWatch = (error) => {
        stream.stop();
        finish(error);
      };
      stopping.signal.addEventListener('abort', onAbort, { once: true });
    });

  /** Decides how to go on after a failure, and waits as long as that takes. */
  const recover = async (error: unknown): Promise<void> => {
    const fields = { resource: resource.plural, error: errorMessage(error) };
    if (isVersionUnavailable(error)) {
      version = undefined;
      listFrom = '';
      log.debug(fields, 'the version to watch from is gone, listing again');
      if (backoff.failures === 0) {
        backoff.count();
        return;
      }
    } else if (error instanceof ConnectionError) {
      log.debug(fields, 'no API server to follow, will be tried again');
    } else {
      version = undefined;
      // A refusal or two right after a grant or a deletion is a race; what lasts is worth somebody's attention.
      const level = backoff.failures < LASTING_FAILURES ? 'debug' : 'warn';
      log[level](fields, 'following a resource failed, will be tried again');
    }
    await backoff.pause(stopping.signal);
  };

  const run = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      try {
        if (version === undefined) await list();
        if (stopping.signal.aborted || version === undefined) return;
        const end = await watch(version);
        if (stopping.signal.aborted) return;
        if (end.error !== undefined) await recover(end.error);
        else if (!end.useful) await backoff.pause(stopping.signal);
      } catch (error) {
        if (stopping.signal.aborted) return;
        await recover(error).catch(() => undefined);
      }
    }
  };
  void run();
  return {
    relist: () => endWatch?.(expired('the watcher fell behind')),
    stop: () => stopping.abort(),
  };
}
