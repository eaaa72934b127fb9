import type { CSIDriver, CSINode, StorageClass } from '#server/kube';
import { as, type KindDefinition } from '../kind.ts';
import { ageColumn, column, integerColumn, nameColumn } from './cells.ts';
import { defineKind } from './define.ts';
import { csiDriverStrategy, csiNodeStrategy, storageClassStrategy } from './storage-strategy.ts';

const DEFAULT_CLASS = [
  'storageclass.kubernetes.io/is-default-class',
  'storageclass.beta.kubernetes.io/is-default-class',
];

function isDefaultClass(object: StorageClass): boolean {
  return DEFAULT_CLASS.some((annotation) => object.metadata.annotations?.[annotation] === 'true');
}

const csiDriver = defineKind({
  group: 'storage.k8s.io',
  kind: 'CSIDriver',
  plural: 'csidrivers',
  namespaced: false,
  types: 'storage/v1',
  strategy: csiDriverStrategy,
  columns: [
    nameColumn,
    column(
      'AttachRequired',
      'Whether volumes are attached to nodes.',
      (object) => as<CSIDriver>(object).spec.attachRequired ?? true,
      { type: 'boolean' },
    ),
    column(
      'PodInfoOnMount',
      'Whether mounting is told the pod.',
      (object) => as<CSIDriver>(object).spec.podInfoOnMount ?? false,
      { type: 'boolean' },
    ),
    column(
      'StorageCapacity',
      'Whether the scheduler looks at capacity.',
      (object) => as<CSIDriver>(object).spec.storageCapacity ?? false,
      { type: 'boolean' },
    ),
    column('TokenRequests', 'The audiences of the tokens it is given.', (object) => {
      const audiences = (as<CSIDriver>(object).spec.tokenRequests ?? []).map((request) => request.audience);
      return audiences.length === 0 ? '<unset>' : audiences.join(',');
    }),
    column(
      'RequiresRepublish',
      'Whether volumes are published again and again.',
      (object) => as<CSIDriver>(object).spec.requiresRepublish ?? false,
      { type: 'boolean' },
    ),
    column(
      'Modes',
      'The lifecycles of volumes it knows.',
      (object) => (as<CSIDriver>(object).spec.volumeLifecycleModes ?? []).join(',') || '<none>',
    ),
    ageColumn,
  ],
});

const csiNode = defineKind({
  group: 'storage.k8s.io',
  kind: 'CSINode',
  plural: 'csinodes',
  namespaced: false,
  types: 'storage/v1',
  strategy: csiNodeStrategy,
  columns: [
    nameColumn,
    integerColumn(
      'Drivers',
      'How many drivers the node has.',
      (object) => as<CSINode>(object).spec.drivers?.length ?? 0,
    ),
    ageColumn,
  ],
});

const storageClass = defineKind({
  group: 'storage.k8s.io',
  kind: 'StorageClass',
  plural: 'storageclasses',
  namespaced: false,
  types: 'storage/v1',
  shortNames: ['sc'],
  strategy: storageClassStrategy,
  columns: [
    {
      ...nameColumn,
      cell: (object) =>
        isDefaultClass(as<StorageClass>(object)) ? `${object.metadata.name} (default)` : object.metadata.name,
    },
    column('Provisioner', 'Who makes the volumes.', (object) => as<StorageClass>(object).provisioner),
    column(
      'ReclaimPolicy',
      'What becomes of released volumes.',
      (object) => as<StorageClass>(object).reclaimPolicy ?? 'Delete',
    ),
    column(
      'VolumeBindingMode',
      'When volumes are made.',
      (object) => as<StorageClass>(object).volumeBindingMode ?? 'Immediate',
    ),
    column(
      'AllowVolumeExpansion',
      'Whether volumes can grow.',
      (object) => as<StorageClass>(object).allowVolumeExpansion ?? false,
    ),
    ageColumn,
  ],
});

/** Models kubernetes/pkg/registry/storage and the printers of storage/v1. */
export const storageKinds: readonly KindDefinition[] = [csiDriver, csiNode, storageClass];
