import type { Logger } from '#server/base';
import type { StoreEvent, StoreWatch, WatchEnd } from './contract.ts';

/**
 * The watches of one store, found by prefix: an event costs one lookup for each *length* of prefix being watched,
 * and the calls to those who match.
 */
export interface Watchers {
  /** Calls back for `past`, then for each dispatched event of `prefix` with a revision above `seen`. */
  add(watch: WatchRequest, past: readonly StoreEvent[]): StoreWatch;
  dispatch(event: StoreEvent): void;
  /** Ends all watches. */
  end(why: WatchEnd): void;
}

export interface WatchRequest {
  readonly prefix: string;
  /** The revision up to which the watcher knows what happened. */
  readonly seen: number;
  readonly onEvent: (event: StoreEvent) => void;
  readonly onEnd: ((why: WatchEnd) => void) | undefined;
}

interface Watcher extends WatchRequest {
  seen: number;
  active: boolean;
}

/** A callback that throws is a bug of the watcher: it is logged and that watch ends with `failed`. */
export function createWatchers(log: Logger): Watchers {
  const byPrefix = new Map<string, Set<Watcher>>();
  /** How many prefixes of each length are watched. */
  const lengths = new Map<number, number>();

  const register = (watcher: Watcher): void => {
    const same = byPrefix.get(watcher.prefix);
    if (same) {
      same.add(watcher);
      return;
    }
    byPrefix.set(watcher.prefix, new Set([watcher]));
    const length = watcher.prefix.length;
    lengths.set(length, (lengths.get(length) ?? 0) + 1);
  };
  const remove = (watcher: Watcher): void => {
    watcher.active = false;
    const same = byPrefix.get(watcher.prefix);
    if (!same?.delete(watcher) || same.size > 0) return;
    byPrefix.delete(watcher.prefix);
    const length = watcher.prefix.length;
    const left = (lengths.get(length) ?? 1) - 1;
    if (left > 0) lengths.set(length, left);
    else lengths.delete(length);
  };
  const end = (watcher: Watcher, why: WatchEnd): void => {
    if (!watcher.active) return;
    remove(watcher);
    try {
      watcher.onEnd?.(why);
    } catch (error) {
      log.error({ err: error, prefix: watcher.prefix }, 'a watcher threw when told that its watch ended');
    }
  };
  const deliver = (watcher: Watcher, event: StoreEvent): void => {
    if (!watcher.active || event.revision <= watcher.seen) return;
    watcher.seen = event.revision;
    try {
      watcher.onEvent(event);
    } catch (error) {
      log.error(
        { err: error, prefix: watcher.prefix, key: event.key, revision: event.revision },
        'a watcher threw; its watch ends',
      );
      end(watcher, 'failed');
    }
  };

  return {
    add(request, past) {
      const watcher: Watcher = { ...request, active: true };
      for (const event of past) if (event.key.startsWith(watcher.prefix)) deliver(watcher, event);
      if (watcher.active) register(watcher);
      return { stop: () => remove(watcher) };
    },
    dispatch(event) {
      for (const length of lengths.keys()) {
        if (length > event.key.length) continue;
        const matching = byPrefix.get(event.key.slice(0, length));
        if (matching) for (const watcher of matching) deliver(watcher, event);
      }
    },
    end(why) {
      for (const watchers of [...byPrefix.values()]) for (const watcher of [...watchers]) end(watcher, why);
    },
  };
}
