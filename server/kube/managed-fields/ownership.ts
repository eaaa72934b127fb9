import type { TypeSchema } from '../type-schema.ts';
import { type Comparison, compare } from './compare.ts';
import {
  difference,
  type FieldSet,
  intersection,
  isEmpty,
  LEAF,
  recursiveDifference,
  union,
} from './field-set.ts';
import { type Manager, type Managers, managerKey, setOwned } from './managers.ts';
import { resetFields, withoutMeta, withoutReset } from './reset-fields.ts';

/** A change of an object, and where it came in. */
export interface Change {
  readonly before: unknown;
  readonly after: unknown;
  readonly schema: TypeSchema;
  readonly subresource: string | undefined;
  /** `after` holds what a client applies: see compare. */
  readonly raw?: boolean;
}

/** Fields that someone else owns and this change would take. */
export interface Conflict {
  readonly manager: Manager;
  readonly set: FieldSet;
}

/**
 * Takes changed fields from every other manager and removed fields from all. Without `force`, nothing is taken when
 * something would be: the conflicts are answered instead. Models Updater.update of structured-merge-diff/merge.
 */
export function takeOver(
  managers: Managers,
  change: Change,
  self: string | undefined,
  force: boolean,
): { comparison: Comparison; conflicts: Conflict[] } {
  const reset = resetFields(change.schema, change.subresource);
  const comparison = withoutReset(compare(change.before, change.after, change.schema, change.raw), reset);
  const changed = union(comparison.modified, comparison.added);
  const others = [...managers].filter(([key]) => key !== self);
  if (!force) {
    const conflicts = others
      .map(([, manager]) => ({ manager, set: intersection(manager.set, changed) }))
      .filter(({ set }) => !isEmpty(set));
    if (conflicts.length) return { comparison, conflicts };
  }
  for (const [key, manager] of others) {
    setOwned(managers, key, manager, difference(difference(manager.set, changed), comparison.removed));
  }
  return { comparison, conflicts: [] };
}

/** Gives a manager that updates what it changed, with the time of the change. Models Updater.Update and its managers. */
export function recordChange(
  managers: Managers,
  change: Change,
  identity: Omit<Manager, 'set' | 'time'>,
  time: string,
): void {
  const { comparison } = takeOver(managers, change, undefined, true);
  const changed = union(comparison.modified, comparison.added);
  const own = withoutMeta(recursiveDifference(changed, resetFields(change.schema, change.subresource)));
  if (isEmpty(own)) return;
  const key = managerKey(identity);
  managers.set(key, { ...identity, time, set: union(managers.get(key)?.set ?? LEAF, own) });
}
