import type { UnstructuredObject } from '../object.ts';
import type { TypeSchema } from '../type-schema.ts';
import type { ManagedFieldsEntry } from '../types.generated.ts';
import {
  capUpdaters,
  decodeManagers,
  encodeManagers,
  type Managers,
  withoutManagedFields,
} from './managers.ts';
import { recordChange } from './ownership.ts';

/** A write that is not an apply. */
export interface RecordUpdateOptions {
  /** The stored object; undefined for a create. */
  live: UnstructuredObject | undefined;
  /** The object about to be stored, defaulted. */
  next: UnstructuredObject;
  manager: string;
  /** RFC 3339 with seconds. */
  time: string;
  subresource?: string;
  schema: TypeSchema;
}

/**
 * The managedFields of an object after a create, update or patch. Fields that changed become the manager's alone, removed
 * fields are nobody's, and a write that changes nothing answers the entries as they were. Entries that the client sent
 * replace the stored ones; an empty list or one empty entry clears them; a subresource ignores them. An object that has
 * been stored without any keeps having none until it is applied. Empty means: leave the field out. Arguments are only read;
 * the answer may share structure with them.
 * Models FieldManager.Update of k8s.io/apimachinery/pkg/util/managedfields.
 */
export function recordUpdate(options: RecordUpdateOptions): ManagedFieldsEntry[] {
  const { live, next, manager, time, subresource, schema } = options;
  const managers = managersOf(live, next, subresource);
  if (managers.size === 0 && live !== undefined) return [];
  const { apiVersion } = next;
  const identity = {
    manager: manager || 'unknown',
    operation: 'Update',
    apiVersion,
    subresource: subresource ?? '',
  } as const;
  const before = live ? withoutManagedFields(live) : NOTHING;
  recordChange(managers, { before, after: withoutManagedFields(next), schema, subresource }, identity, time);
  capUpdaters(managers);
  return encodeManagers(managers);
}

const NOTHING = Object.freeze({});

function managersOf(
  live: UnstructuredObject | undefined,
  next: UnstructuredObject,
  subresource: string | undefined,
): Managers {
  const stored = live?.metadata.managedFields;
  const sent = next.metadata.managedFields;
  if (!subresource) {
    if (isReset(sent)) return new Map();
    const managers = decodeManagers(sent);
    if (managers && managers.size > 0) return managers;
  }
  return decodeManagers(stored) ?? new Map<string, never>();
}

/** `[]` and `[{}]` ask for a clean slate. */
function isReset(entries: readonly ManagedFieldsEntry[] | null | undefined): boolean {
  if (!entries) return false;
  const [first] = entries;
  return (
    entries.length === 0 || (entries.length === 1 && first !== undefined && Object.keys(first).length === 0)
  );
}
