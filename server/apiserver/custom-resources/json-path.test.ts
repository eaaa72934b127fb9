import { describe, expect, it } from 'vitest';
import { compileJsonPath } from './json-path.ts';

const object = {
  metadata: { annotations: { 'a.b/c': 'x' } },
  spec: { replicas: 3, names: ['p', 'q', 'r'], 'with-dash': 1 },
  status: {
    conditions: [
      { type: 'Synced', status: 'False', count: 1 },
      { type: 'Ready', status: 'True', reason: "it's", count: 2 },
    ],
  },
};

describe('JSONPath of printer columns', () => {
  it.each<[string, unknown[]]>([
    ['.spec.replicas', [3]],
    ['.spec.with-dash', [1]],
    ['.spec.names[0]', ['p']],
    ['.spec.names[-1]', ['r']],
    ['.spec.names[9]', []],
    ['.spec.names[*]', ['p', 'q', 'r']],
    ['.spec.names[0:2]', ['p', 'q']],
    ['.status.conditions[?(@.type=="Ready")].status', ['True']],
    [".status.conditions[?(@.type == 'Ready')].reason", ["it's"]],
    ['.status.conditions[?(@.type!="Ready")].type', ['Synced']],
    ['.status.conditions[?(@.count>=2)].type', ['Ready']],
    ['.status.conditions[?(@.reason)].type', ['Ready']],
    ['.status.conditions[?(@.type=="Gone")].status', []],
    ['.metadata.annotations.a\\.b/c', ['x']],
    [".metadata.annotations['a.b/c']", ['x']],
    ['.spec.nothing.at.all', []],
    ['..type', ['Synced', 'Ready']],
    ['.spec.*', [3, ['p', 'q', 'r'], 1]],
    ['.', [object]],
    ['.constructor', []],
  ])('%s', (path, expected) => {
    expect(compileJsonPath(path)?.(object)).toEqual(expected);
  });

  it.each(['.spec[', '.a[?(@.b=]', 'spec', '.a[x]', '.a..'])('does not take %s', (path) => {
    expect(compileJsonPath(path)).toBeUndefined();
  });
});
