import { getMember, isJsonObject, type JsonObject } from '../json-value.ts';
import type { ListSchema } from '../type-schema.ts';

/** The path element of a member of an object. */
export function fieldElement(name: string): string {
  return `f:${name}`;
}

/**
 * The path element of an item of a list that is a set or a map, or undefined when the item has none (a scalar where an
 * object must be, no key at all). Models listItemToPathElement of structured-merge-diff/typed.
 */
export function itemElement(list: ListSchema, item: unknown): string | undefined {
  if (list.listType === 'set') {
    return typeof item === 'object' || item === undefined ? undefined : `v:${encode(item)}`;
  }
  if (!isJsonObject(item)) return undefined;
  const keys = list.mapKeys;
  const [only] = keys;
  if (keys.length === 1 && only !== undefined) {
    const value = keyValue(list, item, only);
    return value === undefined ? undefined : `k:{${JSON.stringify(only)}:${encode(value)}}`;
  }
  const parts: string[] = [];
  for (const key of [...keys].sort()) {
    const value = keyValue(list, item, key);
    if (value !== undefined) parts.push(`${JSON.stringify(key)}:${encode(value)}`);
  }
  return parts.length ? `k:{${parts.join(',')}}` : undefined;
}

function keyValue(list: ListSchema, item: JsonObject, key: string): unknown {
  const value = getMember(item, key);
  if (value !== undefined || list.items.kind !== 'struct') return value;
  return list.items.fields.get(key)?.default;
}

/** JSON as Go writes it. */
function encode(value: unknown): string {
  const text = JSON.stringify(value);
  return /[<>&\u2028\u2029]/.test(text) ? text.replace(/[<>&\u2028\u2029]/g, escapeCharacter) : text;
}

export function escapeCharacter(character: string): string {
  return `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`;
}

/** A path for people: `.spec.containers[name="app"].image`. */
export function formatPath(path: readonly string[]): string {
  return path.map(formatElement).join('');
}

export function formatElement(element: string): string {
  const rest = element.slice(2);
  switch (element.charAt(0)) {
    case 'f':
      return `.${rest}`;
    case 'k':
      return `[${formatKeys(rest)}]`;
    case 'v':
      return `[=${rest}]`;
    default:
      return `[${rest}]`;
  }
}

function formatKeys(json: string): string {
  const keys: unknown = JSON.parse(json);
  if (!isJsonObject(keys)) return json;
  return Object.entries(keys)
    .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
    .join(',');
}
