import type { ConfigMap, Secret, ServiceAccount } from '#server/kube';
import { as, type KindDefinition } from '../kind.ts';
import { ageColumn, column, nameColumn } from './cells.ts';
import { configMapStrategy, secretStrategy, serviceAccountStrategy } from './config-strategy.ts';
import { defineKind } from './define.ts';

function size(map: Record<string, string> | undefined): number {
  return Object.keys(map ?? {}).length;
}

export const configKinds: readonly KindDefinition[] = [
  defineKind({
    group: '',
    kind: 'ConfigMap',
    plural: 'configmaps',
    namespaced: true,
    types: 'core/v1',
    shortNames: ['cm'],
    strategy: configMapStrategy,
    columns: [
      nameColumn,
      column(
        'Data',
        'How many entries it has.',
        (object) => size(as<ConfigMap>(object).data) + size(as<ConfigMap>(object).binaryData),
      ),
      ageColumn,
    ],
  }),
  defineKind({
    group: '',
    kind: 'Secret',
    plural: 'secrets',
    namespaced: true,
    types: 'core/v1',
    strategy: secretStrategy,
    columns: [
      nameColumn,
      column('Type', 'What the secret is for.', (object) => as<Secret>(object).type ?? ''),
      column('Data', 'How many entries it has.', (object) => size(as<Secret>(object).data)),
      ageColumn,
    ],
    selectableFields: { type: (object) => as<Secret>(object).type ?? '' },
  }),
  defineKind({
    group: '',
    kind: 'ServiceAccount',
    plural: 'serviceaccounts',
    namespaced: true,
    types: 'core/v1',
    shortNames: ['sa'],
    subresources: [
      {
        name: 'token',
        kind: 'TokenRequest',
        group: 'authentication.k8s.io',
        version: 'v1',
        verbs: ['create'],
      },
    ],
    strategy: serviceAccountStrategy,
    columns: [
      nameColumn,
      column(
        'Secrets',
        'How many secrets it may use.',
        (object) => as<ServiceAccount>(object).secrets?.length ?? 0,
      ),
      ageColumn,
    ],
  }),
];
