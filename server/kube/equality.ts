/**
 * Whether two JSON values are the same. Members that are `undefined` count as absent; key order does not matter,
 * list order does. Never throws; both sides may share structure.
 */
export function deepEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a)) {
    if (!Array.isArray(b) || a.length !== b.length) return false;
    for (let i = 0; i < a.length; i++) if (!deepEqual(a[i], b[i])) return false;
    return true;
  }
  if (Array.isArray(b)) return false;
  return sameMembers(a as Record<string, unknown>, b as Record<string, unknown>);
}

function sameMembers(a: Record<string, unknown>, b: Record<string, unknown>): boolean {
  let present = 0;
  for (const key of Object.keys(a)) {
    const value = a[key];
    if (value === undefined) continue;
    if (!Object.hasOwn(b, key) || !deepEqual(value, b[key])) return false;
    present++;
  }
  for (const key of Object.keys(b)) if (b[key] !== undefined) present--;
  return present === 0;
}
