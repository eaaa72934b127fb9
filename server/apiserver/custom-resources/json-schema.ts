import type { JsonSchema as StructuralSchema } from '#server/kube';

/**
 * Everything a CustomResourceDefinition's schema may carry (apiextensions.k8s.io/v1 JSONSchemaProps): what the shared
 * machinery reads, and the value validations only this room needs.
 */
export interface JsonSchema extends StructuralSchema {
  title?: string;
  example?: unknown;
  externalDocs?: unknown;
  properties?: Record<string, JsonSchema>;
  additionalProperties?: JsonSchema | boolean;
  items?: JsonSchema;
  minProperties?: number;
  maxProperties?: number;
  minItems?: number;
  maxItems?: number;
  uniqueItems?: boolean;
  exclusiveMinimum?: boolean;
  exclusiveMaximum?: boolean;
  multipleOf?: number;
  allOf?: JsonSchema[];
  anyOf?: JsonSchema[];
  oneOf?: JsonSchema[];
  not?: JsonSchema;
  'x-kubernetes-validations'?: unknown[];
}
