import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  asMember,
  difference,
  eachPath,
  type FieldSet,
  intersection,
  isEmpty,
  isFieldSet,
  LEAF,
  recursiveDifference,
  sorted,
  union,
} from './field-set.ts';

const element = fc.constantFrom('f:a', 'f:b', 'k:{"n":1}', 'k:{"n":10}', 'k:{"n":2}', 'v:"x"');
const paths = fc.array(fc.array(element, { minLength: 1, maxLength: 3 }), { maxLength: 8 });

function setOf(list: readonly (readonly string[])[]): FieldSet {
  return list.map(pathSet).reduce(union, LEAF);
}

function pathSet(path: readonly string[]): FieldSet {
  return path.reduceRight<FieldSet>((below, part) => ({ [part]: below }), LEAF);
}

function pathsOf(set: FieldSet): string[] {
  const found: string[] = [];
  eachPath(set, (path) => found.push(JSON.stringify(path)));
  return found.sort();
}

const keys = (list: readonly (readonly string[])[]): string[] =>
  [...new Set(list.map((path) => JSON.stringify(path)))].sort();

describe('field sets', () => {
  it('hold the paths put into them, in the form of FieldsV1', () => {
    const set = setOf([
      ['f:spec', 'f:replicas'],
      ['f:spec', 'f:list', 'k:{"name":"a"}'],
      ['f:spec', 'f:list', 'k:{"name":"a"}', 'f:name'],
    ]);
    expect(set).toEqual({
      'f:spec': { 'f:replicas': {}, 'f:list': { 'k:{"name":"a"}': { '.': {}, 'f:name': {} } } },
    });
    fc.assert(
      fc.property(paths, (list) => {
        expect(pathsOf(setOf(list))).toEqual(keys(list));
      }),
    );
  });

  it('unite, intersect and subtract as sets of paths do', () => {
    fc.assert(
      fc.property(paths, paths, (a, b) => {
        const [left, right] = [keys(a), keys(b)];
        const [x, y] = [setOf(a), setOf(b)];
        expect(pathsOf(union(x, y))).toEqual([...new Set([...left, ...right])].sort());
        expect(pathsOf(intersection(x, y))).toEqual(left.filter((path) => right.includes(path)));
        expect(pathsOf(difference(x, y))).toEqual(left.filter((path) => !right.includes(path)));
      }),
    );
  });

  it('lose everything below a path when subtracted recursively', () => {
    fc.assert(
      fc.property(paths, paths, (a, b) => {
        const covered = (path: readonly string[]): boolean =>
          b.some((prefix) => prefix.every((part, i) => part === path[i]));
        const rest = keys(a.filter((path) => !covered(path)));
        expect(pathsOf(recursiveDifference(setOf(a), setOf(b)))).toEqual(rest);
      }),
    );
  });

  it('answer the very same object when nothing changes', () => {
    const set = setOf([['f:a'], ['f:b', 'f:c']]);
    const part = setOf([['f:a']]);
    const other = setOf([['f:z']]);
    expect([union(set, part), difference(set, other), recursiveDifference(set, other), sorted(set)]).toEqual(
      Array(4).fill(set),
    );
    expect(union(set, part)).toBe(set);
    expect(difference(set, other)).toBe(set);
    expect(sorted(set)).toBe(set);
  });

  it('are written in upstream’s order: names, keys by value, values', () => {
    const set = setOf([['v:"x"'], ['k:{"n":10}'], ['f:b'], ['k:{"n":2}'], ['f:a']]);
    expect(Object.keys(sorted(set))).toEqual(['f:a', 'f:b', 'k:{"n":2}', 'k:{"n":10}', 'v:"x"']);
    fc.assert(
      fc.property(paths, (list) => {
        expect(pathsOf(sorted(setOf(list)))).toEqual(keys(list));
      }),
    );
  });

  it('tell a member with children from one without', () => {
    expect(asMember(LEAF)).toEqual({});
    expect(asMember({ 'f:a': LEAF })).toEqual({ '.': {}, 'f:a': {} });
    expect([isEmpty(LEAF), isEmpty({ 'f:a': LEAF })]).toEqual([true, false]);
  });

  it('are recognised, and nothing else is', () => {
    expect(isFieldSet({ 'f:a': { '.': {}, 'k:{"a":1}': {} } })).toBe(true);
    expect([isFieldSet({ a: {} }), isFieldSet({ 'f:a': 1 }), isFieldSet([]), isFieldSet(null)]).toEqual(
      Array(4).fill(false),
    );
  });
});
