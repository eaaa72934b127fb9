import type { Lease } from '#server/kube';
import { as, type KindDefinition } from '../kind.ts';
import { ageColumn, column, nameColumn } from './cells.ts';
import { defineKind } from './define.ts';
import { leaseStrategy } from './lease-strategy.ts';

export const leaseKinds: readonly KindDefinition[] = [
  defineKind({
    group: 'coordination.k8s.io',
    kind: 'Lease',
    plural: 'leases',
    namespaced: true,
    types: 'coordination/v1',
    strategy: leaseStrategy,
    columns: [
      nameColumn,
      column('Holder', 'Who holds the lease.', (object) => as<Lease>(object).spec?.holderIdentity ?? ''),
      ageColumn,
    ],
  }),
];
