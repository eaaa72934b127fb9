import {
  type ControllerRevision,
  controllerOf,
  type DaemonSet,
  type Deployment,
  type ReplicaSet,
  type UnstructuredObject,
} from '#server/kube';
import { as, type KindDefinition } from '../kind.ts';
import {
  controllerRevisionStrategy,
  daemonSetStrategy,
  deploymentStrategy,
  replicaSetStrategy,
} from './apps-strategy.ts';
import { ageColumn, column, formatLabels, integerColumn, nameColumn, templateColumns } from './cells.ts';
import { defineKind } from './define.ts';

const scale = { specReplicas: 'spec.replicas', statusReplicas: 'status.replicas', selector: 'spec.selector' };

const deployment = defineKind({
  group: 'apps',
  kind: 'Deployment',
  plural: 'deployments',
  namespaced: true,
  types: 'apps/v1',
  shortNames: ['deploy'],
  categories: ['all'],
  hasStatus: true,
  scale,
  strategy: deploymentStrategy,
  columns: [
    nameColumn,
    column('Ready', 'Pods ready, of all wanted.', (object) => {
      const { spec, status } = as<Deployment>(object);
      return `${status?.readyReplicas ?? 0}/${spec?.replicas ?? 0}`;
    }),
    integerColumn(
      'Up-to-date',
      'Pods made from the current template.',
      (object) => as<Deployment>(object).status?.updatedReplicas ?? 0,
    ),
    integerColumn(
      'Available',
      'Pods ready for long enough.',
      (object) => as<Deployment>(object).status?.availableReplicas ?? 0,
    ),
    ageColumn,
    ...templateColumns(),
  ],
});

const replicaSet = defineKind({
  group: 'apps',
  kind: 'ReplicaSet',
  plural: 'replicasets',
  namespaced: true,
  types: 'apps/v1',
  shortNames: ['rs'],
  categories: ['all'],
  hasStatus: true,
  scale,
  strategy: replicaSetStrategy,
  columns: [
    nameColumn,
    integerColumn('Desired', 'Pods wanted.', (object) => as<ReplicaSet>(object).spec?.replicas ?? 0),
    integerColumn('Current', 'Pods there are.', (object) => as<ReplicaSet>(object).status?.replicas ?? 0),
    integerColumn(
      'Ready',
      'Pods that are ready.',
      (object) => as<ReplicaSet>(object).status?.readyReplicas ?? 0,
    ),
    ageColumn,
    ...templateColumns(),
  ],
  selectableFields: { 'status.replicas': (object) => String(as<ReplicaSet>(object).status?.replicas ?? 0) },
});

type Counts = NonNullable<DaemonSet['status']>;

function count(name: keyof Counts): (object: UnstructuredObject) => number {
  return (object) => Number(as<DaemonSet>(object).status?.[name] ?? 0);
}

const daemonSet = defineKind({
  group: 'apps',
  kind: 'DaemonSet',
  plural: 'daemonsets',
  namespaced: true,
  types: 'apps/v1',
  shortNames: ['ds'],
  categories: ['all'],
  hasStatus: true,
  strategy: daemonSetStrategy,
  columns: [
    nameColumn,
    integerColumn('Desired', 'Nodes that should run the pod.', count('desiredNumberScheduled')),
    integerColumn('Current', 'Nodes that run the pod and should.', count('currentNumberScheduled')),
    integerColumn('Ready', 'Nodes whose pod is ready.', count('numberReady')),
    integerColumn(
      'Up-to-date',
      'Nodes whose pod is of the current template.',
      count('updatedNumberScheduled'),
    ),
    integerColumn('Available', 'Nodes whose pod is ready for long enough.', count('numberAvailable')),
    column('Node Selector', 'The labels a node must have.', (object) =>
      formatLabels(as<DaemonSet>(object).spec?.template.spec?.nodeSelector),
    ),
    ageColumn,
    ...templateColumns(),
  ],
});

const controllerRevision = defineKind({
  group: 'apps',
  kind: 'ControllerRevision',
  plural: 'controllerrevisions',
  namespaced: true,
  types: 'apps/v1',
  strategy: controllerRevisionStrategy,
  columns: [
    nameColumn,
    column('Controller', 'Whose revision it is.', (object) => {
      const owner = controllerOf(object);
      if (!owner) return '<none>';
      const slash = owner.apiVersion.indexOf('/');
      const kind = owner.kind.toLowerCase();
      return slash < 0
        ? `${kind}/${owner.name}`
        : `${kind}.${owner.apiVersion.slice(0, slash)}/${owner.name}`;
    }),
    integerColumn(
      'Revision',
      'Its number, rising.',
      (object) => as<ControllerRevision>(object).revision ?? 0,
    ),
    ageColumn,
  ],
});

/** Models kubernetes/pkg/registry/apps and the printers of apps/v1. */
export const appsKinds: readonly KindDefinition[] = [deployment, replicaSet, daemonSet, controllerRevision];
