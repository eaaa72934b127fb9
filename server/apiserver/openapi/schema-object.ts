/** An OpenAPI v3 schema object with Kubernetes' extensions, as far as these documents use them. */
export interface SchemaObject {
  $ref?: string;
  allOf?: SchemaObject[];
  oneOf?: SchemaObject[];
  type?: string;
  format?: string;
  description?: string;
  default?: unknown;
  enum?: readonly unknown[];
  items?: SchemaObject;
  properties?: Record<string, SchemaObject>;
  additionalProperties?: SchemaObject | boolean;
  required?: string[];
  [extension: `x-kubernetes-${string}`]: unknown;
}

export interface GroupVersionKind {
  group: string;
  kind: string;
  version: string;
}

export function refTo(component: string): SchemaObject {
  return { $ref: `#/components/schemas/${component}` };
}
