import type { JsonSchema } from '../custom-resources/json-schema.ts';
import { addBuiltinComponents, componentName } from './builtin-components.ts';
import { describeType } from './descriptions.ts';
import { refTo, type SchemaObject } from './schema-object.ts';

const OBJECT_META = 'meta/v1#ObjectMeta';

/** `example.com`, `v1`, `Widget` → `com.example.v1.Widget`. */
export function customComponentName(group: string, version: string, kind: string): string {
  return `${group.split('.').reverse().join('.')}.${version}.${kind}`;
}

/** apiVersion, kind and metadata as every object has them. */
export function objectFields(components: Record<string, SchemaObject>): Record<string, SchemaObject> {
  addBuiltinComponents(OBJECT_META, components);
  const { fields } = describeType('core/v1#Pod');
  return {
    apiVersion: { type: 'string', ...described(fields.get('apiVersion')) },
    kind: { type: 'string', ...described(fields.get('kind')) },
    metadata: {
      allOf: [refTo(componentName(OBJECT_META))],
      default: {},
      description: 'Standard object metadata.',
    },
  };
}

function described(description: string | undefined): { description?: string } {
  return description ? { description } : {};
}

/** A structural schema is an OpenAPI schema as it stands. */
function asPublished(schema: object): SchemaObject {
  return schema as SchemaObject;
}

/**
 * Adds the schema of a custom resource, its own fields as the definition words them. Models
 * apiextensions-apiserver/pkg/controller/openapi/builder.
 */
export function addCustomComponent(
  name: string,
  schema: JsonSchema,
  components: Record<string, SchemaObject>,
): void {
  components[name] = {
    ...asPublished({ type: 'object', ...schema }),
    properties: { ...asPublished(schema).properties, ...objectFields(components) },
  };
}
