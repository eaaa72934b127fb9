/**
 * A set of strings in order (of their UTF-16 code units), with ranks. Two levels: a list of sorted runs. Finding is
 * two binary searches; inserting moves at most one run's length of pointers; a rank adds up the lengths of the runs
 * before it, so it stays cheap to about a million keys.
 */
export interface SortedKeys {
  readonly size: number;
  /** Adds a key that is not in the set. */
  insert(key: string): void;
  /** Removes a key that is in the set. */
  remove(key: string): void;
  /** How many keys satisfy `isBefore`, which must hold for a leading part of the order and for none behind it. */
  rank(isBefore: (key: string) => boolean): number;
  /** The keys at ranks `from` (inclusive) to `to` (exclusive). */
  slice(from: number, to: number): string[];
}

/** A run that grows beyond this is cut in two; two neighbours that together fill less than half are joined. */
const MAX_RUN = 512;

/** `sorted` must be in order and without duplicates; it is not kept. */
export function createSortedKeys(sorted: readonly string[] = []): SortedKeys {
  const runs: string[][] = [];
  for (let i = 0; i < sorted.length; i += MAX_RUN / 2) runs.push(sorted.slice(i, i + MAX_RUN / 2));
  let size = sorted.length;

  /** The run whose last key is the first not before; the last run when all are. */
  const runOf = (isBefore: (key: string) => boolean): number =>
    Math.max(
      0,
      Math.min(
        runs.length - 1,
        partition(runs, (run) => isBefore(run.at(-1) ?? '')),
      ),
    );

  return {
    get size() {
      return size;
    },
    insert(key) {
      size++;
      const at = runOf((other) => other < key);
      const run = runs[at];
      if (!run) {
        runs.push([key]);
        return;
      }
      run.splice(
        partition(run, (other) => other < key),
        0,
        key,
      );
      if (run.length > MAX_RUN) runs.splice(at + 1, 0, run.splice(MAX_RUN / 2));
    },
    remove(key) {
      const at = runOf((other) => other < key);
      const run = runs[at];
      const index = run ? partition(run, (other) => other < key) : 0;
      if (run?.[index] !== key) return;
      size--;
      run.splice(index, 1);
      const next = runs[at + 1];
      if (run.length === 0) runs.splice(at, 1);
      else if (next && run.length + next.length < MAX_RUN / 2) runs.splice(at, 2, [...run, ...next]);
    },
    rank(isBefore) {
      const at = runOf(isBefore);
      let rank = 0;
      for (let i = 0; i < at; i++) rank += runs[i]?.length ?? 0;
      return rank + partition(runs[at] ?? [], isBefore);
    },
    slice(from, to) {
      const keys: string[] = [];
      let start = from;
      for (const run of runs) {
        if (keys.length >= to - from) break;
        if (start < run.length) {
          const end = Math.min(run.length, start + to - from - keys.length);
          for (let i = start; i < end; i++) keys.push(run[i] as string);
          start = 0;
        } else {
          start -= run.length;
        }
      }
      return keys;
    },
  };
}

/** How many leading items satisfy `isBefore` (a binary search). */
function partition<Item>(items: readonly Item[], isBefore: (item: Item) => boolean): number {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isBefore(items[middle] as Item)) low = middle + 1;
    else high = middle;
  }
  return low;
}
