import { describe, expect, it } from 'vitest';
import { customSchema } from '../custom-schema.ts';
import { builtinSchema } from '../schema.ts';
import { createManagedObjects, FIRST, owners, SECOND } from '../testing/managed-objects.ts';

const pods = createManagedObjects('v1', 'Pod', builtinSchema('core/v1#Pod'));
const configMaps = createManagedObjects('v1', 'ConfigMap', builtinSchema('core/v1#ConfigMap'));

describe('a create', () => {
  it('gives the creator everything but what the server sets and what is reset', () => {
    const pod = pods.create(
      {
        metadata: {
          name: 'p',
          namespace: 'default',
          uid: 'u',
          creationTimestamp: FIRST,
          labels: { app: 'a' },
        },
        spec: {
          containers: [{ name: 'c', image: 'i', ports: [{ containerPort: 80, protocol: 'TCP' }] }],
          tolerations: [{ operator: 'Exists' }],
          securityContext: {},
        },
        status: { phase: 'Pending' },
      },
      { manager: 'kubectl-create' },
    );
    expect(pod.metadata.managedFields).toEqual([
      {
        manager: 'kubectl-create',
        operation: 'Update',
        apiVersion: 'v1',
        time: FIRST,
        fieldsType: 'FieldsV1',
        fieldsV1: {
          'f:metadata': { 'f:labels': { '.': {}, 'f:app': {} } },
          'f:spec': {
            'f:containers': {
              'k:{"name":"c"}': {
                '.': {},
                'f:image': {},
                'f:name': {},
                'f:ports': {
                  '.': {},
                  'k:{"containerPort":80,"protocol":"TCP"}': {
                    '.': {},
                    'f:containerPort': {},
                    'f:protocol': {},
                  },
                },
                'f:resources': {},
              },
            },
            'f:securityContext': {},
            'f:tolerations': {},
          },
        },
      },
    ]);
  });

  it('takes the default of a list key that is missing', () => {
    const pod = pods.create(
      { spec: { containers: [{ name: 'c', ports: [{ containerPort: 80 }] }] } },
      { manager: 'm' },
    );
    expect(JSON.stringify(owners(pod))).toContain('k:{\\"containerPort\\":80,\\"protocol\\":\\"TCP\\"}');
  });
});

describe('an update', () => {
  const created = configMaps.create({ data: { a: '1', b: '1' } }, { manager: 'ann' });

  it('moves changed fields, drops removed ones and adds new ones', () => {
    const updated = configMaps.update(
      created,
      { data: { a: '2', c: '1' } },
      { manager: 'bob', time: SECOND },
    );
    expect(owners(updated)).toEqual({
      'ann Update': { 'f:data': {} },
      'bob Update': { 'f:data': { 'f:a': {}, 'f:c': {} } },
    });
    expect(updated.metadata.managedFields?.map(({ time }) => time)).toEqual([FIRST, SECOND]);
  });

  it('that changes nothing leaves the entries and their times as they are', () => {
    const updated = configMaps.update(created, {}, { manager: 'bob', time: SECOND });
    expect(updated.metadata.managedFields).toEqual(created.metadata.managedFields);
  });

  it('adds to what the manager owned before', () => {
    const updated = configMaps.update(
      created,
      { data: { a: '2', b: '1', c: '3' } },
      { manager: 'ann', time: SECOND },
    );
    expect(owners(updated)).toEqual({
      'ann Update': { 'f:data': { '.': {}, 'f:a': {}, 'f:b': {}, 'f:c': {} } },
    });
    expect(updated.metadata.managedFields).toHaveLength(1);
  });

  it('of the status owns status only, under its own entry', () => {
    const pod = pods.create({ spec: { nodeName: 'n' } }, { manager: 'kubelet' });
    const change = { spec: { nodeName: 'other' }, status: { phase: 'Running' } };
    const updated = pods.update(pod, change, { manager: 'kubelet', subresource: 'status', time: SECOND });
    expect(
      updated.metadata.managedFields?.map(({ subresource, fieldsV1 }) => [subresource, fieldsV1]),
    ).toEqual([
      [undefined, { 'f:spec': { 'f:nodeName': {} } }],
      ['status', { 'f:status': { 'f:phase': {} } }],
    ]);
  });

  it('records the status of conditions item by item, with members Go always writes', () => {
    const labelled = pods.create({ metadata: { name: 'p', labels: { a: 'b' } } }, { manager: 'm' });
    const status = { conditions: [{ type: 'Ready', status: 'True' }] };
    const updated = pods.update(
      labelled,
      { status },
      { manager: 'kubelet', subresource: 'status', time: SECOND },
    );
    expect(owners(updated)['kubelet Update']).toEqual({
      'f:status': {
        'f:conditions': {
          '.': {},
          'k:{"type":"Ready"}': {
            '.': {},
            'f:lastProbeTime': {},
            'f:lastTransitionTime': {},
            'f:status': {},
            'f:type': {},
          },
        },
      },
    });
  });

  it('of an object that never had managers records none', () => {
    const { managedFields: _, ...metadata } = created.metadata;
    expect(
      configMaps.update({ ...created, metadata }, { data: { a: '9' } }, { manager: 'bob' }).metadata
        .managedFields,
    ).toEqual([]);
  });

  it.each([[[]], [[{}]]])('with managedFields %j clears them', (managedFields) => {
    const metadata = { ...created.metadata, managedFields };
    expect(configMaps.update(created, { metadata }, { manager: 'bob' }).metadata.managedFields).toEqual([]);
  });

  it('with entries of its own replaces them, with broken ones keeps the stored', () => {
    const [entry] = created.metadata.managedFields ?? [];
    const sent = { ...created.metadata, managedFields: [{ ...entry, manager: 'eve' }] };
    expect(owners(configMaps.update(created, { metadata: sent }, { manager: 'bob' }))).toHaveProperty([
      'eve Update',
    ]);
    const broken = { ...created.metadata, managedFields: [{ ...entry, fieldsV1: { nonsense: 1 } }] };
    expect(owners(configMaps.update(created, { metadata: broken }, { manager: 'bob' }))).toHaveProperty([
      'ann Update',
    ]);
  });

  it('keeps at most ten updaters, the oldest melted together', () => {
    let live = configMaps.create({ data: { k0: '0' } }, { manager: 'm00', time: FIRST });
    for (let i = 1; i <= 12; i++) {
      const data = { ...(live['data'] as Record<string, string>), [`k${i}`]: '0' };
      const time = `2026-01-01T00:00:${String(10 + i)}Z`;
      live = configMaps.update(live, { data }, { manager: `m${String(i).padStart(2, '0')}`, time });
    }
    const entries = live.metadata.managedFields ?? [];
    expect(entries.map(({ manager }) => manager)).toEqual([
      'ancient-changes',
      'm04',
      'm05',
      'm06',
      'm07',
      'm08',
      'm09',
      'm10',
      'm11',
      'm12',
    ]);
    expect(entries[0]).toMatchObject({
      time: '2026-01-01T00:00:13Z',
      fieldsV1: { 'f:data': { '.': {}, 'f:k0': {}, 'f:k1': {}, 'f:k2': {}, 'f:k3': {} } },
    });
  });
});

describe('custom resources', () => {
  it('are owned as their schema says, free-form parts member by member', () => {
    const schema = customSchema({
      properties: {
        spec: {
          type: 'object',
          properties: {
            free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
            size: { type: 'integer' },
          },
        },
      },
    });
    const widgets = createManagedObjects('example.com/v1', 'Widget', schema);
    const widget = widgets.create({ spec: { size: 1, free: { a: { b: [1] } } } }, { manager: 'm' });
    expect(owners(widget)).toEqual({
      'm Update': {
        'f:spec': { '.': {}, 'f:free': { '.': {}, 'f:a': { '.': {}, 'f:b': {} } }, 'f:size': {} },
      },
    });
  });
});
