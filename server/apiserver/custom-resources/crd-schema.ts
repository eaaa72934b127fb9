import type { JsonSchema } from './json-schema.ts';

// The shape of a CustomResourceDefinition (apiextensions.k8s.io/v1), which is not among the generated types.

const text: JsonSchema = { type: 'string' };
const texts: JsonSchema = { type: 'array', items: text, 'x-kubernetes-list-type': 'atomic' };

function described(schema: JsonSchema, description: string): JsonSchema {
  return { ...schema, description };
}

function object(properties: Record<string, JsonSchema>, required: string[] = []): JsonSchema {
  return { type: 'object', properties, ...(required.length ? { required } : {}) };
}

function list(items: JsonSchema): JsonSchema {
  return { type: 'array', items, 'x-kubernetes-list-type': 'atomic' };
}

const names = object({
  plural: described(text, 'Name of the resource in paths, lower case.'),
  singular: described(text, 'Name of one object, lower case. Default: the kind in lower case.'),
  shortNames: described(texts, 'Abbreviations that clients accept.'),
  kind: described(text, 'Kind of the objects, in CamelCase and singular.'),
  listKind: described(text, 'Kind of a list of them. Default: the kind followed by List.'),
  categories: described(texts, 'Groups of resources this one is listed with, such as all.'),
});

const version = object(
  {
    name: described(text, 'Name of the version, such as v1 or v1beta1.'),
    served: described({ type: 'boolean' }, 'Whether this version is served.'),
    storage: described(
      { type: 'boolean' },
      'Whether objects are stored in this version; true for exactly one.',
    ),
    deprecated: described({ type: 'boolean' }, 'Whether requests for this version get a warning.'),
    deprecationWarning: described(text, 'The text of that warning.'),
    schema: described(
      object({ openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } }),
      'The structural schema by which objects are pruned, defaulted and validated.',
    ),
    subresources: described(
      object({
        status: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        scale: object({ specReplicasPath: text, statusReplicasPath: text, labelSelectorPath: text }, [
          'specReplicasPath',
          'statusReplicasPath',
        ]),
      }),
      'The subresources status and scale.',
    ),
    additionalPrinterColumns: described(
      list(
        object(
          {
            name: text,
            type: text,
            format: text,
            description: text,
            priority: { type: 'integer', format: 'int32' },
            jsonPath: text,
          },
          ['name', 'type', 'jsonPath'],
        ),
      ),
      'Columns of the table shown for these objects.',
    ),
    selectableFields: described(
      list(object({ jsonPath: text }, ['jsonPath'])),
      'Fields that field selectors may name.',
    ),
  },
  ['name', 'served', 'storage'],
);

const condition = object(
  {
    type: text,
    status: text,
    observedGeneration: { type: 'integer', format: 'int64' },
    lastTransitionTime: { type: 'string', format: 'date-time' },
    reason: text,
    message: text,
  },
  ['type', 'status'],
);

export const CRD_SCHEMA: JsonSchema = {
  ...object(
    {
      spec: object(
        {
          group: described(text, 'API group of the resource.'),
          names,
          scope: described(text, 'Cluster or Namespaced.'),
          versions: described(list(version), 'All versions of the resource.'),
          conversion: object(
            { strategy: text, webhook: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
            ['strategy'],
          ),
          preserveUnknownFields: { type: 'boolean' },
        },
        ['group', 'names', 'scope', 'versions'],
      ),
      status: object({
        conditions: {
          type: 'array',
          items: condition,
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['type'],
        },
        acceptedNames: names,
        storedVersions: texts,
        observedGeneration: { type: 'integer', format: 'int64' },
      }),
    },
    ['spec'],
  ),
  description: 'Describes a resource to be served: its names, scope, versions and schemas.',
};
