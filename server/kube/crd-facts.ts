import type { TypeFacts } from './api-facts.ts';

/**
 * The fields of apiextensions.k8s.io/v1, which the generated facts leave out. Members of a schema that may be of several
 * types (`items`, `additionalProperties`) are `any`; they cannot be read from protobuf.
 */
export const crdFacts: Readonly<Record<string, TypeFacts>> = {
  'apiextensions/v1#CustomResourceDefinition': {
    metadata: { n: 1, t: 'meta/v1#ObjectMeta', o: 1 },
    spec: { n: 2, t: 'apiextensions/v1#CustomResourceDefinitionSpec', r: 1 },
    status: { n: 3, t: 'apiextensions/v1#CustomResourceDefinitionStatus', o: 1 },
  },
  'apiextensions/v1#CustomResourceDefinitionSpec': {
    group: { n: 1, t: 'string', r: 1 },
    names: { n: 3, t: 'apiextensions/v1#CustomResourceDefinitionNames', r: 1 },
    scope: { n: 4, t: 'string', r: 1 },
    versions: { n: 7, t: '[]apiextensions/v1#CustomResourceDefinitionVersion', r: 1, l: 'atomic' },
    conversion: { n: 9, t: 'apiextensions/v1#CustomResourceConversion', p: 1, o: 1 },
    preserveUnknownFields: { n: 10, t: 'boolean', o: 1 },
  },
  'apiextensions/v1#CustomResourceConversion': {
    strategy: { n: 1, t: 'string', r: 1 },
    webhook: { n: 2, t: 'apiextensions/v1#WebhookConversion', p: 1, o: 1 },
  },
  'apiextensions/v1#WebhookConversion': {
    clientConfig: { n: 2, t: 'apiextensions/v1#WebhookClientConfig', p: 1, o: 1 },
    conversionReviewVersions: { n: 3, t: '[]string', r: 1, l: 'atomic' },
  },
  'apiextensions/v1#ServiceReference': {
    namespace: { n: 1, t: 'string', r: 1 },
    name: { n: 2, t: 'string', r: 1 },
    path: { n: 3, t: 'string', p: 1, o: 1 },
    port: { n: 4, t: 'int32', p: 1, o: 1 },
  },
  'apiextensions/v1#WebhookClientConfig': {
    url: { n: 3, t: 'string', p: 1, o: 1 },
    service: { n: 1, t: 'apiextensions/v1#ServiceReference', p: 1, o: 1 },
    caBundle: { n: 2, t: 'bytes', o: 1 },
  },
  'apiextensions/v1#CustomResourceDefinitionVersion': {
    name: { n: 1, t: 'string', r: 1 },
    served: { n: 2, t: 'boolean', r: 1 },
    storage: { n: 3, t: 'boolean', r: 1 },
    deprecated: { n: 7, t: 'boolean', o: 1 },
    deprecationWarning: { n: 8, t: 'string', p: 1, o: 1 },
    schema: { n: 4, t: 'apiextensions/v1#CustomResourceValidation', p: 1, o: 1 },
    subresources: { n: 5, t: 'apiextensions/v1#CustomResourceSubresources', p: 1, o: 1 },
    additionalPrinterColumns: {
      n: 6,
      t: '[]apiextensions/v1#CustomResourceColumnDefinition',
      o: 1,
      l: 'atomic',
    },
    selectableFields: { n: 9, t: '[]apiextensions/v1#SelectableField', o: 1, l: 'atomic' },
  },
  'apiextensions/v1#SelectableField': {
    jsonPath: { n: 1, t: 'string', r: 1 },
  },
  'apiextensions/v1#CustomResourceColumnDefinition': {
    name: { n: 1, t: 'string', r: 1 },
    type: { n: 2, t: 'string', r: 1 },
    format: { n: 3, t: 'string', o: 1 },
    description: { n: 4, t: 'string', o: 1 },
    priority: { n: 5, t: 'int32', o: 1 },
    jsonPath: { n: 6, t: 'string', r: 1 },
  },
  'apiextensions/v1#CustomResourceDefinitionNames': {
    plural: { n: 1, t: 'string', r: 1 },
    singular: { n: 2, t: 'string', o: 1 },
    shortNames: { n: 3, t: '[]string', o: 1, l: 'atomic' },
    kind: { n: 4, t: 'string', r: 1 },
    listKind: { n: 5, t: 'string', o: 1 },
    categories: { n: 6, t: '[]string', o: 1, l: 'atomic' },
  },
  'apiextensions/v1#CustomResourceDefinitionCondition': {
    type: { n: 1, t: 'string', r: 1 },
    status: { n: 2, t: 'string', r: 1 },
    lastTransitionTime: { n: 3, t: 'Time', o: 1 },
    reason: { n: 4, t: 'string', o: 1 },
    message: { n: 5, t: 'string', o: 1 },
    observedGeneration: { n: 6, t: 'int64', o: 1 },
  },
  'apiextensions/v1#CustomResourceDefinitionStatus': {
    conditions: { n: 1, t: '[]apiextensions/v1#CustomResourceDefinitionCondition', l: 'map', k: ['type'] },
    acceptedNames: { n: 2, t: 'apiextensions/v1#CustomResourceDefinitionNames' },
    storedVersions: { n: 3, t: '[]string', l: 'atomic' },
    observedGeneration: { n: 4, t: 'int64', o: 1 },
  },
  'apiextensions/v1#CustomResourceDefinitionList': {
    metadata: { n: 1, t: 'meta/v1#ListMeta', o: 1 },
    items: { n: 2, t: '[]apiextensions/v1#CustomResourceDefinition', r: 1 },
  },
  'apiextensions/v1#CustomResourceValidation': {
    openAPIV3Schema: { n: 1, t: 'apiextensions/v1#JSONSchemaProps', p: 1, o: 1 },
  },
  'apiextensions/v1#CustomResourceSubresources': {
    status: { n: 1, t: 'apiextensions/v1#CustomResourceSubresourceStatus', p: 1, o: 1 },
    scale: { n: 2, t: 'apiextensions/v1#CustomResourceSubresourceScale', p: 1, o: 1 },
  },
  'apiextensions/v1#CustomResourceSubresourceStatus': {},
  'apiextensions/v1#CustomResourceSubresourceScale': {
    specReplicasPath: { n: 1, t: 'string', r: 1 },
    statusReplicasPath: { n: 2, t: 'string', r: 1 },
    labelSelectorPath: { n: 3, t: 'string', p: 1, o: 1 },
  },
  'apiextensions/v1#JSONSchemaProps': {
    id: { n: 1, t: 'string', o: 1 },
    $schema: { n: 2, t: 'string', o: 1 },
    $ref: { n: 3, t: 'string', p: 1, o: 1 },
    description: { n: 4, t: 'string', o: 1 },
    type: { n: 5, t: 'string', o: 1 },
  },
  'apiextensions/v1#ExternalDocumentation': {
    description: { n: 1, t: 'string', o: 1 },
    url: { n: 2, t: 'string', o: 1 },
  },
  'apiextensions/v1#ValidationRule': {},
};
