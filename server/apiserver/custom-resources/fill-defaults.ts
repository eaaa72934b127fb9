import { cloneJson, isRecord, setMember } from '../json.ts';
import type { JsonSchema } from './json-schema.ts';

const DEEPEST = 200;

/**
 * Fills a schema's defaults into `value`, in place, and removes nulls where the schema has no place for them (there is
 * a default, or the field is not nullable). Models apiextensions-apiserver/pkg/apiserver/schema/defaulting.
 */
export function fillDefaults(value: unknown, schema: JsonSchema, depth = 0): void {
  if (depth > DEEPEST) return;
  if (Array.isArray(value)) {
    const { items } = schema;
    if (items) value.forEach((item) => fillDefaults(item, items, depth + 1));
    return;
  }
  if (!isRecord(value)) return;
  const { properties = {}, additionalProperties } = schema;
  for (const [name, property] of Object.entries(properties)) {
    if (property.default === undefined) continue;
    if (!Object.hasOwn(value, name) || (value[name] === null && !property.nullable))
      setMember(value, name, cloneJson(property.default));
  }
  for (const name of Object.keys(value)) {
    const known = Object.hasOwn(properties, name) ? properties[name] : undefined;
    const member = known ?? (typeof additionalProperties === 'object' ? additionalProperties : undefined);
    if (!member) continue;
    if (value[name] === null && !member.nullable && known) delete value[name];
    else fillDefaults(value[name], member, depth + 1);
  }
}
