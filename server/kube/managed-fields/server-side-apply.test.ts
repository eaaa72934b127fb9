import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { UnstructuredObject } from '../object.ts';
import { builtinSchema } from '../schema.ts';
import { StatusError } from '../status-error.ts';
import { createManagedObjects, FIRST, owners, SECOND } from '../testing/managed-objects.ts';

const deployments = createManagedObjects('apps/v1', 'Deployment', builtinSchema('apps/v1#Deployment'));
const configMaps = createManagedObjects('v1', 'ConfigMap', builtinSchema('core/v1#ConfigMap'));
const services = createManagedObjects('v1', 'Service', builtinSchema('core/v1#Service'));
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

const refusal = (action: () => unknown): StatusError['status'] | undefined => {
  try {
    action();
  } catch (error) {
    if (error instanceof StatusError) return error.status;
  }
  return undefined;
};

const withContainers = (...containers: object[]): object => ({
  spec: { template: { spec: { containers } } },
});

function containersOf(object: UnstructuredObject): unknown {
  const { template } = object['spec'] as { template: { spec: { containers: unknown } } };
  return template.spec.containers;
}

describe('an apply', () => {
  it('creates, and owns what it says', () => {
    const applied = { metadata: { name: 'x', labels: { a: 'b' } }, data: { k: 'v' } };
    expect(configMaps.apply(undefined, applied, { manager: 'ann' })).toEqual({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      data: { k: 'v' },
      metadata: {
        name: 'x',
        labels: { a: 'b' },
        managedFields: [
          {
            manager: 'ann',
            operation: 'Apply',
            apiVersion: 'v1',
            time: FIRST,
            fieldsType: 'FieldsV1',
            fieldsV1: { 'f:data': { 'f:k': {} }, 'f:metadata': { 'f:labels': { 'f:a': {} } } },
          },
        ],
      },
    });
  });

  it('removes what its manager leaves out, unless someone else owns it', () => {
    const first = configMaps.apply(undefined, { data: { mine: '1', shared: '1' } }, { manager: 'ann' });
    const second = configMaps.apply(first, { data: { shared: '1' } }, { manager: 'bob' });
    const third = configMaps.apply(second, {}, { manager: 'ann', time: SECOND });
    expect(third['data']).toEqual({ shared: '1' });
    expect(owners(third)).toEqual({ 'bob Apply': { 'f:data': { 'f:shared': {} } } });
  });

  it('removes list items it leaves out and keeps those of others', () => {
    const first = deployments.apply(undefined, withContainers({ name: 'a' }, { name: 'b', image: '1' }), {
      manager: 'ann',
    });
    const second = deployments.apply(first, withContainers({ name: 'c' }), { manager: 'bob' });
    const third = deployments.apply(second, withContainers({ name: 'b' }), { manager: 'ann' });
    expect(containersOf(third)).toEqual([{ name: 'b' }, { name: 'c' }]);
  });

  it('orders list items as applied, the others around them', () => {
    const live = deployments.create(withContainers({ name: 'a' }, { name: 'b' }, { name: 'c' }), {
      manager: 'm',
    });
    const next = deployments.apply(live, withContainers({ name: 'c' }, { name: 'new' }, { name: 'a' }), {
      manager: 'ann',
    });
    expect(containersOf(next)).toEqual([{ name: 'b' }, { name: 'c' }, { name: 'new' }, { name: 'a' }]);
  });

  it('replaces atomic values whole', () => {
    const live = services.create({ spec: { selector: { a: '1', b: '2' } } }, { manager: 'm' });
    const next = services.apply(live, { spec: { selector: { a: '1' } } }, { manager: 'ann', force: true });
    expect(next['spec']).toMatchObject({ selector: { a: '1' } });
    expect(owners(next)).toEqual({ 'ann Apply': { 'f:spec': { 'f:selector': {} } } });
  });

  it('that changes nothing keeps the time', () => {
    const live = configMaps.apply(undefined, { data: { k: 'v' } }, { manager: 'ann' });
    expect(configMaps.apply(live, { data: { k: 'v' } }, { manager: 'ann', time: SECOND })).toEqual(live);
  });

  it('cannot own the status of the object', () => {
    const next = deployments.apply(
      undefined,
      { spec: { replicas: 1 }, status: { replicas: 1 } },
      { manager: 'ann' },
    );
    expect(owners(next)).toEqual({ 'ann Apply': { 'f:spec': { 'f:replicas': {} } } });
  });

  it('shares what it says the same as others', () => {
    const live = deployments.create({ spec: { replicas: 3 } }, { manager: 'scaler' });
    const next = deployments.apply(live, { spec: { replicas: 3 } }, { manager: 'ann' });
    expect(Object.keys(owners(next))).toEqual(['ann Apply', 'scaler Update']);
  });
});

describe('a conflict', () => {
  const live = deployments.update(
    deployments.create({ ...withContainers({ name: 'a', image: '1' }) }, { manager: 'ann' }),
    { spec: { replicas: 3, template: { spec: { containers: [{ name: 'a', image: '1' }] } } } },
    { manager: 'scaler', subresource: 'scale', time: SECOND },
  );

  it('names the manager and the field', () => {
    expect(refusal(() => deployments.apply(live, { spec: { replicas: 1 } }, { manager: 'bob' }))).toEqual({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message:
        'Apply failed with 1 conflict: conflict with "scaler" with subresource "scale" using apps/v1: .spec.replicas',
      reason: 'Conflict',
      details: {
        causes: [
          {
            reason: 'FieldManagerConflict',
            message: 'conflict with "scaler" with subresource "scale" using apps/v1',
            field: '.spec.replicas',
          },
        ],
      },
      code: 409,
    });
  });

  it('lists several by manager', () => {
    const spec = { replicas: 1, template: { spec: { containers: [{ name: 'a', image: '2' }] } } };
    expect(refusal(() => deployments.apply(live, { spec }, { manager: 'bob' }))?.message).toBe(
      [
        'Apply failed with 2 conflicts: conflicts with "ann" using apps/v1:',
        '- .spec.template.spec.containers[name="a"].image',
        'conflicts with "scaler" with subresource "scale" using apps/v1:',
        '- .spec.replicas',
      ].join('\n'),
    );
  });

  it('with an applier says no version', () => {
    const applied = configMaps.apply(undefined, { data: { k: '1' } }, { manager: 'ann' });
    expect(refusal(() => configMaps.apply(applied, { data: { k: '2' } }, { manager: 'bob' }))?.message).toBe(
      'Apply failed with 1 conflict: conflict with "ann": .data.k',
    );
  });

  it('is taken by force', () => {
    const next = deployments.apply(live, { spec: { replicas: 1 } }, { manager: 'bob', force: true });
    expect(next['spec']).toMatchObject({ replicas: 1 });
    expect(owners(next)['bob Apply']).toEqual({ 'f:spec': { 'f:replicas': {} } });
    expect(owners(next)).not.toHaveProperty(['scaler Update']);
  });

  it('with an object nobody manages is with before-first-apply', () => {
    const unmanaged: UnstructuredObject = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'x', uid: 'u' },
      data: { k: 'v', other: 'v' },
    };
    expect(
      refusal(() => configMaps.apply(unmanaged, { data: { k: 'w' } }, { manager: 'ann' }))?.message,
    ).toBe('Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .data.k');
    const forced = configMaps.apply(unmanaged, { data: { k: 'w' } }, { manager: 'ann', force: true });
    expect(owners(forced)).toEqual({
      'ann Apply': { 'f:data': { 'f:k': {} } },
      'before-first-apply Update': { 'f:data': { '.': {}, 'f:other': {} } },
    });
  });
});

describe('client-side apply', () => {
  const lastApplied = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'x' },
    data: { k: 'v', l: 'v' },
  };
  const live = configMaps.create(
    {
      metadata: { name: 'x', annotations: { [LAST_APPLIED]: JSON.stringify(lastApplied) } },
      data: { k: 'v', l: 'edited' },
    },
    { manager: 'kubectl-client-side-apply' },
  );

  it('is continued by kubectl where nobody changed what it left', () => {
    const next = configMaps.apply(live, { data: { k: '<new>' } }, { manager: 'kubectl' });
    expect(next['data']).toEqual({ k: '<new>', l: 'edited' });
    expect(next.metadata.annotations).toEqual({
      [LAST_APPLIED]:
        '{"apiVersion":"v1","data":{"k":"\\u003cnew\\u003e"},"kind":"ConfigMap","metadata":{"name":"x"}}\n',
    });
    expect(
      refusal(() => configMaps.apply(live, { data: { l: 'new' } }, { manager: 'kubectl' }))?.message,
    ).toBe('Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using v1: .data.l');
  });

  it('is a manager like others to everyone else', () => {
    expect(refusal(() => configMaps.apply(live, { data: { k: 'new' } }, { manager: 'ann' }))?.reason).toBe(
      'Conflict',
    );
  });
});

describe('an apply that makes no sense', () => {
  it('is refused in upstream’s words', () => {
    const broken = {
      metadata: { name: 'x', namespace: 'n' },
      spec: {
        foo: 1,
        replicas: 'x',
        template: { spec: { containers: [{ name: 'a' }, { name: 'a', image: 1 }] } },
      },
    };
    expect(refusal(() => deployments.apply(undefined, broken, { manager: 'ann' }))).toMatchObject({
      code: 500,
      message: [
        'failed to create typed patch object (n/x; apps/v1, Kind=Deployment): errors:',
        '  .spec.foo: field not declared in schema',
        '  .spec.replicas: expected numeric (int or float), got string',
        '  .spec.template.spec.containers: duplicate entries for key [name="a"]',
        '  .spec.template.spec.containers[name="a"].image: expected string, got &value.valueUnstructured{Value:1}',
      ].join('\n'),
    });
    const managed = { metadata: { name: 'x', managedFields: [] } };
    expect(refusal(() => deployments.apply(undefined, managed, { manager: 'ann' }))?.message).toBe(
      'metadata.managedFields must be nil',
    );
    const live = deployments.create({}, { manager: 'm' });
    const old = { apiVersion: 'apps/v1beta1' };
    expect(refusal(() => deployments.apply(live, old, { manager: 'ann' }))?.message).toBe(
      'Incorrect version specified in apply patch. Specified patch version: apps/v1beta1, expected: apps/v1',
    );
  });
});

describe('applies in any order', () => {
  const key = fc.constantFrom('a', 'b', 'c');
  const apply = fc.record({
    manager: fc.constantFrom('ann', 'bob'),
    data: fc.dictionary(key, fc.constantFrom('1', '2')),
  });

  it('leave exactly what somebody applies last, each value owned', () => {
    fc.assert(
      fc.property(fc.array(apply, { minLength: 1, maxLength: 6 }), (applies) => {
        let live: UnstructuredObject | undefined;
        for (const { manager, data } of applies)
          live = configMaps.apply(live, { data }, { manager, force: true });
        const last = applies[applies.length - 1];
        const data = (live?.['data'] ?? {}) as Record<string, string>;
        expect(data).toMatchObject(last?.data ?? {});
        const owned = new Set(
          Object.values(owners(live as UnstructuredObject)).flatMap((set) =>
            Object.keys((set as Record<string, object>)['f:data'] ?? {}).map((element) => element.slice(2)),
          ),
        );
        expect([...owned].filter((name) => name !== '').sort()).toEqual(Object.keys(data).sort());
      }),
    );
  });
});

describe('zero values', () => {
  it('count in what is applied, and not in what is stored', () => {
    const live = deployments.create({ spec: { paused: false, replicas: 1 } }, { manager: 'm' });
    expect(owners(live)).toEqual({ 'm Update': { 'f:spec': { 'f:replicas': {} } } });
    const next = deployments.apply(live, { spec: { minReadySeconds: 0 } }, { manager: 'ann' });
    expect(owners(next)['ann Apply']).toEqual({ 'f:spec': { 'f:minReadySeconds': {} } });
  });

  it('of null take a field away, against whoever owns it', () => {
    const live = deployments.create({ spec: { replicas: 1 } }, { manager: 'm' });
    const applied = { spec: { replicas: null } };
    expect(refusal(() => deployments.apply(live, applied, { manager: 'ann' }))?.message).toBe(
      'Apply failed with 1 conflict: conflict with "m" using apps/v1: .spec.replicas',
    );
    const next = deployments.apply(live, applied, { manager: 'ann', force: true });
    expect(next['spec']).toEqual({});
  });
});
