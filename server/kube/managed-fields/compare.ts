import { deepEqual } from '../equality.ts';
import { getMember, isJsonObject, type JsonObject } from '../json-value.ts';
import type { ListSchema, TypeSchema } from '../type-schema.ts';
import { asMember, type FieldSet, LEAF } from './field-set.ts';
import { fieldElement, itemElement } from './path-element.ts';
import { alwaysPresent, goValue, goWhole, isBuiltin, isEmptyContainer, type Shape, shapeOf } from './walk.ts';

/** What a change did, as sets of paths; none of them share a path. */
export interface Comparison {
  readonly removed: FieldSet;
  readonly modified: FieldSet;
  readonly added: FieldSet;
}

type Part = 'removed' | 'modified' | 'added';
const PARTS: readonly Part[] = ['removed', 'modified', 'added'];

/** Changes at or below one node. */
type Changes = { [part in Part]?: Record<string, FieldSet> | FieldSet };

const MAX_DEPTH = 200;

interface Walk {
  readonly raw: boolean;
  readonly depth: number;
}

function below(walk: Walk): Walk {
  return { raw: walk.raw, depth: walk.depth + 1 };
}

/**
 * Compares two objects of one type field by field, on values that are present by Go's rules for built-in types; with `raw`,
 * those of `after` are as they are (it holds what a client applies). Models Compare of structured-merge-diff/typed.
 */
export function compare(before: unknown, after: unknown, type: TypeSchema, raw = false): Comparison {
  const changes = compareNodes(before, after, type, { raw, depth: 0 });
  return {
    removed: changes?.removed ?? LEAF,
    modified: changes?.modified ?? LEAF,
    added: changes?.added ?? LEAF,
  };
}

function compareNodes(before: unknown, after: unknown, type: TypeSchema, walk: Walk): Changes | undefined {
  if (before === after) return undefined;
  const shape = shapeOf(type, after ?? before);
  if (
    shape.kind === 'leaf' ||
    walk.depth > MAX_DEPTH ||
    (isEmptyContainer(before) && isEmptyContainer(after))
  ) {
    return compareLeaves(before, after, type, walk.raw);
  }
  const changes: Changes = {};
  if (shape.kind === 'list') compareLists(changes, shape.list, before, after, below(walk));
  else if (!isMapOrNothing(before) || !isMapOrNothing(after))
    return compareLeaves(before, after, type, walk.raw);
  else compareMaps(changes, shape, before ?? undefined, after ?? undefined, below(walk));
  if (before === undefined) changes.added = asMember(changes.added ?? LEAF);
  else if (after === undefined) changes.removed = asMember(changes.removed ?? LEAF);
  return changes;
}

const EMPTY: JsonObject = Object.freeze({});

function isMapOrNothing(value: unknown): value is JsonObject | undefined | null {
  return value === undefined || value === null || isJsonObject(value);
}

function compareLeaves(before: unknown, after: unknown, type: TypeSchema, raw: boolean): Changes | undefined {
  if (before === undefined) return { added: LEAF };
  if (after === undefined) return { removed: LEAF };
  if (deepEqual(before, after)) return undefined;
  if (type.kind !== 'scalar' && deepEqual(goWhole(before, type), raw ? after : goWhole(after, type)))
    return undefined;
  return { modified: LEAF };
}

function record(into: Changes, element: string, changes: Changes | undefined): void {
  if (!changes) return;
  for (const part of PARTS) {
    const set = changes[part];
    if (set) ((into[part] ??= {}) as Record<string, FieldSet>)[element] = set;
  }
}

function compareMaps(
  into: Changes,
  shape: Shape & { kind: 'map' },
  before: JsonObject | undefined,
  after: JsonObject | undefined,
  walk: Walk,
): void {
  const builtin = isBuiltin(shape.struct) ? shape.struct : undefined;
  const visit = (key: string): void => {
    const field = builtin?.fields.get(key);
    if (builtin && !field) return;
    const left = before && goValue(field, getMember(before, key));
    const right = after && (walk.raw ? getMember(after, key) : goValue(field, getMember(after, key)));
    if (left === right) return;
    record(into, fieldElement(key), compareNodes(left, right, shape.memberType(key), walk));
  };
  for (const key in after) if (before?.[key] !== after[key]) visit(key);
  for (const key in before) if (!after || !Object.hasOwn(after, key)) visit(key);
  if (!builtin || (before && after) || (!before && walk.raw)) return;
  const present = before ?? after ?? EMPTY;
  for (const key of alwaysPresent(builtin)) if (!Object.hasOwn(present, key)) visit(key);
}

function compareLists(into: Changes, list: ListSchema, before: unknown, after: unknown, walk: Walk): void {
  const left = indexItems(list, before);
  const right = indexItems(list, after);
  for (const [element, items] of right) compareItems(into, list, element, left.get(element), items, walk);
  for (const [element, items] of left) {
    if (!right.has(element)) compareItems(into, list, element, items, undefined, walk);
  }
}

/** Items by path element; upstream tolerates repeated ones in what is stored. */
function indexItems(list: ListSchema, value: unknown): Map<string, unknown[]> {
  const items = new Map<string, unknown[]>();
  if (!Array.isArray(value)) return items;
  for (const item of value) {
    const element = itemElement(list, item);
    if (element === undefined) continue;
    const known = items.get(element);
    if (known) known.push(item);
    else items.set(element, [item]);
  }
  return items;
}

function compareItems(
  into: Changes,
  list: ListSchema,
  element: string,
  before: readonly unknown[] = [],
  after: readonly unknown[] = [],
  walk: Walk,
): void {
  if (before.length <= 1 && after.length <= 1) {
    record(into, element, compareNodes(before[0], after[0], list.items, walk));
  } else if (before.length > 1 && after.length > 1) {
    if (!deepEqual(before, after)) record(into, element, { modified: LEAF });
  } else if (before.length > 1) {
    if (after.length) record(into, element, compareNodes(undefined, after[0], list.items, walk));
    record(into, element, { removed: LEAF });
  } else {
    if (before.length) record(into, element, compareNodes(before[0], undefined, list.items, walk));
    record(into, element, { added: LEAF });
  }
}
