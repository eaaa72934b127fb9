/** The alphabet of generated names: no vowels, so no word is ever formed. */
const SAFE = 'bcdfghjklmnpqrstvwxz2456789';

function fnv32a(bytes: Uint8Array): number {
  let hash = 0x811c9dc5;
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash;
}

/** JSON with the members of objects in order of their names: equal values give equal texts. */
function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  members.sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(members.map(([name, member]) => [name, canonical(member)]));
}

/**
 * A short name for a pod template: `pod-template-hash` and `controller-revision-hash`. `collisionCount` gives another
 * name to the same template when the first is taken. Differs from upstream's value (which hashes Go's rendering of the
 * struct), not from its alphabet and length. Models kubernetes/pkg/controller ComputeHash and util/rand SafeEncodeString.
 */
export function hashTemplate(template: unknown, collisionCount?: number): string {
  const text = JSON.stringify(canonical(template));
  const bytes = Buffer.from(collisionCount === undefined ? text : `${text}${collisionCount}`);
  return Array.from(String(fnv32a(bytes)), (digit) => SAFE[digit.charCodeAt(0) % SAFE.length]).join('');
}
