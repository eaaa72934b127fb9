import { isJsonObject } from './json-value.ts';

/** A JSON value as Go's `%v` prints it: some of upstream's error texts contain one. */
export function goFormat(value: unknown): string {
  if (value === null || value === undefined) return '<nil>';
  if (Array.isArray(value)) return `[${value.map(goFormat).join(' ')}]`;
  if (isJsonObject(value)) {
    const members = Object.keys(value)
      .sort()
      .map((key) => `${key}:${goFormat(value[key])}`);
    return `map[${members.join(' ')}]`;
  }
  return typeof value === 'string' ? value : JSON.stringify(value);
}
