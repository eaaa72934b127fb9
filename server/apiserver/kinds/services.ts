import type { Service } from '#server/kube';
import { as, type KindDefinition } from '../kind.ts';
import { defineKind } from './define.ts';
import { serviceColumns } from './service-columns.ts';
import { serviceStrategy } from './service-strategy.ts';

export const serviceKinds: readonly KindDefinition[] = [
  defineKind({
    group: '',
    kind: 'Service',
    plural: 'services',
    namespaced: true,
    types: 'core/v1',
    shortNames: ['svc'],
    categories: ['all'],
    hasStatus: true,
    subresources: [
      { name: 'proxy', kind: 'ServiceProxyOptions', verbs: ['create', 'delete', 'get', 'patch', 'update'] },
    ],
    strategy: serviceStrategy,
    columns: serviceColumns,
    selectableFields: {
      'spec.clusterIP': (object) => as<Service>(object).spec?.clusterIP ?? '',
      'spec.type': (object) => as<Service>(object).spec?.type ?? '',
    },
  }),
];
