import { formatTime, type UnstructuredObject } from '../object.ts';
import type { ManagedFieldsEntry } from '../types.generated.ts';
import { type FieldSet, isEmpty, isFieldSet, LEAF, sorted, union } from './field-set.ts';

/** What one manager owns, decoded from one entry of managedFields. */
export interface Manager {
  readonly manager: string;
  readonly operation: 'Apply' | 'Update';
  readonly apiVersion: string;
  readonly subresource: string;
  readonly time: string | undefined;
  readonly set: FieldSet;
}

/** Managers by identity. Ours to change; the managers themselves are not. */
export type Managers = Map<string, Manager>;

const MAX_UPDATE_MANAGERS = 10;
const ANCIENT_CHANGES = 'ancient-changes';

/** Who a manager is: applying is the same whatever the version, updating is not. */
export function managerKey(
  manager: Pick<Manager, 'manager' | 'operation' | 'apiVersion' | 'subresource'>,
): string {
  const { operation, apiVersion, subresource } = manager;
  return JSON.stringify([manager.manager, operation, operation === 'Apply' ? '' : apiVersion, subresource]);
}

/** Decoded entries of stored objects, which are frozen; writers get a copy. */
const decoded = new WeakMap<readonly ManagedFieldsEntry[], Managers>();
/** The entry a manager was decoded from or encoded to: most managers of an object are as they were before a write. */
const entryOf = new WeakMap<Manager, ManagedFieldsEntry>();

/** The managers of an object, or undefined when the entries make no sense. Models DecodeManagedFields. */
export function decodeManagers(entries: readonly ManagedFieldsEntry[] | undefined): Managers | undefined {
  if (!entries) return new Map();
  const before = decoded.get(entries);
  if (before) return new Map(before);
  const managers = decodeEntries(entries);
  if (!managers || !Object.isFrozen(entries)) return managers;
  decoded.set(entries, managers);
  return new Map(managers);
}

function decodeEntries(entries: readonly ManagedFieldsEntry[]): Managers | undefined {
  const managers: Managers = new Map();
  for (const entry of entries) {
    const { operation, apiVersion, fieldsType, fieldsV1, subresource, time } = entry;
    if ((operation !== 'Apply' && operation !== 'Update') || !apiVersion || fieldsType !== 'FieldsV1')
      return undefined;
    const set: unknown = fieldsV1 ?? LEAF;
    if (!isKnownSet(set)) return undefined;
    const manager: Manager = {
      manager: entry.manager ?? '',
      operation,
      apiVersion,
      subresource: subresource ?? '',
      time: time ?? undefined,
      set,
    };
    if (inOrder.has(set) && Object.isFrozen(entry)) entryOf.set(manager, entry);
    managers.set(managerKey(manager), manager);
  }
  return managers;
}

/** Checked to have the form of a set. */
const known = new WeakSet<object>();
/** Checked to be sorted, all the way down. */
const inOrder = new WeakSet<object>();

function isKnownSet(set: unknown): set is FieldSet {
  if (typeof set !== 'object' || set === null) return false;
  if (known.has(set)) return true;
  if (!isFieldSet(set)) return false;
  known.add(set);
  return true;
}

/** The managers as entries of managedFields, sorted as upstream sorts them; none for an empty set. */
export function encodeManagers(managers: Managers): ManagedFieldsEntry[] {
  return [...managers.values()].sort(compareManagers).map((manager) => {
    const before = entryOf.get(manager);
    if (before) return before;
    const set = inOrder.has(manager.set) ? manager.set : sorted(manager.set);
    known.add(set);
    inOrder.add(set);
    return {
      ...(manager.manager ? { manager: manager.manager } : {}),
      operation: manager.operation,
      apiVersion: manager.apiVersion,
      ...(manager.time === undefined ? {} : { time: manager.time }),
      fieldsType: 'FieldsV1',
      fieldsV1: set,
      ...(manager.subresource ? { subresource: manager.subresource } : {}),
    };
  });
}

function compareManagers(a: Manager, b: Manager): number {
  return (
    compareText(a.operation, b.operation) ||
    compareTimes(a, b) ||
    compareText(a.manager, b.manager) ||
    compareText(a.apiVersion, b.apiVersion) ||
    compareText(a.subresource, b.subresource)
  );
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Times are written by us in one form, so text order is time order; no time is the oldest. */
function compareTimes(a: Manager, b: Manager): number {
  return compareText(normalTime(a.time), normalTime(b.time));
}

function normalTime(time: string | undefined): string {
  if (time === undefined || time.endsWith('Z')) return time ?? '';
  const milliseconds = Date.parse(time);
  return Number.isNaN(milliseconds) ? '' : formatTime(milliseconds);
}

/** The object as it is compared: without its managedFields. */
export function withoutManagedFields(object: UnstructuredObject): UnstructuredObject {
  const { managedFields: _entries, ...metadata } = object.metadata;
  return { ...object, metadata };
}

/** Replaces what a manager owns; a manager of nothing is dropped. */
export function setOwned(managers: Managers, key: string, manager: Manager, set: FieldSet): void {
  if (isEmpty(set)) managers.delete(key);
  else if (set !== manager.set || !managers.has(key)) managers.set(key, { ...manager, set });
}

/**
 * Melts the oldest updaters together until there are at most ten, into one entry for each apiVersion.
 * Models capManagersManager.
 */
export function capUpdaters(managers: Managers): void {
  const updaters = [...managers].filter(([, manager]) => manager.operation === 'Update');
  if (updaters.length <= MAX_UPDATE_MANAGERS) return;
  updaters.sort(([a, left], [b, right]) => compareTimes(left, right) || compareText(a, b));
  let count = updaters.length;
  const firstOf = new Map<string, string>();
  for (const [key, manager] of updaters) {
    if (count <= MAX_UPDATE_MANAGERS) return;
    const { apiVersion } = manager;
    const first = firstOf.get(apiVersion);
    if (first === undefined) {
      firstOf.set(apiVersion, key);
      continue;
    }
    const identity = { manager: ANCIENT_CHANGES, operation: 'Update', apiVersion, subresource: '' } as const;
    const bucketKey = managerKey(identity);
    const bucket = managers.get(bucketKey) ?? managers.get(first);
    if (!managers.has(bucketKey)) managers.delete(first);
    managers.delete(key);
    managers.set(bucketKey, {
      ...identity,
      time: manager.time,
      set: union(manager.set, bucket?.set ?? LEAF),
    });
    count--;
  }
}
