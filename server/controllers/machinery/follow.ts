import { type Clock, errorMessage, type Logger } from '#server/base';
import type { Client } from '#server/client';
import { isExpired, type KubeObject, type Resource } from '#server/kube';

/** Milliseconds before a lost collection is listed again: the first time, and at most. */
const FIRST_RETRY = 50;
const LAST_RETRY = 30_000;

export interface FollowOptions<T extends KubeObject> {
  client: Client;
  clock: Clock;
  log: Logger;
  resource: Resource<T>;
  /** All there is; what is not in it is gone. */
  onList(objects: readonly T[]): void;
  onChange(object: T): void;
  onGone(object: T): void;
}

/** Follows a collection and keeps nothing of it. `listed` resolves after the first list, or when stopped. */
export interface Follower {
  readonly listed: Promise<void>;
  stop(): void;
}

/** List, then watch; after a lost watch watch on, after 410 list again. Models client-go's reflector without a store. */
export function follow<T extends KubeObject>(options: FollowOptions<T>): Follower {
  const { client, clock, log, resource } = options;
  const stopping = new AbortController();
  let finishListing: () => void = () => undefined;
  const listed = new Promise<void>((resolve) => {
    finishListing = resolve;
  });
  let version = '';

  const list = async (): Promise<void> => {
    const answer = await client.list(resource);
    version = answer.metadata.resourceVersion ?? '';
    if (!stopping.signal.aborted) options.onList(answer.items);
    finishListing();
  };
  let endWatch: () => void = () => undefined;
  const watch = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const stream = client.watch(
        resource,
        { resourceVersion: version },
        ({ type, object }) => {
          version = object.metadata.resourceVersion ?? version;
          if (type === 'DELETED') options.onGone(object);
          else if (type !== 'BOOKMARK') options.onChange(object);
        },
        (error) => (error === undefined ? resolve() : reject(error)),
      );
      endWatch = () => {
        stream.stop();
        resolve();
      };
    });
  const run = async (): Promise<void> => {
    let delay = FIRST_RETRY;
    let relist = true;
    while (!stopping.signal.aborted) {
      try {
        if (relist) await list();
        relist = false;
        if (stopping.signal.aborted) return;
        const since = clock.now();
        await watch();
        if (clock.now() - since < FIRST_RETRY) await clock.sleep(delay, stopping.signal);
        delay = FIRST_RETRY;
      } catch (error) {
        if (stopping.signal.aborted) return;
        relist ||= isExpired(error);
        log.debug(
          { resource: resource.plural, error: errorMessage(error) },
          'following a collection failed, will be tried again',
        );
        await clock.sleep(delay, stopping.signal);
        delay = Math.min(delay * 2, LAST_RETRY);
      }
    }
  };
  run().catch((error: unknown) => {
    finishListing();
    if (!stopping.signal.aborted)
      log.error(
        { resource: resource.plural, error: errorMessage(error) },
        'a collection is followed no longer',
      );
  });
  return {
    listed,
    stop() {
      stopping.abort();
      endWatch();
      finishListing();
    },
  };
}
