import type { Ids } from '#server/base';
import type { Client, Draft } from '#server/client';
import {
  controllerReference,
  deepEqual,
  generateName,
  isAlreadyExists,
  type KubeObject,
  type OwnerReference,
  type Resource,
} from '#server/kube';
import { find, saveChanges } from './changes.ts';
import { type ContractRef, type Machine, type MachineTemplate, machines } from './core-resources.ts';
import { type KubeadmConfig, type KubeadmConfigSpec, kubeadmConfigs } from './kubeadm-resources.ts';
import { type KubevirtMachine, kubevirtMachines, kubevirtMachineTemplates } from './kubevirt-resources.ts';
import {
  CLONED_FROM_KIND_ANNOTATION,
  CLONED_FROM_NAME_ANNOTATION,
  CLUSTER_NAME_LABEL,
  KUBEVIRT_MACHINE_FINALIZER,
  MACHINE_FINALIZER,
  MANAGER,
} from './vocabulary.ts';

/** Do two templates make the same Machines? Models mdutil.MachineTemplateUpToDate: limits of deletions may differ. */
export function sameTemplate(a: MachineTemplate, b: MachineTemplate): boolean {
  const essence = ({ metadata, spec }: MachineTemplate): object => {
    const { deletion: _, readinessGates: _gates, minReadySeconds: _seconds, ...rest } = spec;
    const labels = Object.fromEntries(
      Object.entries(metadata?.labels ?? {}).filter(([key]) => key !== 'machine-template-hash'),
    );
    return { ...rest, labels, annotations: metadata?.annotations ?? {} };
  };
  return deepEqual(essence(a), essence(b));
}

/** One Machine that is to be made, with all that belongs to it. */
export interface MachineOrder {
  client: Client;
  ids: Ids;
  /** The MachineSet or KubeadmControlPlane. */
  owner: KubeObject;
  clusterName: string;
  labels: Record<string, string>;
  annotations: Record<string, string>;
  /** Template of the infrastructure. */
  infrastructure: ContractRef;
  /** The bootstrap configuration, and where it was copied from. */
  bootstrap: { spec: KubeadmConfigSpec; from?: ContractRef };
  spec: Omit<Machine['spec'], 'bootstrap' | 'infrastructureRef' | 'clusterName'>;
}

function clonedFrom(ref: ContractRef | undefined): Record<string, string> {
  return ref
    ? {
        [CLONED_FROM_NAME_ANNOTATION]: ref.name,
        [CLONED_FROM_KIND_ANNOTATION]: `${ref.kind}.${ref.apiGroup}`,
      }
    : {};
}

/** Owned by whoever wants the Machine, until the Machine itself owns it. Not as its controller: that will be the Machine. */
function wanter({ owner }: MachineOrder): OwnerReference {
  return {
    apiVersion: owner.apiVersion,
    kind: owner.kind,
    name: owner.metadata.name,
    uid: owner.metadata.uid ?? '',
  };
}

async function createOnce<T extends KubeObject>(
  client: Client,
  resource: Resource<T>,
  object: Draft<T>,
): Promise<void> {
  try {
    await client.create(resource, object, MANAGER);
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
}

/**
 * A name for the next Machine: that of a copy an earlier attempt left without its Machine, or a new one. `present` are
 * the names of Machines there are.
 */
async function nextName(
  { client, ids, owner, clusterName }: MachineOrder,
  present: ReadonlySet<string>,
): Promise<string> {
  const query = {
    namespace: owner.metadata.namespace,
    labelSelector: `${CLUSTER_NAME_LABEL}=${clusterName}`,
  };
  const { items } = await client.list(kubevirtMachines, query);
  const orphan = items.find(
    (item) =>
      item.metadata.deletionTimestamp === undefined &&
      !present.has(item.metadata.name) &&
      item.metadata.ownerReferences?.some((reference) => reference.uid === owner.metadata.uid),
  );
  return orphan?.metadata.name ?? generateName(`${owner.metadata.name}-`, ids.suffix(5));
}

/**
 * Makes a Machine: its KubevirtMachine, its KubeadmConfig, then the Machine, all under one name. Killed in between, the
 * next call finishes what was begun. Returns undefined when the infrastructure template is missing.
 * Models cloneConfigsAndGenerateMachine and syncReplicas of the MachineSet controller.
 */
export async function orderMachine(
  order: MachineOrder,
  present: ReadonlySet<string>,
): Promise<Machine | undefined> {
  const { client, owner, labels, annotations, clusterName } = order;
  const { namespace } = owner.metadata;
  const template = await find(client, kubevirtMachineTemplates, namespace, order.infrastructure.name);
  if (!template) return undefined;
  const name = await nextName(order, present);
  const metadata = { name, ...(namespace ? { namespace } : {}) };
  const kubevirtMachine: KubevirtMachine = {
    apiVersion: 'infrastructure.cluster.x-k8s.io/v1alpha1',
    kind: 'KubevirtMachine',
    metadata: {
      ...metadata,
      labels: { ...template.spec.template.metadata?.labels, ...labels, [CLUSTER_NAME_LABEL]: clusterName },
      annotations: {
        ...template.spec.template.metadata?.annotations,
        ...annotations,
        ...clonedFrom(order.infrastructure),
      },
      ownerReferences: [wanter(order)],
      finalizers: [KUBEVIRT_MACHINE_FINALIZER],
    },
    spec: template.spec.template.spec,
  };
  const config: KubeadmConfig = {
    apiVersion: 'bootstrap.cluster.x-k8s.io/v1beta2',
    kind: 'KubeadmConfig',
    metadata: {
      ...metadata,
      labels: { ...labels, [CLUSTER_NAME_LABEL]: clusterName },
      annotations: { ...annotations, ...clonedFrom(order.bootstrap.from) },
      ownerReferences: [wanter(order)],
    },
    spec: order.bootstrap.spec,
  };
  await createOnce(client, kubevirtMachines, kubevirtMachine);
  await createOnce(client, kubeadmConfigs, config);
  const machine: Machine = {
    apiVersion: 'cluster.x-k8s.io/v1beta2',
    kind: 'Machine',
    metadata: {
      ...metadata,
      labels: { ...labels, [CLUSTER_NAME_LABEL]: clusterName },
      ...(Object.keys(annotations).length > 0 ? { annotations } : {}),
      ownerReferences: [controllerReference(owner)],
      finalizers: [MACHINE_FINALIZER],
    },
    spec: {
      clusterName,
      bootstrap: { configRef: { apiGroup: 'bootstrap.cluster.x-k8s.io', kind: 'KubeadmConfig', name } },
      infrastructureRef: { apiGroup: 'infrastructure.cluster.x-k8s.io', kind: 'KubevirtMachine', name },
      ...order.spec,
    },
  };
  await createOnce(client, machines, machine);
  return machine;
}

/** Templates go with their cluster: it becomes their owner. An absent template is nobody's. Returns whether it is there. */
export async function adoptTemplate<T extends KubeObject>(
  client: Client,
  resource: Resource<T>,
  name: string,
  cluster: KubeObject,
): Promise<boolean> {
  const { namespace } = cluster.metadata;
  const template = await find(client, resource, namespace, name);
  if (!template) return false;
  const references = template.metadata.ownerReferences ?? [];
  if (references.some((reference) => reference.uid === cluster.metadata.uid)) return true;
  const owner = {
    apiVersion: cluster.apiVersion,
    kind: cluster.kind,
    name: cluster.metadata.name,
    uid: cluster.metadata.uid ?? '',
  };
  await saveChanges(client, resource, template, {
    ...template,
    metadata: { ...template.metadata, ownerReferences: [...references, owner] },
  });
  return true;
}
