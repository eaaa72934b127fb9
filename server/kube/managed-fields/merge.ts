import { getMember, isJsonObject, type JsonObject, setMember } from '../json-value.ts';
import type { ListSchema, TypeSchema } from '../type-schema.ts';
import { itemElement } from './path-element.ts';
import { isEmptyContainer, shapeOf } from './walk.ts';

/**
 * The live object with what is applied laid over it: leaves replaced, maps and lists merged, applied items in the order
 * they are applied. Nothing is removed. Models Merge of structured-merge-diff/typed.
 */
export function mergeApplied(live: unknown, applied: unknown, type: TypeSchema): unknown {
  const shape = shapeOf(type, applied ?? live);
  const takesWhole = shape.kind === 'leaf' || (isEmptyContainer(live) && isEmptyContainer(applied));
  if (takesWhole) return applied === undefined ? live : applied;
  if (applied === undefined) return live;
  if (shape.kind === 'list') {
    return mergeItems(Array.isArray(live) ? live : [], Array.isArray(applied) ? applied : [], shape.list);
  }
  const left = isJsonObject(live) ? live : {};
  const right = isJsonObject(applied) ? applied : {};
  const merged: JsonObject = { ...left };
  for (const key of Object.keys(right)) {
    if (right[key] === undefined) continue;
    setMember(merged, key, mergeApplied(getMember(left, key), right[key], shape.memberType(key)));
  }
  return merged;
}

interface Item {
  readonly element: string;
  readonly value: unknown;
}

function index(list: ListSchema, items: readonly unknown[]): Item[] {
  return items.flatMap((value) => {
    const element = itemElement(list, value);
    return element === undefined ? [] : [{ element, value }];
  });
}

function mergeItems(live: readonly unknown[], applied: readonly unknown[], list: ListSchema): unknown[] {
  const left = index(list, live);
  const right = index(list, applied);
  const leftByElement = new Map<string, unknown>();
  // A repeated live item merges with nothing.
  for (const { element, value } of left)
    leftByElement.set(element, leftByElement.has(element) ? undefined : value);
  const rightElements = new Set(right.map(({ element }) => element));
  const shared = right.filter(({ element }) => leftByElement.has(element)).map(({ element }) => element);
  const merged: unknown[] = [];
  const done = new Set<string>();
  let nextShared = 0;
  let l = 0;
  let r = 0;
  while (l < left.length || r < right.length) {
    const liveItem = left[l];
    const appliedItem = right[r];
    if (liveItem && !rightElements.has(liveItem.element)) {
      merged.push(liveItem.value);
      l++;
      continue;
    }
    if (liveItem && appliedItem && liveItem.element !== appliedItem.element) {
      const wanted = shared[nextShared];
      if (wanted !== undefined && wanted !== liveItem.element) {
        l++;
        continue;
      }
      if (done.has(liveItem.element)) l++;
    } else if (liveItem && !appliedItem) l++;
    if (!appliedItem) continue;
    const { element, value } = appliedItem;
    merged.push(mergeApplied(leftByElement.get(element), value, list.items));
    done.add(element);
    if (liveItem?.element === element) l++;
    if (shared[nextShared] === element) nextShared++;
    r++;
  }
  return merged;
}
