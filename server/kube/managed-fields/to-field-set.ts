import { isJsonObject } from '../json-value.ts';
import type { ListSchema, TypeSchema } from '../type-schema.ts';
import { asMember, type FieldSet, isEmpty, LEAF } from './field-set.ts';
import { fieldElement, itemElement } from './path-element.ts';
import { type Shape, shapeOf } from './walk.ts';

const MAX_DEPTH = 200;

/**
 * The paths that whoever writes this object says something about: every leaf, every list item, every entry of a map, and
 * empty maps. Models ToFieldSet of structured-merge-diff/typed.
 */
export function toFieldSet(object: unknown, type: TypeSchema): FieldSet {
  return setOf(object, type, 0) ?? LEAF;
}

/** The node of a value; undefined when neither it nor anything below counts. */
function setOf(value: unknown, type: TypeSchema, depth: number): FieldSet | undefined {
  const shape = shapeOf(type, value);
  if (shape.kind === 'leaf' || depth > MAX_DEPTH) return LEAF;
  if (shape.kind === 'list') return Array.isArray(value) ? itemsOf(value, shape.list, depth) : undefined;
  return isJsonObject(value) ? membersOf(value, shape, depth) : undefined;
}

function membersOf(
  value: Record<string, unknown>,
  shape: Shape & { kind: 'map' },
  depth: number,
): FieldSet | undefined {
  const set: Record<string, FieldSet> = {};
  for (const key of Object.keys(value)) {
    const member = value[key];
    if (member === undefined) continue;
    const below = setOf(member, shape.memberType(key), depth + 1);
    const counts =
      member === null ||
      (isJsonObject(member) && isEmpty(member as FieldSet)) ||
      !shape.struct?.fields.has(key);
    if (counts) set[fieldElement(key)] = asMember(below ?? LEAF);
    else if (below) set[fieldElement(key)] = below;
  }
  return isEmpty(set) ? undefined : set;
}

function itemsOf(items: readonly unknown[], list: ListSchema, depth: number): FieldSet | undefined {
  const set: Record<string, FieldSet> = {};
  for (const item of items) {
    const element = itemElement(list, item);
    if (element === undefined) continue;
    set[element] = element in set ? LEAF : asMember(setOf(item, list.items, depth + 1) ?? LEAF);
  }
  return isEmpty(set) ? undefined : set;
}

/** The set with every named field on the way to a path added. Models EnsureNamedFieldsAreMembers of fieldpath. */
export function withNamedFields(set: FieldSet, type: TypeSchema | undefined): FieldSet {
  const result: Record<string, FieldSet> = {};
  for (const element of Object.keys(set)) {
    const node = set[element] ?? LEAF;
    if (element === '.' || isEmpty(node)) {
      result[element] = node;
      continue;
    }
    const { type: below, named } = descend(type, element);
    const inner = withNamedFields(node, below);
    result[element] = named ? asMember(inner) : inner;
  }
  return result;
}

function descend(
  type: TypeSchema | undefined,
  element: string,
): { type: TypeSchema | undefined; named: boolean } {
  if (element.startsWith('f:')) {
    const name = element.slice(2);
    if (type?.kind === 'struct') return { type: type.fields.get(name)?.type, named: type.fields.has(name) };
    return { type: type?.kind === 'map' ? type.values : undefined, named: false };
  }
  return { type: type?.kind === 'list' ? type.items : undefined, named: false };
}
