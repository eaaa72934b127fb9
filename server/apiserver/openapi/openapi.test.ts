import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { reviewKinds } from '../authz/review-kinds.ts';
import { crdKind } from '../custom-resources/crd-kind.ts';
import { kindsOfCustomResource } from '../custom-resources/kinds-of-custom-resource.ts';
import type { KindDefinition } from '../kind.ts';
import { builtinKinds } from '../kinds/table.ts';
import { describeType, parseDeclaration } from './descriptions.ts';
import { createOpenApi } from './openapi.ts';

interface Document {
  paths: Record<
    string,
    Record<
      string,
      { parameters?: { name: string }[]; requestBody?: { content: object }; [key: string]: unknown }
    >
  >;
  components: {
    schemas: Record<string, { properties: Record<string, Record<string, unknown>>; [key: string]: unknown }>;
  };
}

const widgets = kindsOfCustomResource({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: { spec: { type: 'object', description: 'What it is.' } },
          },
        },
      },
    ],
  },
});
const all: KindDefinition[] = [...builtinKinds, ...reviewKinds, crdKind, ...widgets];

function read(path: string): Document {
  const document = createOpenApi({ kinds: () => all }).document(path);
  return JSON.parse(document?.plain().toString() ?? 'null') as Document;
}

function* refsIn(value: unknown): Iterable<string> {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, member] of Object.entries(value)) {
    if (key === '$ref') yield member as string;
    else yield* refsIn(member);
  }
}

describe('OpenAPI documents', () => {
  it('have the form their hashes promise: when this fails, raise FORM in openapi.ts and take the new digest', () => {
    const { paths, components } = read('apis/example.com/v1');
    const form = JSON.stringify([
      paths,
      components.schemas['com.example.v1.Widget'],
      components.schemas['io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry'],
    ]);
    expect(createHash('sha256').update(form).digest('hex').slice(0, 16)).toBe('6b3cc308ed5956d7');
  });

  it('are listed with the hash of what they describe', () => {
    const openApi = createOpenApi({ kinds: () => all });
    const { paths } = JSON.parse(openApi.index().body) as {
      paths: Record<string, { serverRelativeURL: string }>;
    };
    expect(Object.keys(paths)).toEqual(
      expect.arrayContaining(['api/v1', 'apis/apps/v1', 'apis/example.com/v1']),
    );
    for (const [path, { serverRelativeURL }] of Object.entries(paths)) {
      expect(serverRelativeURL).toBe(`/openapi/v3/${path}?hash=${openApi.document(path)?.hash ?? ''}`);
    }
    expect(openApi.document('apis/none/v1')).toBeUndefined();
  });

  it('are shared by servers of the same kinds, and differ with the kinds', () => {
    const first = createOpenApi({ kinds: () => all });
    const second = createOpenApi({ kinds: () => [...all] });
    expect(second.document('api/v1')?.gzip).toBe(first.document('api/v1')?.gzip);
    const fewer = createOpenApi({ kinds: () => all.filter((kind) => kind.kind !== 'Pod') });
    expect(fewer.document('api/v1')?.hash).not.toBe(first.document('api/v1')?.hash);
    expect(fewer.index().etag).not.toBe(first.index().etag);
  });

  it('change when a definition does', () => {
    let kinds = all;
    const openApi = createOpenApi({ kinds: () => kinds });
    expect(openApi.document('apis/example.com/v1')).toBeDefined();
    kinds = all.filter((kind) => kind.group !== 'example.com');
    expect(openApi.document('apis/example.com/v1')).toBeUndefined();
  });

  it.each([
    'api/v1',
    'apis/apps/v1',
    'apis/rbac.authorization.k8s.io/v1',
    'apis/apiextensions.k8s.io/v1',
    'apis/example.com/v1',
  ])('refer only to what they hold: %s', (path) => {
    const document = read(path);
    const known = new Set(
      Object.keys(document.components.schemas).map((name) => `#/components/schemas/${name}`),
    );
    expect([...refsIn(document)].filter((ref) => !known.has(ref))).toEqual([]);
  });

  it('tell kubectl what a patch may carry', () => {
    const patch = read('api/v1').paths['/api/v1/namespaces/{namespace}/pods/{name}']?.patch;
    expect(patch?.['x-kubernetes-group-version-kind']).toEqual({ group: '', kind: 'Pod', version: 'v1' });
    expect(patch?.['x-kubernetes-action']).toBe('patch');
    expect(patch?.parameters?.map((parameter) => parameter.name)).toEqual([
      'dryRun',
      'fieldManager',
      'fieldValidation',
      'force',
    ]);
    expect(Object.keys(patch?.requestBody?.content ?? {})).toEqual([
      'application/apply-patch+yaml',
      'application/json-patch+json',
      'application/merge-patch+json',
      'application/strategic-merge-patch+json',
    ]);
    const custom =
      read('apis/example.com/v1').paths['/apis/example.com/v1/namespaces/{namespace}/widgets/{name}']?.patch;
    expect(Object.keys(custom?.requestBody?.content ?? {})).not.toContain(
      'application/strategic-merge-patch+json',
    );
  });

  it('name and mark components as upstream does', () => {
    const { schemas } = read('api/v1').components;
    expect(schemas['io.k8s.api.core.v1.Pod']?.['x-kubernetes-group-version-kind']).toEqual([
      { group: '', kind: 'Pod', version: 'v1' },
    ]);
    expect(schemas['io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta']?.properties.labels).toMatchObject({
      type: 'object',
    });
    expect(schemas['io.k8s.api.core.v1.PodSpec']?.properties.containers).toMatchObject({
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
      'x-kubernetes-patch-merge-key': 'name',
      'x-kubernetes-patch-strategy': 'merge',
    });
    expect(schemas['io.k8s.api.core.v1.PodSpec']?.required).toEqual(['containers']);
    expect(schemas['io.k8s.api.core.v1.Container']?.properties.imagePullPolicy).toMatchObject({
      enum: ['Always', 'IfNotPresent', 'Never'],
    });
    expect(read('apis/example.com/v1').components.schemas['com.example.v1.Widget']?.properties).toMatchObject(
      {
        spec: { type: 'object', description: 'What it is.' },
        metadata: {
          allOf: [{ $ref: '#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta' }],
        },
      },
    );
  });

  it('let the type speak for a field without a comment', () => {
    const { lifecycle } = read('api/v1').components.schemas['io.k8s.api.core.v1.Container']?.properties ?? {};
    expect(lifecycle?.description).toMatch(/^Lifecycle describes .*\.$/);
  });

  it('offer reviews for creation only', () => {
    const item = read('apis/authorization.k8s.io/v1').paths[
      '/apis/authorization.k8s.io/v1/subjectaccessreviews'
    ];
    expect(Object.keys(item ?? {}).sort()).toEqual(['parameters', 'patch', 'post']);
    expect(Object.keys((item?.patch?.responses as object | undefined) ?? {})).toEqual(['405']);
  });
});

describe('descriptions', () => {
  it('belong to the very next field, whatever is in between', () => {
    const source = [
      '/**',
      '* A thing.',
      '*/',
      'export declare class V1Thing {',
      '    /**',
      '    * First; isn\\\'t \\"it\\" a *_/5?',
      '    */',
      "    'a'?: string;",
      "    'b': V1Other;",
      '    /**',
      '    * Third.',
      '    */',
      "    'c': string;",
      '}',
    ].join('\n');
    const { text, fields } = parseDeclaration(source);
    expect(text).toBe('A thing.');
    expect([...fields]).toEqual([
      ['a', 'First; isn\'t "it" a */5?'],
      ['c', 'Third.'],
    ]);
  });

  it('are found for types whose names several groups have', () => {
    expect(describeType('events/v1#Event').fields.has('reportingController')).toBe(true);
    expect(describeType('core/v1#Event').fields.has('reportingComponent')).toBe(true);
    expect(describeType('core/v1#Container').fields.get('lifecycle')).toBeUndefined();
    expect(describeType('core/v1#Unknown').text).toBe('');
  });
});
