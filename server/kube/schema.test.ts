import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { customSchema } from './custom-schema.ts';
import { deepEqual } from './equality.ts';
import { cloneJson } from './json-value.ts';
import { builtinSchema, builtinSchemaFor } from './schema.ts';
import { pruneUnknownFields, unknownFields } from './unknown-fields.ts';

const pod = builtinSchema('core/v1#Pod');

describe('built-in schemas', () => {
  it('are found by apiVersion and kind, always the same one', () => {
    expect(builtinSchemaFor('v1', 'Pod')).toBe(pod);
    expect(builtinSchemaFor('rbac.authorization.k8s.io/v1', 'Role')?.typeName).toBe('rbac/v1#Role');
    expect(builtinSchemaFor('apiextensions.k8s.io/v1', 'CustomResourceDefinition')?.fields.has('spec')).toBe(
      true,
    );
    expect(builtinSchemaFor('example.com/v1', 'Pod')).toBeUndefined();
    expect(() => builtinSchema('core/v1#Nope')).toThrow('no built-in type core/v1#Nope');
  });

  it('flatten inlined structs and carry the markers of lists', () => {
    const volume = builtinSchema('core/v1#Volume');
    expect([...volume.fields.keys()].slice(0, 3)).toEqual(['name', 'hostPath', 'emptyDir']);
    expect(builtinSchema('core/v1#Container').fields.get('ports')).toMatchObject({
      patchStrategy: 'merge',
      patchMergeKey: 'containerPort',
      type: { kind: 'list', listType: 'map', mapKeys: ['containerPort', 'protocol'] },
    });
    expect(builtinSchema('meta/v1#LabelSelector').atomic).toBe(true);
  });

  it('give apiVersion and kind to objects, not to what is inside them', () => {
    expect(pod.fields.has('apiVersion')).toBe(true);
    expect(builtinSchema('core/v1#PodTemplateSpec').fields.has('apiVersion')).toBe(false);
  });
});

const widget = customSchema({
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      properties: {
        size: { type: 'integer' },
        free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        tags: { type: 'object', additionalProperties: { type: 'string' } },
        parts: {
          type: 'array',
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['id'],
          items: { type: 'object', properties: { id: { type: 'string' } } },
        },
      },
    },
  },
});

describe('unknown fields', () => {
  it('of built-in kinds are reported in document order, with list positions', () => {
    const object = {
      kind: 'Pod',
      metadata: { labels: { any: 'thing' }, nme: 'x' },
      spec: {
        containers: [{ name: 'a' }, { name: 'b', imag: 'c', resources: { limits: { 'example.com/x': 1 } } }],
      },
      extra: {},
    };
    expect(unknownFields(object, pod)).toEqual([
      'unknown field "metadata.nme"',
      'unknown field "spec.containers[1].imag"',
      'unknown field "extra"',
    ]);
  });

  it('of custom resources stop at preserved ones', () => {
    const object = {
      metadata: { name: 'w' },
      spec: { free: { a: { b: 1 } }, tags: { x: 'y' }, parts: [{ id: 'p', x: 1 }], y: 2 },
    };
    expect(unknownFields(object, widget)).toEqual([
      'unknown field "spec.parts[0].x"',
      'unknown field "spec.y"',
    ]);
    const pruned = pruneUnknownFields(object, widget);
    expect(pruned.spec).toEqual({ free: { a: { b: 1 } }, tags: { x: 'y' }, parts: [{ id: 'p' }] });
    expect(pruneUnknownFields(pruned, widget)).toBe(pruned);
  });
});

describe('deepEqual', () => {
  it('takes undefined members as absent and key order as nothing', () => {
    expect(deepEqual({ a: 1, b: undefined }, { a: 1 })).toBe(true);
    expect(deepEqual({ a: 1, b: [1, { c: null }] }, { b: [1, { c: null }], a: 1 })).toBe(true);
    expect(deepEqual({ a: undefined, b: 1 }, { a: 1, b: undefined })).toBe(false);
    expect(deepEqual([], {})).toBe(false);
  });

  it('holds of copies and agrees with JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
        expect(deepEqual(a, cloneJson(a))).toBe(true);
        expect(deepEqual(a, b)).toBe(deepEqual(b, a));
      }),
    );
  });
});
