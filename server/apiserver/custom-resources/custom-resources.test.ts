import { describe, expect, it } from 'vitest';
import { type CustomResourceDefinition, invalid, type UnstructuredObject } from '#server/kube';
import type { KindDefinition, RequestContext } from '../kind.ts';
import { createStoredObjects, type StoredObjects } from '../testing/stored-objects.ts';
import { CLEANUP_FINALIZER, crdKind, isEstablished } from './crd-kind.ts';
import type { JsonSchema } from './json-schema.ts';
import { kindsOfCustomResource } from './kinds-of-custom-resource.ts';

const NOW = Date.UTC(2026, 0, 1);

function contextOf(stored: StoredObjects, subresource?: string): RequestContext {
  const server = { ...stored, now: () => NOW } as unknown as RequestContext['server'];
  return {
    user: { name: 'u', groups: [] },
    verb: 'create',
    dryRun: false,
    subresource,
    namespace: undefined,
    server,
  };
}

const schema: JsonSchema = {
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      required: ['size'],
      properties: {
        size: { type: 'string' },
        replicas: { type: 'integer', default: 2 },
        color: { type: 'string' },
      },
    },
    status: {
      type: 'object',
      properties: {
        replicas: { type: 'integer' },
        conditions: {
          type: 'array',
          items: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        },
      },
    },
  },
};

function definition(
  changes: Partial<CustomResourceDefinition['spec']> = {},
  name = 'widgets.example.com',
): CustomResourceDefinition {
  const version = {
    name: 'v1',
    served: true,
    storage: true,
    schema: { openAPIV3Schema: schema },
    subresources: {
      status: {},
      scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' },
    },
    additionalPrinterColumns: [
      { name: 'Size', type: 'string', jsonPath: '.spec.size' },
      { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
      { name: 'Replicas', type: 'integer', jsonPath: '.spec.replicas', priority: 1 },
      { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    ],
    selectableFields: [{ jsonPath: '.spec.color' }],
  };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: {
        plural: 'widgets',
        singular: '',
        kind: 'Widget',
        listKind: '',
        shortNames: ['wd'],
        categories: ['all'],
      },
      versions: [version],
      ...changes,
    },
  };
}

async function create(
  crd: CustomResourceDefinition,
  stored = createStoredObjects(),
): Promise<CustomResourceDefinition> {
  const object = structuredClone(crd) as CustomResourceDefinition & UnstructuredObject;
  crdKind.strategy.defaults?.(object);
  await crdKind.strategy.prepareForCreate?.(object, contextOf(stored));
  const errors = crdKind.strategy.validate?.(object) ?? [];
  if (errors.length > 0) throw invalid(crdKind, object.metadata.name, errors);
  stored.put('customresourcedefinitions', object);
  return object;
}

describe('a CustomResourceDefinition', () => {
  it('is accepted and established at once', async () => {
    const crd = await create(definition());
    expect(crd.spec).toMatchObject({
      conversion: { strategy: 'None' },
      names: { singular: 'widget', listKind: 'WidgetList' },
    });
    expect(crd.status).toEqual({
      conditions: [
        {
          type: 'NamesAccepted',
          status: 'True',
          lastTransitionTime: '2026-01-01T00:00:00Z',
          reason: 'NoConflicts',
          message: 'no conflicts found',
        },
        {
          type: 'Established',
          status: 'True',
          lastTransitionTime: '2026-01-01T00:00:00Z',
          reason: 'InitialNamesAccepted',
          message: 'the initial names have been accepted',
        },
      ],
      acceptedNames: {
        plural: 'widgets',
        singular: 'widget',
        kind: 'Widget',
        listKind: 'WidgetList',
        shortNames: ['wd'],
        categories: ['all'],
      },
      storedVersions: ['v1'],
    });
    expect(isEstablished(crd)).toBe(true);
  });

  it('is not established while another of its group has one of its names', async () => {
    const stored = createStoredObjects();
    await create(definition(), stored);
    const names = { plural: 'gadgets', singular: 'gadget', kind: 'Widget', listKind: 'GadgetList' };
    const second = await create(definition({ names }, 'gadgets.example.com'), stored);
    expect(isEstablished(second)).toBe(false);
    expect(second.status?.conditions).toMatchObject([
      {
        type: 'NamesAccepted',
        status: 'False',
        reason: 'KindConflict',
        message: '"Widget" is already in use',
      },
      { type: 'Established', status: 'False', reason: 'NotAccepted', message: 'not all names are accepted' },
    ]);
  });

  it.each<[string, CustomResourceDefinition, string]>([
    [
      'name',
      definition({}, 'x'),
      'metadata.name: Invalid value: "x": must be spec.names.plural+"."+spec.group',
    ],
    [
      'group',
      definition({ group: 'nodot' }, 'widgets.nodot'),
      'spec.group: Invalid value: "nodot": should be a domain with at least one dot',
    ],
    [
      'schema',
      definition({ versions: [{ name: 'v1', served: true, storage: true }] }),
      'spec.versions[0].schema.openAPIV3Schema: Required value',
    ],
    [
      'conversion',
      { ...definition(), spec: { ...definition().spec, conversion: { strategy: 'Webhook' as 'None' } } },
      'spec.conversion.strategy: Unsupported value: "Webhook": supported values: "None"',
    ],
    [
      'shape',
      { ...definition(), spec: 'x' as unknown as CustomResourceDefinition['spec'] },
      'spec: Invalid value: "string": spec in body must be of type object: "string"',
    ],
  ])('is refused for its %s', async (_, crd, expected) => {
    await expect(create(crd)).rejects.toMatchObject({
      code: 422,
      message: expect.stringContaining(expected) as string,
    });
  });

  it('keeps what was stored once it changes', async () => {
    const old = (await create(definition())) as CustomResourceDefinition & UnstructuredObject;
    const [v1] = old.spec.versions;
    const next = structuredClone(old);
    if (v1)
      next.spec.versions = [
        { ...v1, storage: false },
        { ...v1, name: 'v2', storage: true },
      ];
    await crdKind.strategy.prepareForUpdate?.(next, old, contextOf(createStoredObjects()));
    expect(next.status?.storedVersions).toEqual(['v1', 'v2']);
    expect(crdKind.strategy.validateUpdate?.(next, old)).toEqual([]);
    const without = structuredClone(next);
    without.spec.versions = without.spec.versions.slice(1);
    expect(crdKind.strategy.validateUpdate?.(without, next)).toMatchObject([
      { field: 'status.storedVersions[0]', value: 'v1' },
    ]);
    const renamed = structuredClone(next);
    renamed.spec.scope = 'Cluster';
    expect(crdKind.strategy.validateUpdate?.(renamed, next)).toMatchObject([
      { field: 'spec.scope', detail: 'field is immutable' },
    ]);
  });

  it('waits for its objects when it is deleted', async () => {
    const crd = (await create(definition())) as CustomResourceDefinition & UnstructuredObject;
    expect(crdKind.strategy.finalizersOnDelete).toEqual([CLEANUP_FINALIZER]);
    crdKind.strategy.prepareForDelete?.(crd, contextOf(createStoredObjects()));
    expect(crd.status?.conditions?.at(-1)).toMatchObject({
      type: 'Terminating',
      status: 'True',
      reason: 'InstanceDeletionPending',
    });
  });
});

describe('the kinds of a definition', () => {
  const kind = async (): Promise<KindDefinition> => {
    const [first] = kindsOfCustomResource(await create(definition()));
    if (!first) throw new Error('no kind');
    return first;
  };
  const widget = (spec: object, more: object = {}): UnstructuredObject => ({
    apiVersion: 'example.com/v1',
    kind: 'Widget',
    metadata: { name: 'w', creationTimestamp: '2025-12-31T23:55:00Z' },
    spec,
    ...more,
  });

  it('carry names, scope, subresources and selectable fields', async () => {
    const { selectableFields, ...shown } = await kind();
    expect(shown).toMatchObject({
      group: 'example.com',
      version: 'v1',
      kind: 'Widget',
      listKind: 'WidgetList',
      plural: 'widgets',
      singular: 'widget',
      shortNames: ['wd'],
      categories: ['all'],
      namespaced: true,
      hasStatus: true,
      scale: { specReplicas: 'spec.replicas', statusReplicas: 'status.replicas' },
    });
    expect(selectableFields?.['spec.color']?.(widget({ color: 'red' }))).toBe('red');
    expect(selectableFields?.['spec.color']?.(widget({}))).toBe('');
  });

  it('are one per served version', async () => {
    const crd = await create(definition());
    const [v1] = crd.spec.versions;
    if (v1)
      crd.spec.versions = [
        v1,
        { ...v1, name: 'v2', storage: false },
        { ...v1, name: 'v0', served: false, storage: false },
      ];
    expect(kindsOfCustomResource(crd).map((one) => one.version)).toEqual(['v1', 'v2']);
  });

  it('prune, default and validate', async () => {
    const { strategy } = await kind();
    const object = widget({ size: 'xl', unknown: 1 }, { extra: true, status: { replicas: 1 } });
    strategy.defaults?.(object);
    await strategy.prepareForCreate?.(object, contextOf(createStoredObjects()));
    expect(object).toEqual(widget({ size: 'xl', replicas: 2 }));
    expect(strategy.validate?.(object)).toEqual([]);
    expect(strategy.validate?.(widget({ replicas: 'many' }))).toMatchObject([
      { field: 'spec.replicas', detail: 'spec.replicas in body must be of type integer: "string"' },
      { field: 'spec.size', type: 'FieldValueRequired' },
    ]);
    const wrong = { ...object, status: { replicas: 'x' } };
    expect(strategy.validateStatusUpdate?.(wrong, object)).toMatchObject([{ field: 'status.replicas' }]);
  });

  it('make tables', async () => {
    const { columns } = await kind();
    const object = widget(
      { size: 'xl', replicas: 3 },
      { status: { conditions: [{ type: 'Ready', status: 'True' }] } },
    );
    expect(
      columns.map((column) => [column.name, column.type, column.priority, column.cell(object, NOW)]),
    ).toEqual([
      ['Name', 'string', 0, 'w'],
      ['Size', 'string', 0, 'xl'],
      ['Ready', 'string', 0, 'True'],
      ['Replicas', 'integer', 1, 3],
      ['Age', 'date', 0, '5m'],
    ]);
    expect(columns.map((column) => column.cell(widget({}), NOW))).toEqual(['w', null, null, null, '5m']);
  });

  it('show an age when the definition names no columns', async () => {
    const crd = await create(definition());
    const [v1] = crd.spec.versions;
    if (v1) delete v1.additionalPrinterColumns;
    expect(kindsOfCustomResource(crd)[0]?.columns.map((column) => column.name)).toEqual(['Name', 'Age']);
  });

  it('count the status as a change where it is no subresource', async () => {
    const crd = await create(definition());
    const [v1] = crd.spec.versions;
    if (v1) delete v1.subresources;
    const strategy = kindsOfCustomResource(crd)[0]?.strategy;
    expect(strategy?.raisesGeneration?.(widget({}, { status: { replicas: 1 } }), widget({}))).toBe(true);
    expect(strategy?.raisesGeneration?.(widget({}), widget({}))).toBe(false);
  });
});
