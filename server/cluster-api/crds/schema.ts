import type { CustomResourceDefinition, CustomResourceDefinitionVersion, JsonSchema } from '#server/kube';

/** Words of the definitions below: each makes one structural schema; descriptions are what `kubectl explain` shows. */
export const text = (description: string, values?: string[]): JsonSchema => ({
  type: 'string',
  description,
  ...(values ? { enum: values } : {}),
});
export const time = (description: string): JsonSchema => ({
  type: 'string',
  format: 'date-time',
  description,
});
export const flag = (description: string): JsonSchema => ({ type: 'boolean', description });
export const whole = (description: string): JsonSchema => ({ type: 'integer', format: 'int32', description });
export const long = (description: string): JsonSchema => ({ type: 'integer', format: 'int64', description });
export const intOrPercent = (description: string): JsonSchema => ({
  description,
  'x-kubernetes-int-or-string': true,
});
export const list = (description: string, items: JsonSchema): JsonSchema => ({
  type: 'array',
  description,
  items,
});
export const texts = (description: string): JsonSchema => list(description, { type: 'string' });
export const map = (description: string): JsonSchema => ({
  type: 'object',
  description,
  additionalProperties: { type: 'string' },
});
/** Anything below is kept as it is. */
export const open = (description: string): JsonSchema => ({
  type: 'object',
  description,
  'x-kubernetes-preserve-unknown-fields': true,
});

export function object(
  description: string,
  properties: Record<string, JsonSchema>,
  required?: string[],
): JsonSchema {
  return { type: 'object', description, properties, ...(required ? { required } : {}) };
}

export const CONDITIONS: JsonSchema = {
  ...list(
    'What was observed of the object, one entry for each aspect.',
    object(
      'One aspect.',
      {
        type: text('Name of the aspect.'),
        status: text('Whether it holds.', ['True', 'False', 'Unknown']),
        observedGeneration: long('Generation this was said of.'),
        lastTransitionTime: time('When the status last changed.'),
        reason: text('One word for programs.'),
        message: text('A sentence for people.'),
      },
      ['lastTransitionTime', 'message', 'reason', 'status', 'type'],
    ),
  ),
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['type'],
};

export const SELECTOR: JsonSchema = object('Labels of the Machines that belong to it.', {
  matchLabels: map('Labels that must be there.'),
  matchExpressions: list(
    'Requirements of labels.',
    object(
      'One requirement.',
      {
        key: text('Label key.'),
        operator: text('In, NotIn, Exists or DoesNotExist.'),
        values: texts('Label values.'),
      },
      ['key', 'operator'],
    ),
  ),
});

export const TEMPLATE_METADATA: JsonSchema = object(
  'Labels and annotations of what is made from the template.',
  { labels: map('Labels.'), annotations: map('Annotations.') },
);

export const REFERENCE = (description: string): JsonSchema =>
  object(
    description,
    {
      apiGroup: text('API group of the object.'),
      kind: text('Kind of the object.'),
      name: text('Name of the object, in the same namespace.'),
    },
    ['apiGroup', 'kind', 'name'],
  );

export const VERSIONS: JsonSchema = list(
  'How many replicas run each version.',
  object(
    'One version.',
    { version: text('Kubernetes version.'), replicas: whole('Machines of that version.') },
    ['version'],
  ),
);

export const REPLICA_COUNTS: Record<string, JsonSchema> = {
  replicas: whole('Machines there are.'),
  readyReplicas: whole('Machines whose Ready condition is true.'),
  availableReplicas: whole('Machines whose Available condition is true.'),
  upToDateReplicas: whole('Machines whose UpToDate condition is true.'),
  versions: VERSIONS,
};

type Columns = NonNullable<CustomResourceDefinitionVersion['additionalPrinterColumns']>;

/** A column as `[name, type, jsonPath, description?, priority?]`. */
export type ColumnFact = readonly [string, string, string, string?, number?];

/** Columns that are shown with `-o wide` only have this priority upstream. */
export const WIDE = 10;

export const AGE: ColumnFact = ['Age', 'date', '.metadata.creationTimestamp', 'Time since creation'];

export function conditionPath(type: string): string {
  return `.status.conditions[?(@.type=="${type}")].status`;
}

/** Builds one definition of a namespaced kind in the category `cluster-api`. */
export function definition(facts: {
  group: string;
  version: string;
  kind: string;
  plural: string;
  shortNames?: string[];
  description: string;
  spec: JsonSchema;
  status?: JsonSchema;
  columns?: readonly ColumnFact[];
  scale?: boolean;
}): CustomResourceDefinition {
  const columns: Columns = (facts.columns ?? []).map(([name, type, jsonPath, description, priority]) => ({
    name,
    type,
    jsonPath,
    ...(description ? { description } : {}),
    ...(priority ? { priority } : {}),
  }));
  const scale = {
    specReplicasPath: '.spec.replicas',
    statusReplicasPath: '.status.replicas',
    labelSelectorPath: '.status.selector',
  };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: {
      name: `${facts.plural}.${facts.group}`,
      labels: {
        'cluster.x-k8s.io/provider': facts.group.startsWith('infrastructure')
          ? 'infrastructure-kubevirt'
          : 'cluster-api',
      },
    },
    spec: {
      group: facts.group,
      scope: 'Namespaced',
      names: {
        plural: facts.plural,
        singular: facts.kind.toLowerCase(),
        kind: facts.kind,
        listKind: `${facts.kind}List`,
        ...(facts.shortNames ? { shortNames: facts.shortNames } : {}),
        categories: ['cluster-api'],
      },
      versions: [
        {
          name: facts.version,
          served: true,
          storage: true,
          schema: {
            openAPIV3Schema: {
              type: 'object',
              description: facts.description,
              properties: {
                apiVersion: { type: 'string' },
                kind: { type: 'string' },
                metadata: { type: 'object' },
                spec: facts.spec,
                ...(facts.status ? { status: facts.status } : {}),
              },
            },
          },
          ...(facts.status ? { subresources: { status: {}, ...(facts.scale ? { scale } : {}) } } : {}),
          ...(columns.length > 0 ? { additionalPrinterColumns: columns } : {}),
        },
      ],
      conversion: { strategy: 'None' },
    },
  };
}
