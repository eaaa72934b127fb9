import type { Node } from '#server/kube';
import { as, type Column } from '../kind.ts';
import { ageColumn, column, nameColumn, wideColumn } from './cells.ts';

const ROLE_PREFIX = 'node-role.kubernetes.io/';
const ROLE_LABEL = 'kubernetes.io/role';

function readiness(node: Node): string {
  const ready = node.status?.conditions?.find((condition) => condition.type === 'Ready');
  const parts = [ready ? (ready.status === 'True' ? 'Ready' : 'NotReady') : 'Unknown'];
  if (node.spec?.unschedulable) parts.push('SchedulingDisabled');
  return parts.join(',');
}

function roles(node: Node): string {
  const found = new Set<string>();
  for (const [key, value] of Object.entries(node.metadata.labels ?? {})) {
    if (key.startsWith(ROLE_PREFIX) && key.length > ROLE_PREFIX.length)
      found.add(key.slice(ROLE_PREFIX.length));
    else if (key === ROLE_LABEL && value) found.add(value);
  }
  return found.size === 0 ? '<none>' : [...found].sort().join(',');
}

function address(node: Node, type: string): string {
  return node.status?.addresses?.find((one) => one.type === type)?.address ?? '<none>';
}

/** Models printNode of kubernetes/pkg/printers/internalversion. */
export const nodeColumns: Column[] = [
  nameColumn,
  column('Status', 'Whether the node is ready, and whether it takes pods.', (object) =>
    readiness(as<Node>(object)),
  ),
  column('Roles', 'What the node is for.', (object) => roles(as<Node>(object))),
  ageColumn,
  column(
    'Version',
    'The version of the kubelet.',
    (object) => as<Node>(object).status?.nodeInfo?.kubeletVersion ?? '',
  ),
  wideColumn('Internal-IP', 'The address inside the cluster.', (object) =>
    address(as<Node>(object), 'InternalIP'),
  ),
  wideColumn('External-IP', 'The address outside the cluster.', (object) =>
    address(as<Node>(object), 'ExternalIP'),
  ),
  wideColumn(
    'OS-Image',
    'The operating system, as it names itself.',
    (object) => as<Node>(object).status?.nodeInfo?.osImage || '<unknown>',
  ),
  wideColumn(
    'Kernel-Version',
    'The version of the kernel.',
    (object) => as<Node>(object).status?.nodeInfo?.kernelVersion || '<unknown>',
  ),
  wideColumn(
    'Container-Runtime',
    'What runs the containers, and its version.',
    (object) => as<Node>(object).status?.nodeInfo?.containerRuntimeVersion || '<unknown>',
  ),
];
