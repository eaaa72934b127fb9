import { isJsonObject, type JsonObject, setMember } from '../json-value.ts';
import type { TypeSchema } from '../type-schema.ts';
import { child, type FieldSet, hasElement, reachesBelow } from './field-set.ts';
import { fieldElement, itemElement } from './path-element.ts';
import { shapeOf } from './walk.ts';

/**
 * The value without the paths of the set; undefined when nothing is left of an object or a list (null where that
 * is inside another).
 * Models RemoveItems of structured-merge-diff/typed.
 */
export function removeItems(value: unknown, toRemove: FieldSet, type: TypeSchema): unknown {
  const shape = shapeOf(type, value);
  if (shape.kind === 'list') {
    if (!Array.isArray(value)) return undefined;
    const kept: unknown[] = [];
    for (const item of value) {
      const element = itemElement(shape.list, item);
      if (element === undefined) kept.push(item);
      else if (!hasElement(toRemove, element)) {
        const below = child(toRemove, element);
        kept.push(reachesBelow(below) ? (removeItems(item, below, shape.list.items) ?? null) : item);
      }
    }
    return kept.length ? kept : undefined;
  }
  if (shape.kind === 'leaf') return type.kind === 'scalar' || type.kind === 'any' ? value : undefined;
  return isJsonObject(value) ? removeMembers(value, toRemove, shape.memberType) : undefined;
}

function removeMembers(value: JsonObject, toRemove: FieldSet, typeOf: (key: string) => TypeSchema): unknown {
  const kept: JsonObject = {};
  let some = false;
  for (const key of Object.keys(value)) {
    const element = fieldElement(key);
    if (hasElement(toRemove, element)) continue;
    const below = child(toRemove, element);
    const member = reachesBelow(below) ? removeItems(value[key], below, typeOf(key)) : value[key];
    setMember(kept, key, member ?? null);
    some = true;
  }
  return some ? kept : undefined;
}
