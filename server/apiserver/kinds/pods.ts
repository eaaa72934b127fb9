import type { Pod } from '#server/kube';
import { as, type KindDefinition } from '../kind.ts';
import { defineKind } from './define.ts';
import { podColumns } from './pod-columns.ts';
import { podStrategy } from './pod-strategy.ts';

const EDIT = ['get', 'patch', 'update'];
const CONNECT = ['create', 'get'];

export const podKinds: readonly KindDefinition[] = [
  defineKind({
    group: '',
    kind: 'Pod',
    plural: 'pods',
    namespaced: true,
    types: 'core/v1',
    shortNames: ['po'],
    categories: ['all'],
    hasStatus: true,
    subresources: [
      { name: 'attach', kind: 'PodAttachOptions', verbs: CONNECT },
      { name: 'binding', kind: 'Binding', verbs: ['create'] },
      { name: 'ephemeralcontainers', kind: 'Pod', verbs: EDIT },
      { name: 'eviction', kind: 'Eviction', group: 'policy', version: 'v1', verbs: ['create'] },
      { name: 'exec', kind: 'PodExecOptions', verbs: CONNECT },
      { name: 'log', kind: 'Pod', verbs: ['get'] },
      { name: 'portforward', kind: 'PodPortForwardOptions', verbs: CONNECT },
      { name: 'proxy', kind: 'PodProxyOptions', verbs: ['create', 'delete', 'get', 'patch', 'update'] },
      { name: 'resize', kind: 'Pod', verbs: EDIT },
    ],
    strategy: podStrategy,
    columns: podColumns,
    selectableFields: {
      'spec.nodeName': (object) => as<Pod>(object).spec?.nodeName ?? '',
      'spec.restartPolicy': (object) => as<Pod>(object).spec?.restartPolicy ?? '',
      'spec.schedulerName': (object) => as<Pod>(object).spec?.schedulerName ?? '',
      'spec.serviceAccountName': (object) => as<Pod>(object).spec?.serviceAccountName ?? '',
      'spec.hostNetwork': (object) => String(as<Pod>(object).spec?.hostNetwork ?? false),
      'status.phase': (object) => as<Pod>(object).status?.phase ?? '',
      'status.podIP': (object) => as<Pod>(object).status?.podIPs?.[0]?.ip ?? '',
      'status.podIPs': (object) => (as<Pod>(object).status?.podIPs ?? []).map((one) => one.ip).join(','),
      'status.nominatedNodeName': (object) => as<Pod>(object).status?.nominatedNodeName ?? '',
    },
  }),
  defineKind({
    group: '',
    kind: 'Binding',
    plural: 'bindings',
    namespaced: true,
    types: 'core/v1',
    verbs: ['create'],
    columns: [],
  }),
];
