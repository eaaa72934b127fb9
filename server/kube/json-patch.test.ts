import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { applyJsonPatch, type JsonPatchOperation } from './json-patch.ts';
import { StatusError } from './status-error.ts';

const document = { a: { b: [1, 2, 3], 'x/y': 'slash', 'm~n': 'tilde' }, c: 'd' };

const statusOf = (operations: JsonPatchOperation[], of: unknown = document): unknown => {
  try {
    return applyJsonPatch(of, operations);
  } catch (error) {
    return error instanceof StatusError ? error.status : error;
  }
};

describe('JSON patch', () => {
  it.each<[string, JsonPatchOperation[], unknown]>([
    ['adds members', [{ op: 'add', path: '/a/z', value: 1 }], { ...document, a: { ...document.a, z: 1 } }],
    [
      'inserts items',
      [{ op: 'add', path: '/a/b/1', value: 9 }],
      { ...document, a: { ...document.a, b: [1, 9, 2, 3] } },
    ],
    [
      'appends items',
      [{ op: 'add', path: '/a/b/-', value: 9 }],
      { ...document, a: { ...document.a, b: [1, 2, 3, 9] } },
    ],
    [
      'counts from the end',
      [{ op: 'remove', path: '/a/b/-1' }],
      { ...document, a: { ...document.a, b: [1, 2] } },
    ],
    [
      'unescapes',
      [
        { op: 'remove', path: '/a/x~1y' },
        { op: 'remove', path: '/a/m~0n' },
      ],
      { a: { b: [1, 2, 3] }, c: 'd' },
    ],
    ['adds what it should replace', [{ op: 'replace', path: '/e', value: null }], { ...document, e: null }],
    ['replaces everything', [{ op: 'replace', path: '', value: [] }], []],
    ['moves', [{ op: 'move', from: '/c', path: '/a/c' }], { a: { ...document.a, c: 'd' } }],
    ['copies', [{ op: 'copy', from: '/a/b', path: '/e' }], { ...document, e: [1, 2, 3] }],
    ['tests', [{ op: 'test', path: '/a/b', value: [1, 2, 3] }], document],
    ['tests what is missing as null', [{ op: 'test', path: '/nothing', value: null }], document],
  ])('%s', (_, operations, expected) => {
    const before = JSON.stringify(document);
    expect(applyJsonPatch(document, operations)).toEqual(expected);
    expect(JSON.stringify(document)).toBe(before);
  });

  it.each<[string, JsonPatchOperation]>([
    ['a test that fails', { op: 'test', path: '/c', value: 'e' }],
    ['a missing member', { op: 'remove', path: '/z' }],
    ['a missing parent', { op: 'add', path: '/z/y', value: 1 }],
    ['an index past the end', { op: 'add', path: '/a/b/4', value: 1 }],
    ['an index that is none', { op: 'add', path: '/a/b/x', value: 1 }],
    ['a path into a scalar', { op: 'add', path: '/c/x', value: 1 }],
    ['a path that is inherited', { op: 'remove', path: '/constructor' }],
    ['an operation nobody knows', { op: 'merge' as 'add', path: '/c' }],
  ])('refuses %s without saying why', (_, operation) => {
    expect(statusOf([operation])).toEqual({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: 'the server rejected our request due to an error in our request',
      reason: 'Invalid',
      details: {},
      code: 422,
    });
  });

  it('refuses too many operations', () => {
    const operations = Array.from(
      { length: 10_001 },
      (): JsonPatchOperation => ({ op: 'test', path: '/c', value: 'd' }),
    );
    expect(statusOf(operations)).toMatchObject({ code: 413, reason: 'RequestEntityTooLarge' });
  });

  it('refuses copies that grow without bound', () => {
    const operations = Array.from(
      { length: 40 },
      (): JsonPatchOperation => ({ op: 'copy', from: '/a', path: '/a/-' }),
    );
    expect(statusOf(operations, { a: ['x'.repeat(100)] })).toMatchObject({ code: 422 });
  });

  it('gives back what it added', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue()),
        fc.string(),
        fc.jsonValue(),
        (object, key, value) => {
          const path = `/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`;
          const added = applyJsonPatch(object, [
            { op: 'add', path, value },
            { op: 'test', path, value },
          ]);
          const { [key]: _, ...rest } = object;
          expect(applyJsonPatch(added, [{ op: 'remove', path }])).toEqual(rest);
        },
      ),
    );
  });
});
