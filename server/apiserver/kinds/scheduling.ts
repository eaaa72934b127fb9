import type { PriorityClass } from '#server/kube';
import { as, type KindDefinition } from '../kind.ts';
import { ageColumn, column, integerColumn, nameColumn } from './cells.ts';
import { defineKind } from './define.ts';
import { priorityClassStrategy } from './scheduling-strategy.ts';

export const schedulingKinds: readonly KindDefinition[] = [
  defineKind({
    group: 'scheduling.k8s.io',
    kind: 'PriorityClass',
    plural: 'priorityclasses',
    namespaced: false,
    types: 'scheduling/v1',
    shortNames: ['pc'],
    strategy: priorityClassStrategy,
    columns: [
      nameColumn,
      integerColumn(
        'Value',
        'The priority pods of the class get.',
        (object) => as<PriorityClass>(object).value ?? 0,
      ),
      column(
        'Global-Default',
        'Whether pods without a class get it.',
        (object) => as<PriorityClass>(object).globalDefault ?? false,
        { type: 'boolean' },
      ),
      ageColumn,
      column(
        'PreemptionPolicy',
        'Whether its pods may displace others.',
        (object) => as<PriorityClass>(object).preemptionPolicy ?? '',
      ),
    ],
  }),
];
