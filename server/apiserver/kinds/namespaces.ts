import type { Namespace } from '#server/kube';
import { as, type KindDefinition } from '../kind.ts';
import { ageColumn, column, nameColumn } from './cells.ts';
import { defineKind } from './define.ts';
import { namespaceStrategy } from './namespace-strategy.ts';

export const namespaceKinds: readonly KindDefinition[] = [
  defineKind({
    group: '',
    kind: 'Namespace',
    plural: 'namespaces',
    namespaced: false,
    types: 'core/v1',
    shortNames: ['ns'],
    verbs: ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'],
    hasStatus: true,
    subresources: [{ name: 'finalize', kind: 'Namespace', verbs: ['update'] }],
    strategy: namespaceStrategy,
    columns: [
      nameColumn,
      column(
        'Status',
        'Whether the namespace is in use or going away.',
        (object) => as<Namespace>(object).status?.phase ?? '',
      ),
      ageColumn,
    ],
    selectableFields: { 'status.phase': (object) => as<Namespace>(object).status?.phase ?? '' },
  }),
];
