import { goFormat } from './go-format.ts';
import { getMember, isJsonObject, type JsonObject } from './json-value.ts';
import { StatusError } from './status-error.ts';

/** The list without repetitions, the first of each kept. */
export function deduplicate(list: readonly unknown[]): unknown[] {
  return [...new Set(list)];
}

/** Whether two items are the same one: by the merge key, or by value in lists of scalars. */
export function samePartition(a: unknown, b: unknown, mergeKey: string | undefined): boolean {
  return identity(a, mergeKey) === identity(b, mergeKey);
}

function identity(item: unknown, mergeKey: string | undefined): unknown {
  return mergeKey && isJsonObject(item) ? getMember(item, mergeKey) : item;
}

/**
 * Orders a merged list: items named in `order` follow it, the others keep the order of the live list, and both are woven
 * together so that an unnamed item stays before the named ones that the live list has after it.
 * Models normalizeElementOrder of strategicpatch.
 */
export function mergeInOrder(
  merged: readonly unknown[],
  order: readonly unknown[],
  live: readonly unknown[],
  mergeKey: string | undefined,
): unknown[] {
  const place = indexBy(order, mergeKey);
  const livePlace = indexBy(live, mergeKey);
  const placeOf = (index: ReadonlyMap<unknown, number>, item: unknown): number =>
    index.get(identity(item, mergeKey)) ?? -1;
  const named = merged.filter((item) => placeOf(place, item) >= 0);
  const others = merged.filter((item) => placeOf(place, item) < 0);
  named.sort((a, b) => placeOf(place, a) - placeOf(place, b));
  others.sort((a, b) => placeOf(livePlace, a) - placeOf(livePlace, b));

  const result: unknown[] = [];
  let next = 0;
  for (const item of named) {
    const at = placeOf(livePlace, item);
    while (next < others.length) {
      const other = placeOf(livePlace, others[next]);
      if (at < 0 || other < 0 || other >= at) break;
      result.push(others[next]);
      next++;
    }
    result.push(item);
  }
  return [...result, ...others.slice(next)];
}

function indexBy(list: readonly unknown[], mergeKey: string | undefined): Map<unknown, number> {
  const index = new Map<unknown, number>();
  list.forEach((item, at) => {
    const key = identity(item, mergeKey);
    if (!index.has(key)) index.set(key, at);
  });
  return index;
}

/**
 * Carries out the `$patch` directives among the items of a list patch: what is left of the live list, and the items to
 * merge into it. Throws StatusError 500 in upstream's words.
 */
export function extractSpecialElements(
  live: readonly JsonObject[],
  patch: readonly JsonObject[],
  mergeKey: string,
): { kept: JsonObject[]; changes: JsonObject[] } {
  let kept = [...live];
  let replaces = false;
  const changes: JsonObject[] = [];
  for (const item of patch) {
    const directive = getMember(item, '$patch');
    if (directive === undefined) changes.push(item);
    else if (directive === 'replace') replaces = true;
    else if (directive === 'delete') {
      if (!Object.hasOwn(item, mergeKey)) {
        throw refuse(`map: ${goFormat(item)} does not contain declared merge key: ${mergeKey}`);
      }
      kept = kept.filter((existing) => getMember(existing, mergeKey) !== item[mergeKey]);
    } else if (directive === 'merge') throw refuse('merging lists cannot yet be specified in the patch');
    else throw refuse(`unknown patch type: ${goFormat(directive)} in map: ${goFormat(item)}`);
  }
  return replaces ? { kept: changes, changes: [] } : { kept, changes };
}

function refuse(message: string): StatusError {
  return new StatusError({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    code: 500,
  });
}
