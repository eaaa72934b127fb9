import { isJsonObject, type JsonObject } from '../json-value.ts';
import type { UnstructuredObject } from '../object.ts';
import type { TypeSchema } from '../type-schema.ts';
import { annotations as names } from '../well-known.ts';
import { compare } from './compare.ts';
import { difference, type FieldSet } from './field-set.ts';
import { escapeCharacter } from './path-element.ts';
import { toFieldSet } from './to-field-set.ts';

/** The one manager whose applies continue what `kubectl apply` did from the client's side. */
export const KUBECTL = 'kubectl';

const MAX_ANNOTATIONS_SIZE = 256 * 1024;

/**
 * The fields that client-side apply owns by its annotation and that are still as it left them: server-side apply by kubectl
 * may take these. Undefined without a usable annotation. Models lastAppliedManager of managedfields.
 */
export function ownedByLastApplied(live: UnstructuredObject, schema: TypeSchema): FieldSet | undefined {
  const text = live.metadata.annotations?.[names.lastApplied];
  const lastApplied = text ? parse(text) : undefined;
  if (!lastApplied || lastApplied['apiVersion'] !== live.apiVersion) return undefined;
  const { removed, modified, added } = compare(lastApplied, live, schema);
  return [modified, added, removed].reduce(difference, toFieldSet(lastApplied, schema));
}

function parse(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The object with its last-applied annotation, if it has one, brought up to what was applied now. Models
 * lastAppliedUpdater of managedfields.
 */
export function refreshLastApplied(
  object: UnstructuredObject,
  applied: UnstructuredObject,
): UnstructuredObject {
  const annotations = object.metadata.annotations;
  if (!annotations?.[names.lastApplied]) return object;
  const { [names.lastApplied]: _old, ...others } = annotations;
  const text = `${goJson(withoutAnnotation(applied))}\n`;
  const size = Object.entries(others).reduce((sum, [key, value]) => sum + key.length + value.length, 0);
  const fits = size + names.lastApplied.length + text.length <= MAX_ANNOTATIONS_SIZE;
  const next = fits ? { ...others, [names.lastApplied]: text } : others;
  return { ...object, metadata: { ...object.metadata, annotations: next } };
}

function withoutAnnotation(applied: UnstructuredObject): UnstructuredObject {
  const annotations = applied.metadata.annotations;
  if (!annotations || !(names.lastApplied in annotations)) return applied;
  const { [names.lastApplied]: _own, ...others } = annotations;
  const { annotations: _all, ...metadata } = applied.metadata;
  const kept = Object.keys(others).length ? { ...metadata, annotations: others } : metadata;
  return { ...applied, metadata: kept };
}

/** JSON as Go writes maps: members sorted, HTML characters escaped. */
function goJson(value: unknown): string {
  const text = JSON.stringify(value, (_key, member: unknown) => {
    if (!isJsonObject(member)) return member;
    return Object.fromEntries(
      Object.keys(member)
        .sort()
        .map((key) => [key, member[key]]),
    );
  });
  return text.replace(/[<>&\u2028\u2029]/g, escapeCharacter);
}
