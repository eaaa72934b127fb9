import type { PodDisruptionBudget } from '#server/kube';
import { as, type KindDefinition } from '../kind.ts';
import { ageColumn, column, integerColumn, nameColumn } from './cells.ts';
import { defineKind } from './define.ts';
import { podDisruptionBudgetStrategy } from './policy-strategy.ts';

export const policyKinds: readonly KindDefinition[] = [
  defineKind({
    group: 'policy',
    kind: 'PodDisruptionBudget',
    plural: 'poddisruptionbudgets',
    namespaced: true,
    types: 'policy/v1',
    shortNames: ['pdb'],
    hasStatus: true,
    strategy: podDisruptionBudgetStrategy,
    columns: [
      nameColumn,
      column('Min Available', 'Pods that must stay.', (object) =>
        String(as<PodDisruptionBudget>(object).spec?.minAvailable ?? 'N/A'),
      ),
      column('Max Unavailable', 'Pods that may be away.', (object) =>
        String(as<PodDisruptionBudget>(object).spec?.maxUnavailable ?? 'N/A'),
      ),
      integerColumn(
        'Allowed Disruptions',
        'Pods that may be evicted now.',
        (object) => as<PodDisruptionBudget>(object).status?.disruptionsAllowed ?? 0,
      ),
      ageColumn,
    ],
  }),
];
