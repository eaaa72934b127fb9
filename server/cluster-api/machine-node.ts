import type { Client } from '#server/client';
import { deepEqual, type Node, nodes } from '#server/kube';
import type { Finding } from './conditions.ts';
import type { Machine } from './core-resources.ts';
import { UNINITIALIZED_TAINT } from './vocabulary.ts';

const LABELS_ANNOTATION = 'cluster.x-k8s.io/labels-from-machine';
const ANNOTATIONS_ANNOTATION = 'cluster.x-k8s.io/annotations-from-machine';

/** Label and annotation domains that go from a Machine to its Node. */
function isManaged(key: string): boolean {
  const [domain = ''] = key.split('/');
  if (!key.includes('/')) return false;
  return (
    domain === 'node-role.kubernetes.io' ||
    ['node-restriction.kubernetes.io', 'node.cluster.x-k8s.io'].some(
      (suffix) => domain === suffix || domain.endsWith(`.${suffix}`),
    )
  );
}

function managed(values: Record<string, string> | undefined): Record<string, string> {
  return Object.fromEntries(Object.entries(values ?? {}).filter(([key]) => isManaged(key)));
}

function split(list: string | undefined): string[] {
  return (list ?? '').split(',').filter((entry) => entry !== '');
}

/** Says on the Node whose machine it is, in annotations. */
function ownerAnnotations(machine: Machine): Record<string, string> {
  const owner =
    machine.metadata.ownerReferences?.find((reference) => reference.controller) ??
    machine.metadata.ownerReferences?.[0];
  return {
    'cluster.x-k8s.io/cluster-name': machine.spec.clusterName,
    'cluster.x-k8s.io/cluster-namespace': machine.metadata.namespace ?? '',
    'cluster.x-k8s.io/machine': machine.metadata.name,
    ...(owner
      ? { 'cluster.x-k8s.io/owner-kind': owner.kind, 'cluster.x-k8s.io/owner-name': owner.name }
      : {}),
  };
}

/**
 * Brings the Machine's labels and annotations onto its Node, takes away those it no longer has, and removes the taint
 * a worker joined with. Rejects with 409 when the Node changed meanwhile. Models patchNode of machine_controller_noderef.go.
 */
export async function syncNode(workload: Client, node: Node, machine: Machine): Promise<void> {
  const labels = managed(machine.metadata.labels);
  const own = managed(machine.metadata.annotations);
  const annotations: Record<string, string | null> = {};
  for (const key of split(node.metadata.annotations?.[ANNOTATIONS_ANNOTATION]))
    if (!(key in own)) annotations[key] = null;
  Object.assign(annotations, ownerAnnotations(machine), own, {
    [LABELS_ANNOTATION]: Object.keys(labels).sort().join(','),
    [ANNOTATIONS_ANNOTATION]: Object.keys(own).sort().join(','),
  });
  const labelPatch: Record<string, string | null> = { ...labels };
  for (const key of split(node.metadata.annotations?.[LABELS_ANNOTATION]))
    if (!(key in labels)) labelPatch[key] = null;
  const before = node.spec?.taints ?? [];
  const taints = before.filter((taint) => taint.key !== UNINITIALIZED_TAINT.key);
  const differs = (
    patch: Record<string, string | null>,
    present: Record<string, string> | undefined,
  ): boolean =>
    Object.entries(patch).some(([key, value]) =>
      value === null ? present?.[key] !== undefined : present?.[key] !== value,
    );
  if (
    !differs(annotations, node.metadata.annotations) &&
    !differs(labelPatch, node.metadata.labels) &&
    deepEqual(taints, before)
  )
    return;
  const body = {
    metadata: {
      annotations,
      labels: labelPatch,
      ...(node.metadata.resourceVersion ? { resourceVersion: node.metadata.resourceVersion } : {}),
    },
    ...(taints.length === before.length ? {} : { spec: { taints: taints.length > 0 ? taints : null } }),
  };
  await workload.patch(nodes, { name: node.metadata.name }, { type: 'merge', body });
}

const PRESSURES = ['MemoryPressure', 'DiskPressure', 'PIDPressure'];

/** The NodeReady and NodeHealthy conditions of a Machine whose Node is there. Models summarizeNodeConditions. */
export function nodeFindings(node: Node): Finding[] {
  const conditions = node.status?.conditions ?? [];
  const messages: string[] = [];
  let bad = 0;
  let unknown = 0;
  for (const type of ['Ready', ...PRESSURES]) {
    const condition = conditions.find((candidate) => candidate.type === type);
    if (!condition) {
      messages.push(`* Node.${type}: Condition not yet reported`);
      unknown += 1;
      continue;
    }
    if (condition.status === (type === 'Ready' ? 'True' : 'False')) continue;
    messages.push(`* Node.${type}: ${condition.message || `Condition is ${condition.status}`}`);
    if (condition.status === 'Unknown') unknown += 1;
    else bad += 1;
  }
  const healthy: Finding =
    bad > 0
      ? { type: 'NodeHealthy', status: 'False', reason: 'NodeNotHealthy', message: messages.join('\n') }
      : unknown > 0
        ? {
            type: 'NodeHealthy',
            status: 'Unknown',
            reason: 'NodeHealthyUnknown',
            message: messages.join('\n'),
          }
        : { type: 'NodeHealthy', status: 'True', reason: 'NodeHealthy' };
  const ready = conditions.find((condition) => condition.type === 'Ready');
  if (!ready)
    return [
      {
        type: 'NodeReady',
        status: 'Unknown',
        reason: 'NodeReadyUnknown',
        message: '* Node.Ready: Condition not yet reported',
      },
      healthy,
    ];
  const [status, reason] =
    ready.status === 'True'
      ? (['True', 'NodeReady'] as const)
      : ready.status === 'False'
        ? (['False', 'NodeNotReady'] as const)
        : (['Unknown', 'NodeReadyUnknown'] as const);
  return [
    {
      type: 'NodeReady',
      status,
      reason,
      message: status !== 'True' && ready.message ? `* Node.Ready: ${ready.message}` : '',
    },
    healthy,
  ];
}

/** NodeReady and NodeHealthy with the same words, when there is no Node to look at. */
export function noNode(status: Finding['status'], reason: string, message: string): Finding[] {
  return ['NodeReady', 'NodeHealthy'].map((type) => ({ type, status, reason, message }));
}
