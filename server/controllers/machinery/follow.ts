import { type Clock, errorMessage, type Logger, type Timer } from '#server/base';
import type { Client } from '#server/client';
import { isExpired, type KubeObject, type Resource } from '#server/kube';

/** Milliseconds before a lost collection is asked for again: the first time, and at most. */
const FIRST_RETRY = 50;
const LAST_RETRY = 30_000;

/** What is told of a collection, with the resource: one handler may serve many. */
export interface FollowHandler<T extends KubeObject> {
  /** All there is; what is not in it is gone. */
  onList(resource: Resource<T>, objects: readonly T[]): void;
  onChange(resource: Resource<T>, object: T): void;
  onGone(resource: Resource<T>, object: T): void;
}

export interface FollowOptions {
  client: Client;
  clock: Clock;
  log: Logger;
}

/** Follows a collection and keeps nothing of it. `listed` resolves after the first list, or when stopped. */
export interface Follower {
  readonly listed: Promise<void>;
  stop(): void;
}

/** A class, for a cluster has half a hundred of these: methods are shared, and at rest there is neither promise nor timer. */
class CollectionFollower<T extends KubeObject> implements Follower {
  readonly listed: Promise<void>;
  private readonly options: FollowOptions;
  private readonly resource: Resource<T>;
  private readonly handler: FollowHandler<T>;
  private finishListing: (() => void) | undefined;
  /** From where to watch on; undefined when a list is due. */
  private version: string | undefined;
  private delay = FIRST_RETRY;
  private since = 0;
  private stream: { stop(): void } | undefined;
  private timer: Timer | undefined;
  private stopped = false;

  constructor(options: FollowOptions, resource: Resource<T>, handler: FollowHandler<T>) {
    this.options = options;
    this.resource = resource;
    this.handler = handler;
    this.listed = new Promise((resolve) => {
      this.finishListing = resolve;
    });
    void this.go();
  }

  stop(): void {
    this.stopped = true;
    this.timer?.cancel();
    this.stream?.stop();
    this.finishListing?.();
  }

  private async go(): Promise<void> {
    this.timer = undefined;
    try {
      if (this.version === undefined) await this.list();
      if (!this.stopped) this.watch();
    } catch (error) {
      this.retry(error);
    }
  }

  private async list(): Promise<void> {
    const answer = await this.options.client.list(this.resource);
    this.version = answer.metadata.resourceVersion ?? '';
    if (!this.stopped) this.handler.onList(this.resource, answer.items);
    this.finishListing?.();
    this.finishListing = undefined;
  }

  private watch(): void {
    this.since = this.options.clock.now();
    this.stream = this.options.client.watch(
      this.resource,
      { resourceVersion: this.version ?? '' },
      ({ type, object }) => {
        this.version = object.metadata.resourceVersion ?? this.version;
        if (type === 'DELETED') this.handler.onGone(this.resource, object);
        else if (type !== 'BOOKMARK') this.handler.onChange(this.resource, object);
      },
      (error) => this.retry(error),
    );
  }

  private retry(error: unknown): void {
    if (this.stopped) return;
    const { clock, log } = this.options;
    if (isExpired(error)) this.version = undefined;
    if (clock.now() - this.since > LAST_RETRY) this.delay = FIRST_RETRY;
    if (error !== undefined) {
      log.debug(
        { resource: this.resource.plural, error: errorMessage(error) },
        'following a collection failed, will be tried again',
      );
    }
    this.timer = clock.after(this.delay, () => void this.go());
    this.delay = Math.min(this.delay * 2, LAST_RETRY);
  }
}

/** List, then watch; after a lost watch watch on, after 410 list again. Models client-go's reflector without a store. */
export function follow<T extends KubeObject>(
  options: FollowOptions,
  resource: Resource<T>,
  handler: FollowHandler<T>,
): Follower {
  return new CollectionFollower(options, resource, handler);
}
