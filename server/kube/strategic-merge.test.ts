import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cloneJson } from './json-value.ts';
import { builtinSchema } from './schema.ts';
import { StatusError } from './status-error.ts';
import { applyStrategicMergePatch } from './strategic-merge.ts';

const podSpec = builtinSchema('core/v1#PodSpec');
const deploymentSpec = builtinSchema('apps/v1#DeploymentSpec');
const objectMeta = builtinSchema('meta/v1#ObjectMeta');

const refusal = (document: object, patch: object, schema = podSpec): { code: number; message: string } => {
  try {
    applyStrategicMergePatch(document, patch, schema);
  } catch (error) {
    if (error instanceof StatusError) return { code: error.code, message: error.message };
  }
  return { code: 0, message: 'no error' };
};

describe('strategic merge patch of lists of objects', () => {
  const live = {
    containers: [
      { name: 'a', image: '1', args: ['x'] },
      { name: 'b', image: '1' },
    ],
  };

  it('merges items by their key and appends new ones', () => {
    const patch = {
      containers: [
        { name: 'b', image: '2' },
        { name: 'c', image: '3' },
      ],
    };
    expect(applyStrategicMergePatch(live, patch, podSpec)).toEqual({
      containers: [
        { name: 'a', image: '1', args: ['x'] },
        { name: 'b', image: '2' },
        { name: 'c', image: '3' },
      ],
    });
  });

  it('deletes items, replaces lists and replaces lists without a merge key', () => {
    expect(
      applyStrategicMergePatch(live, { containers: [{ name: 'a', $patch: 'delete' }] }, podSpec),
    ).toEqual({
      containers: [{ name: 'b', image: '1' }],
    });
    const replace = { containers: [{ $patch: 'replace' }, { name: 'z' }] };
    expect(applyStrategicMergePatch(live, replace, podSpec)).toEqual({ containers: [{ name: 'z' }] });
    const args = { containers: [{ name: 'a', args: ['y'] }] };
    expect(applyStrategicMergePatch(live, args, podSpec)).toMatchObject({
      containers: [{ args: ['y'] }, {}],
    });
  });

  it('puts items in the announced order, others staying before those that followed them', () => {
    const many = { containers: ['a', 'b', 'c', 'd'].map((name) => ({ name })) };
    const patch = {
      '$setElementOrder/containers': [{ name: 'd' }, { name: 'b' }],
      containers: [{ name: 'b', image: '2' }],
    };
    expect(applyStrategicMergePatch(many, patch, podSpec)).toEqual({
      containers: [{ name: 'a' }, { name: 'c' }, { name: 'd' }, { name: 'b', image: '2' }],
    });
  });

  it('needs the merge key and a matching order', () => {
    expect(refusal(live, { containers: [{ image: 'x' }] })).toEqual({
      code: 500,
      message: 'map: map[image:x] does not contain declared merge key: name',
    });
    const wrong = { '$setElementOrder/containers': [{ name: 'a' }], containers: [{ name: 'b' }] };
    expect(refusal(live, wrong)).toEqual({
      code: 500,
      message:
        "The order in patch list:\n[map[name:b]]\n doesn't match $setElementOrder list:\n[map[name:a]]\n",
    });
    expect(refusal(live, { containers: [{ name: 'a', $patch: 'upsert' }] })).toEqual({
      code: 500,
      message: 'unknown patch type: upsert in map: map[$patch:upsert name:a]',
    });
  });
});

describe('strategic merge patch of lists of scalars', () => {
  const live = { finalizers: ['a', 'b', 'c'] };

  it('adds, deletes and orders', () => {
    expect(applyStrategicMergePatch(live, { finalizers: ['d', 'b'] }, objectMeta)).toEqual({
      finalizers: ['d', 'a', 'b', 'c'],
    });
    const patch = { '$deleteFromPrimitiveList/finalizers': ['b'], '$setElementOrder/finalizers': ['c', 'a'] };
    expect(applyStrategicMergePatch(live, patch, objectMeta)).toEqual({ finalizers: ['c', 'a'] });
  });
});

describe('strategic merge patch of objects', () => {
  const live = { replicas: 1, strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1 } } };

  it('keeps only the keys it is told to retain', () => {
    const patch = { strategy: { $retainKeys: ['type'], type: 'Recreate' } };
    expect(applyStrategicMergePatch(live, patch, deploymentSpec)).toEqual({
      replicas: 1,
      strategy: { type: 'Recreate' },
    });
    expect(refusal(live, { strategy: { $retainKeys: ['x'], type: 'y' } }, deploymentSpec)).toEqual({
      code: 400,
      message: 'invalid patch format of retainKeys',
    });
  });

  it('deletes and replaces as directed, and by null', () => {
    const gone = { strategy: { $patch: 'delete' }, replicas: null };
    expect(applyStrategicMergePatch(live, gone, deploymentSpec)).toEqual({ strategy: {} });
    const replaced = { strategy: { $patch: 'replace', type: 'Recreate' } };
    expect(applyStrategicMergePatch(live, replaced, deploymentSpec)).toMatchObject({
      strategy: { type: 'Recreate' },
    });
  });

  it('does not add nulls or directives', () => {
    const patch = {
      strategy: { type: null, rollingUpdate: { maxSurge: 1, maxUnavailable: null } },
      paused: null,
    };
    expect(applyStrategicMergePatch({}, patch, deploymentSpec)).toEqual({
      strategy: { rollingUpdate: { maxSurge: 1 } },
    });
    expect(applyStrategicMergePatch({}, { strategy: { $patch: 'delete' } }, deploymentSpec)).toEqual({});
  });
});

describe('strategic merge patch', () => {
  const name = fc.constantFrom('a', 'b', 'c', 'd');
  const container = fc.record({ name, image: fc.constantFrom('1', '2') });
  const spec = fc.record({
    containers: fc.uniqueArray(container, { selector: (item) => item.name }),
    nodeSelector: fc.dictionary(name, name),
  });

  it('is idempotent, holds what it says and leaves its arguments alone', () => {
    fc.assert(
      fc.property(spec, spec, (live, patch) => {
        const before = cloneJson([live, patch]);
        const once = applyStrategicMergePatch(live, patch, podSpec);
        expect(applyStrategicMergePatch(once, patch, podSpec)).toEqual(once);
        expect(once).toMatchObject({ nodeSelector: patch.nodeSelector });
        expect((once as typeof patch).containers).toEqual(expect.arrayContaining(patch.containers));
        expect([live, patch]).toEqual(before);
      }),
    );
  });
});

describe('an order with deletions', () => {
  it('puts new items where upstream puts them', () => {
    const live = { containers: [{ name: 'a' }, { name: 'b' }] };
    const patch = {
      '$setElementOrder/containers': [{ name: 'c' }],
      containers: [{ name: 'a', $patch: 'delete' }, { name: 'c' }],
    };
    expect(applyStrategicMergePatch(live, patch, podSpec)).toEqual({
      containers: [{ name: 'b' }, { name: 'c' }],
    });
    expect(refusal({ containers: [] }, { '$setElementOrder/containers': [{ name: 'c' }] })).toEqual({
      code: 500,
      message: 'no elements in any of the given slices',
    });
  });
});
