import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { invalid } from '#server/kube';
import { fillDefaults } from './fill-defaults.ts';
import type { JsonSchema } from './json-schema.ts';
import { structuralErrors } from './structural-schema.ts';
import { validateBySchema } from './validate-schema.ts';

function messages(
  value: unknown,
  schema: JsonSchema,
  options: Parameters<typeof validateBySchema>[2] = {},
): string[] {
  const errors = validateBySchema(value, schema, options);
  return errors.map((error) =>
    invalid({ group: '', kind: 'K' }, '', [error]).message.replace('K "" is invalid: ', ''),
  );
}

const spec = (properties: Record<string, JsonSchema>, more: JsonSchema = {}): JsonSchema => ({
  type: 'object',
  properties: { spec: { type: 'object', properties, ...more } },
});

describe("what a schema refuses, in upstream's words", () => {
  it.each<[string, JsonSchema, unknown, string[]]>([
    [
      'a wrong type',
      { type: 'integer' },
      'x',
      ['spec.f: Invalid value: "string": spec.f in body must be of type integer: "string"'],
    ],
    [
      'a fraction for an integer',
      { type: 'integer' },
      1.5,
      ['spec.f: Invalid value: "number": spec.f in body must be of type integer: "number"'],
    ],
    [
      'null',
      { type: 'string' },
      null,
      ['spec.f: Invalid value: "null": spec.f in body must be of type string: "null"'],
    ],
    [
      'neither int nor string',
      { 'x-kubernetes-int-or-string': true },
      true,
      ['spec.f: Invalid value: "boolean": spec.f in body must be of type integer,string: "boolean"'],
    ],
    [
      'a value that is not listed',
      { type: 'string', enum: ['a', 'b'] },
      'c',
      ['spec.f: Unsupported value: "c": supported values: "a", "b"'],
    ],
    [
      'a wrong type that is not listed either',
      { type: 'string', enum: ['a'] },
      9,
      [
        'spec.f: Invalid value: "integer": spec.f in body must be of type string: "integer"',
        'spec.f: Unsupported value: 9: supported values: "a"',
      ],
    ],
    [
      'a long string',
      { type: 'string', maxLength: 2 },
      'abc',
      ['spec.f: Too long: may not be more than 2 bytes'],
    ],
    [
      'a short string',
      { type: 'string', minLength: 1 },
      '',
      ['spec.f: Invalid value: "": spec.f in body should be at least 1 chars long'],
    ],
    [
      'a string of another form',
      { type: 'string', pattern: '^a+$' },
      'b',
      ['spec.f: Invalid value: "b": spec.f in body should match \'^a+$\''],
    ],
    [
      'a bad time',
      { type: 'string', format: 'date-time' },
      'soon',
      ['spec.f: Invalid value: "soon": spec.f in body must be of type date-time: "soon"'],
    ],
    [
      'too small a number',
      { type: 'integer', minimum: 0 },
      -1,
      ['spec.f: Invalid value: -1: spec.f in body should be greater than or equal to 0'],
    ],
    [
      'too large a number',
      { type: 'number', maximum: 1, exclusiveMaximum: true },
      1,
      ['spec.f: Invalid value: 1: spec.f in body should be less than 1'],
    ],
    [
      'no multiple',
      { type: 'integer', multipleOf: 5 },
      7,
      ['spec.f: Invalid value: 7: spec.f in body should be a multiple of 5'],
    ],
    [
      'too many items',
      { type: 'array', items: { type: 'string' }, maxItems: 1 },
      ['a', 'b'],
      ['spec.f: Too many: 2: must have at most 1 items'],
    ],
    [
      'too few items',
      { type: 'array', items: { type: 'string' }, minItems: 1 },
      [],
      ['spec.f: Invalid value: 0: spec.f in body should have at least 1 items'],
    ],
    [
      'a wrong item',
      { type: 'array', items: { type: 'string' } },
      ['a', 1],
      ['spec.f[1]: Invalid value: "integer": spec.f[1] in body must be of type string: "integer"'],
    ],
    [
      'a wrong member',
      { type: 'object', additionalProperties: { type: 'string' } },
      { a: 1 },
      ['spec.f.a: Invalid value: "integer": spec.f.a in body must be of type string: "integer"'],
    ],
    [
      'a missing member',
      { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] },
      {},
      ['spec.f.a: Required value'],
    ],
    [
      'a repeated member of a set',
      { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'set' },
      ['a', 'a'],
      ['spec.f[1]: Duplicate value: "a"'],
    ],
    [
      'a repeated key',
      {
        type: 'array',
        items: { type: 'object', properties: { k: { type: 'string' } } },
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['k'],
      },
      [{ k: 'a' }, { k: 'a' }],
      ['spec.f[1]: Duplicate value: {"k":"a"}'],
    ],
    [
      'none of several',
      { type: 'string', oneOf: [{ pattern: '^a' }, { pattern: '^b' }] },
      'c',
      [
        '<nil>: Invalid value: "": "spec.f" must validate one and only one schema (oneOf). Found none valid',
        'spec.f: Invalid value: "c": spec.f in body should match \'^a\'',
      ],
    ],
    [
      'what must not be',
      { type: 'string', not: { enum: ['x'] } },
      'x',
      ['<nil>: Invalid value: "": "spec.f" must not validate the schema (not)'],
    ],
  ])('%s', (_, schema, value, expected) => {
    expect(messages({ spec: { f: value } }, spec({ f: schema }))).toEqual(expected);
  });

  it('lets good values through', () => {
    const schema = spec({
      n: { type: 'number' },
      s: { type: 'string', nullable: true, format: 'ipv4' },
      i: { 'x-kubernetes-int-or-string': true },
      any: { 'x-kubernetes-preserve-unknown-fields': true },
    });
    expect(messages({ spec: { n: 1, s: null, i: '50%', any: { a: [1, null] } } }, schema)).toEqual([]);
    expect(messages({ spec: { n: 1.5, s: '10.0.0.1', i: 3 } }, schema)).toEqual([]);
  });

  it('puts the root of a part before its errors', () => {
    expect(
      messages(
        { ready: 'yes' },
        { type: 'object', properties: { ready: { type: 'boolean' } } },
        { root: 'status' },
      ),
    ).toEqual(['status.ready: Invalid value: "string": ready in body must be of type boolean: "string"']);
  });

  it('lets through what was wrong before and did not change', () => {
    const schema = spec({ a: { type: 'integer' }, b: { type: 'integer' } });
    const old = { spec: { a: 'bad', b: 1 } };
    expect(messages({ spec: { a: 'bad', b: 2 } }, schema, { old })).toEqual([]);
    expect(messages({ spec: { a: 'worse', b: 2 } }, schema, { old })).toHaveLength(1);
  });

  it('never throws and accepts every value by a schema that says nothing', () => {
    const open: JsonSchema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
        expect(validateBySchema(value, open)).toEqual([]);
      }),
    );
  });
});

describe('defaults', () => {
  const schema: JsonSchema = spec({
    replicas: { type: 'integer', default: 1 },
    mode: { type: 'string', nullable: true, default: 'on' },
    template: { type: 'object', default: {}, properties: { size: { type: 'string', default: 'small' } } },
    items: {
      type: 'array',
      items: { type: 'object', properties: { kind: { type: 'string', default: 'x' } } },
    },
    optional: { type: 'string' },
  });

  it('fill what is absent, down to items, and leave what is there', () => {
    const object = { spec: { replicas: 3, items: [{}, { kind: 'y' }] } };
    fillDefaults(object, schema);
    expect(object).toEqual({
      spec: { replicas: 3, mode: 'on', template: { size: 'small' }, items: [{ kind: 'x' }, { kind: 'y' }] },
    });
  });

  it('do not appear below what is absent', () => {
    const object = {};
    fillDefaults(object, schema);
    expect(object).toEqual({});
  });

  it('take the place of null, which goes where nothing may be null', () => {
    const object = { spec: { replicas: null, mode: null, optional: null, template: { size: 's' } } };
    fillDefaults(object, schema);
    expect(object).toEqual({ spec: { replicas: 1, mode: null, template: { size: 's' } } });
  });

  it('are filled once: filling again changes nothing', () => {
    fc.assert(
      fc.property(
        fc.record({
          spec: fc.dictionary(fc.constantFrom('replicas', 'mode', 'template', 'items'), fc.jsonValue()),
        }),
        (object) => {
          fillDefaults(object, schema);
          const once = JSON.stringify(object);
          fillDefaults(object, schema);
          expect(JSON.stringify(object)).toBe(once);
        },
      ),
    );
  });
});

describe('structural schemas', () => {
  const errors = (schema: JsonSchema): string[] =>
    structuralErrors(schema, 's').map((error) => `${error.field}: ${error.detail}`);
  it.each<[string, JsonSchema, string]>([
    ['no type', {}, 's.type: must not be empty at the root'],
    ['another type at the root', { type: 'string' }, 's.type: must be object at the root'],
    [
      'a field without type',
      spec({ f: {} }),
      's.properties[spec].properties[f].type: must not be empty for specified object fields',
    ],
    [
      'an array without items',
      spec({ f: { type: 'array' } }),
      's.properties[spec].properties[f].items: must be specified',
    ],
    [
      'a type inside anyOf',
      spec({ f: { type: 'string', anyOf: [{ type: 'string' }] } }),
      's.properties[spec].properties[f].anyOf[0].type: must be empty to be structural',
    ],
    [
      'metadata',
      {
        type: 'object',
        properties: { metadata: { type: 'object', properties: { labels: { type: 'object' } } } },
      },
      's.properties[metadata]: must not specify anything other than name and generateName, but metadata is implicitly specified',
    ],
    [
      'a list of maps without keys',
      spec({ f: { type: 'array', items: { type: 'object' }, 'x-kubernetes-list-type': 'map' } }),
      's.properties[spec].properties[f].x-kubernetes-list-map-keys: must not be empty if x-kubernetes-list-type is map',
    ],
    [
      'a bad pattern',
      spec({ f: { type: 'string', pattern: '(' } }),
      's.properties[spec].properties[f].pattern: must be a valid regular expression',
    ],
  ])('%s', (_, schema, expected) => {
    expect(errors(schema)).toContain(expected);
  });

  it('are what generators write', () => {
    const intOrString: JsonSchema = {
      'x-kubernetes-int-or-string': true,
      anyOf: [{ type: 'integer' }, { type: 'string' }],
    };
    const schema: JsonSchema = {
      type: 'object',
      properties: {
        apiVersion: { type: 'string' },
        kind: { type: 'string' },
        metadata: { type: 'object' },
        spec: { type: 'object', properties: { port: intOrString } },
      },
    };
    expect(errors(schema)).toEqual([]);
  });

  it('may not be nested for ever', () => {
    let schema: JsonSchema = { type: 'object' };
    for (let i = 0; i < 300; i++) schema = { type: 'object', properties: { a: schema } };
    expect(errors(schema)).toEqual([expect.stringContaining('must not be nested deeper than 100 levels')]);
  });
});
