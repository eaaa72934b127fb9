import type { Node } from '#server/kube';
import { as, type KindDefinition } from '../kind.ts';
import { defineKind } from './define.ts';
import { nodeColumns } from './node-columns.ts';
import { nodeStrategy } from './node-strategy.ts';

export const nodeKinds: readonly KindDefinition[] = [
  defineKind({
    group: '',
    kind: 'Node',
    plural: 'nodes',
    namespaced: false,
    types: 'core/v1',
    shortNames: ['no'],
    hasStatus: true,
    subresources: [
      { name: 'proxy', kind: 'NodeProxyOptions', verbs: ['create', 'delete', 'get', 'patch', 'update'] },
    ],
    strategy: nodeStrategy,
    columns: nodeColumns,
    selectableFields: {
      'spec.unschedulable': (object) => String(as<Node>(object).spec?.unschedulable ?? false),
    },
  }),
];
