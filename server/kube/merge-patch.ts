import { getMember, isJsonObject, type JsonObject, setMember } from './json-value.ts';
import { badRequest } from './status-error.ts';

/**
 * Applies an RFC 7396 merge patch; the result may share structure with both arguments. Throws StatusError 400 when the
 * patch is neither an object nor a list. Models MergePatch of gopkg.in/evanphx/json-patch.v4.
 */
export function applyMergePatch(document: unknown, patch: unknown): unknown {
  if (Array.isArray(patch)) return withoutNulls(patch);
  if (!isJsonObject(patch)) throw badRequest('Invalid JSON Patch');
  return isJsonObject(document) ? mergeObjects(document, patch) : withoutNulls(patch);
}

function mergeObjects(document: JsonObject, patch: JsonObject): JsonObject {
  const merged = { ...document };
  for (const key of Object.keys(patch)) {
    const value = patch[key];
    if (value === undefined) continue;
    if (value === null) delete merged[key];
    else setMember(merged, key, mergeValues(getMember(document, key), value));
  }
  return merged;
}

function mergeValues(current: unknown, patch: unknown): unknown {
  if (!isJsonObject(current)) return withoutNulls(patch);
  return isJsonObject(patch) ? mergeObjects(current, patch) : patch;
}

/** Drops null members, also of objects in lists; null list elements stay. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isJsonObject(value)) return value;
  const kept: JsonObject = {};
  for (const key of Object.keys(value)) {
    const member = value[key];
    if (member !== null && member !== undefined) setMember(kept, key, withoutNulls(member));
  }
  return kept;
}
