import type { Clock } from '#server/base';

/** After this many milliseconds an expectation is given up: the event it waits for was missed. */
const GIVEN_UP_AFTER = 5 * 60_000;

/**
 * What a loop has done and its cache does not show yet. While something is expected of a key the loop must not create
 * or delete on its behalf.
 */
export interface Expectations {
  /** About to create so many objects and delete those of these uids; replaces what was expected before. */
  expect(key: string, creations: number, deletions: readonly string[]): void;
  /** One creation was seen, or failed. */
  creationObserved(key: string): void;
  /** The deletion of this very object was seen, or failed. Seeing it twice does no harm. */
  deletionObserved(key: string, uid: string): void;
  /** Nothing is expected of the key, or what is was given up. */
  satisfied(key: string): boolean;
  forget(key: string): void;
}

interface Expected {
  creations: number;
  deletions: Set<string>;
  since: number;
}

/** Models UIDTrackingControllerExpectations of kubernetes/pkg/controller/controller_utils.go. */
export function createExpectations(clock: Pick<Clock, 'now'>): Expectations {
  const expected = new Map<string, Expected>();
  const settle = (key: string, entry: Expected): void => {
    if (entry.creations <= 0 && entry.deletions.size === 0) expected.delete(key);
  };
  return {
    expect(key, creations, deletions) {
      const entry = { creations, deletions: new Set(deletions), since: clock.now() };
      expected.set(key, entry);
      settle(key, entry);
    },
    creationObserved(key) {
      const entry = expected.get(key);
      if (!entry) return;
      entry.creations--;
      settle(key, entry);
    },
    deletionObserved(key, uid) {
      const entry = expected.get(key);
      if (!entry) return;
      entry.deletions.delete(uid);
      settle(key, entry);
    },
    satisfied(key) {
      const entry = expected.get(key);
      return !entry || clock.now() - entry.since > GIVEN_UP_AFTER;
    },
    forget(key) {
      expected.delete(key);
    },
  };
}
