import { deepEqual } from '../equality.ts';
import { isJsonObject, type JsonObject, setMember } from '../json-value.ts';
import type { UnstructuredObject } from '../object.ts';
import { badRequest } from '../status-error.ts';
import type { TypeSchema } from '../type-schema.ts';
import { applyConflict } from './conflicts.ts';
import {
  difference,
  type FieldSet,
  intersection,
  isEmpty,
  LEAF,
  recursiveDifference,
  union,
} from './field-set.ts';
import { KUBECTL, ownedByLastApplied, refreshLastApplied } from './last-applied.ts';
import {
  decodeManagers,
  encodeManagers,
  type Manager,
  type Managers,
  managerKey,
  setOwned,
  withoutManagedFields,
} from './managers.ts';
import { mergeApplied } from './merge.ts';
import { type Conflict, recordChange, takeOver } from './ownership.ts';
import { removeItems } from './remove-items.ts';
import { resetFields, withoutMeta } from './reset-fields.ts';
import { toFieldSet, withNamedFields } from './to-field-set.ts';
import { validateApplied } from './validate-applied.ts';
import { shapeOf } from './walk.ts';

/** A server-side apply. */
export interface ServerSideApplyOptions {
  /** The stored object; undefined when the apply creates it. */
  live: UnstructuredObject | undefined;
  /** The patch: what the manager wants, and nothing else. */
  applied: UnstructuredObject;
  manager: string;
  force: boolean;
  /** RFC 3339 with seconds. */
  time: string;
  subresource?: string;
  schema: TypeSchema;
}

const BEFORE_FIRST_APPLY = 'before-first-apply';

/**
 * The object after an apply, managedFields included, not yet defaulted: what is applied is laid over the live object, what
 * the manager applied before and nobody owns now is removed. When nothing changes the object is the live one with at most
 * its managedFields changed. Arguments are only read; the answer may share structure with them.
 * Throws StatusError 409 when others own what changes (unless `force`), 400 for a patch of another version or with
 * managedFields, 500 for a patch that does not fit the type, all in upstream's words.
 * Models FieldManager.Apply of k8s.io/apimachinery/pkg/util/managedfields and structured-merge-diff/merge.
 */
export function serverSideApply(options: ServerSideApplyOptions): UnstructuredObject {
  const { live, applied, manager, time, subresource, schema } = options;
  checkApplied(live, applied);
  validateApplied(applied, schema);
  const managers = decodeManagers(live?.metadata.managedFields) ?? new Map<string, Manager>();
  const before = live
    ? withoutManagedFields(live)
    : { apiVersion: applied.apiVersion, kind: applied.kind, metadata: {} };
  if (managers.size === 0 && live) {
    const { apiVersion } = live;
    const identity = {
      manager: BEFORE_FIRST_APPLY,
      operation: 'Update',
      apiVersion,
      subresource: subresource ?? '',
    } as const;
    recordChange(managers, { before: {}, after: before, schema, subresource }, identity, time);
  }
  const after = applyOver(managers, before, options);
  const unchanged = deepEqual(before, after);
  const key = managerKey(identityOf(options));
  const own = managers.get(key);
  if (own) {
    const kept = unchanged ? own.time : time;
    setOwned(managers, key, own, withoutMeta(own.set));
    const stripped = managers.get(key);
    if (stripped) managers.set(key, { ...stripped, time: kept });
  }
  const object = manager === KUBECTL ? refreshLastApplied(after, applied) : after;
  const entries = encodeManagers(managers);
  if (entries.length === 0) return object;
  return { ...object, metadata: { ...object.metadata, managedFields: entries } };
}

function checkApplied(live: UnstructuredObject | undefined, applied: UnstructuredObject): void {
  if (live && live.apiVersion !== applied.apiVersion) {
    throw badRequest(
      `Incorrect version specified in apply patch. Specified patch version: ${applied.apiVersion}, expected: ${live.apiVersion}`,
    );
  }
  const sent: unknown = applied.metadata.managedFields;
  if (sent !== undefined && sent !== null) throw badRequest('metadata.managedFields must be nil');
}

function identityOf(options: ServerSideApplyOptions): Omit<Manager, 'set' | 'time'> {
  return {
    manager: options.manager || 'unknown',
    operation: 'Apply',
    apiVersion: options.applied.apiVersion,
    subresource: options.subresource ?? '',
  };
}

/** Merges, prunes and moves ownership; the managers are changed. */
function applyOver(
  managers: Managers,
  before: JsonObject,
  options: ServerSideApplyOptions,
): UnstructuredObject {
  const { applied, manager, force, subresource, schema } = options;
  const identity = identityOf(options);
  const key = managerKey(identity);
  const last = managers.get(key);
  const set = recursiveDifference(toFieldSet(applied, schema), resetFields(schema, subresource));
  managers.set(key, { ...identity, time: last?.time, set });
  const merged = mergeApplied(before, applied, schema);
  const after = last ? prune(merged, last.set, managers, schema) : merged;
  const change = { before, after, schema, subresource, raw: true };
  const { conflicts } = takeOver(managers, change, key, force);
  if (conflicts.length) {
    const left =
      manager === KUBECTL ? withoutLastApplied(conflicts, before as UnstructuredObject, schema) : conflicts;
    if (left.length) throw applyConflict(left);
    takeOver(managers, change, key, true);
  }
  if (isEmpty(set)) managers.delete(key);
  return toObject(withoutNulls(after, schema));
}

function withoutLastApplied(conflicts: Conflict[], live: UnstructuredObject, schema: TypeSchema): Conflict[] {
  const allowed = ownedByLastApplied(live, schema);
  if (!allowed) return conflicts;
  return conflicts
    .map(({ manager, set }) => ({ manager, set: difference(set, allowed) }))
    .filter(({ set }) => !isEmpty(set));
}

/**
 * Removes what the manager applied last time and neither it nor anyone else owns now. Models Updater.prune: first all that
 * was owned last goes, then what someone owns comes back, then what only hung below it and was not owned last.
 */
function prune(merged: unknown, last: FieldSet, managers: Managers, schema: TypeSchema): unknown {
  if (isEmpty(last)) return merged;
  const named = (set: FieldSet): FieldSet => withNamedFields(set, schema);
  const setOf = (value: unknown): FieldSet => named(toFieldSet(value ?? {}, schema));
  const lastSet = named(last);
  const mergedSet = setOf(merged);
  const owned = [...managers.values()].reduce((all, { set }) => union(all, set), LEAF);
  const prunedSet = setOf(removeItems(merged, lastSet, schema));
  const unowned = difference(mergedSet, union(prunedSet, named(owned)));
  const restoredSet = setOf(removeItems(merged, unowned, schema));
  return removeItems(merged, intersection(difference(mergedSet, restoredSet), lastSet), schema);
}

/** A null in a struct is nothing; what has none is answered as it is. */
function withoutNulls(value: unknown, type: TypeSchema): unknown {
  const shape = shapeOf(type, value);
  if (shape.kind === 'leaf' || typeof value !== 'object' || value === null) return value;
  if (shape.kind === 'list') {
    if (!Array.isArray(value)) return value;
    const items = value.map((item) => withoutNulls(item, shape.list.items));
    return items.some((item, at) => item !== value[at]) ? items : value;
  }
  const before = value as JsonObject;
  const kept: JsonObject = {};
  let changed = false;
  for (const key of Object.keys(before)) {
    const member = before[key];
    if (member === null && shape.struct && !shape.struct.preserveUnknown) {
      changed = true;
      continue;
    }
    const inner = withoutNulls(member, shape.memberType(key));
    if (inner !== member) changed = true;
    setMember(kept, key, inner);
  }
  return changed ? kept : value;
}

function toObject(value: unknown): UnstructuredObject {
  return (isJsonObject(value) ? value : {}) as UnstructuredObject;
}
