import type { UnstructuredObject } from '#server/kube';
import { CompactedError, type Store, type StoreEvent, type StoreWatch, type WatchEnd } from '#server/store';
import { type ObjectStorage, resourcePrefix } from '../storage.ts';

/** A change as the readers of one resource share it: decoded once, and encoded once per representation. */
export interface SharedEvent {
  readonly type: 'put' | 'delete';
  readonly key: string;
  readonly revision: number;
  readonly value: Uint8Array;
  readonly created: boolean;
  /** The state after the change (of a delete: the last). Frozen. */
  object(): UnstructuredObject;
  /** The state before, or undefined when the key was created. Frozen. */
  previous(): UnstructuredObject | undefined;
  /** What `make` returned for this representation first. */
  once<T>(representation: string, make: () => T): T;
}

/** One store watch per resource, however many read it. */
export interface WatchHub {
  /**
   * Calls `onEvent` for each change of the resource below `prefix` after `fromRevision`: first, synchronously, for what
   * already happened, then as changes become visible. Throws CompactedError.
   */
  follow(
    resource: { group: string; plural: string },
    prefix: string,
    fromRevision: number,
    onEvent: (event: SharedEvent) => void,
    onEnd: (why: WatchEnd) => void,
  ): StoreWatch;
  close(): void;
}

interface Follower {
  prefix: string;
  seen: number;
  onEvent: (event: SharedEvent) => void;
  onEnd: (why: WatchEnd) => void;
}

interface Channel {
  prefix: string;
  followers: Set<Follower>;
  watch: StoreWatch | undefined;
}

export function createWatchHub(storage: ObjectStorage): WatchHub {
  const channels = new Map<string, Channel>();
  const { store } = storage;

  const deliver = (channel: Channel, event: StoreEvent): void => {
    const shared = shareEvent(storage, event);
    for (const follower of channel.followers) {
      if (event.revision <= follower.seen || !event.key.startsWith(follower.prefix)) continue;
      follower.seen = event.revision;
      follower.onEvent(shared);
    }
  };
  const end = (channel: Channel, why: WatchEnd): void => {
    if (channels.get(channel.prefix) === channel) channels.delete(channel.prefix);
    channel.watch = undefined;
    const followers = [...channel.followers];
    channel.followers.clear();
    for (const follower of followers) follower.onEnd(why);
  };
  const open = (prefix: string): Channel => {
    const known = channels.get(prefix);
    if (known) return known;
    const channel: Channel = { prefix, followers: new Set(), watch: undefined };
    channels.set(prefix, channel);
    channel.watch = store.watch(
      prefix,
      store.revision,
      (event) => deliver(channel, event),
      (why) => end(channel, why),
    );
    return channel;
  };
  return {
    follow(resource, prefix, fromRevision, onEvent, onEnd) {
      if (fromRevision < store.compactedRevision)
        throw new CompactedError(fromRevision, store.compactedRevision);
      const channel = open(resourcePrefix(resource));
      const follower: Follower = { prefix, seen: fromRevision, onEvent, onEnd };
      if (fromRevision < store.revision) catchUp(store, storage, follower);
      channel.followers.add(follower);
      return {
        stop() {
          channel.followers.delete(follower);
          if (channel.followers.size > 0 || channels.get(channel.prefix) !== channel) return;
          channels.delete(channel.prefix);
          channel.watch?.stop();
          channel.watch = undefined;
        },
      };
    },
    close() {
      for (const channel of [...channels.values()]) {
        channel.watch?.stop();
        end(channel, 'closed');
      }
    },
  };
}

/** What happened before the follower came, from the store's history. */
function catchUp(store: Store, storage: ObjectStorage, follower: Follower): void {
  const history = store.watch(follower.prefix, follower.seen, (event) => {
    follower.seen = event.revision;
    follower.onEvent(shareEvent(storage, event));
  });
  history.stop();
}

function shareEvent(storage: ObjectStorage, event: StoreEvent): SharedEvent {
  const made = new Map<string, unknown>();
  let object: UnstructuredObject | undefined;
  let previous: UnstructuredObject | undefined;
  return {
    type: event.type,
    key: event.key,
    revision: event.revision,
    value: event.value,
    created: event.previous === undefined,
    object() {
      object ??= storage.decode({ key: event.key, value: event.value, modRevision: event.revision });
      return object;
    },
    previous() {
      if (event.previous) previous ??= storage.decode(event.previous);
      return previous;
    },
    once<T>(representation: string, make: () => T): T {
      if (made.has(representation)) return made.get(representation) as T;
      const value = make();
      made.set(representation, value);
      return value;
    },
  };
}
