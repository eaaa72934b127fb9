import { deepEqual, type KubeObject, type Node, notFound, type Pod, type TokenRequest } from '#server/kube';
import { as } from '../kind.ts';
import type { AdmissionAttributes } from './chain.ts';
import { refuse } from './refusal.ts';

const USER_PREFIX = 'system:node:';
const GROUP = 'system:nodes';
const MIRROR = 'kubernetes.io/config.mirror';
const LEASE_NAMESPACE = 'kube-node-lease';
const RESTRICTED = 'node-restriction.kubernetes.io';
const PODS = { group: '', plural: 'pods' };
const NODES = { group: '', plural: 'nodes' };

/** Labels in Kubernetes' own name spaces that a kubelet may set on its node. */
const KUBELET_LABELS: ReadonlySet<string> = new Set([
  'kubernetes.io/hostname',
  'topology.kubernetes.io/zone',
  'topology.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region',
  'node.kubernetes.io/instance-type',
  'beta.kubernetes.io/instance-type',
  'kubernetes.io/os',
  'kubernetes.io/arch',
  'beta.kubernetes.io/os',
  'beta.kubernetes.io/arch',
]);
const KUBELET_NAMESPACES = ['kubelet.kubernetes.io', 'node.kubernetes.io'];

/**
 * A kubelet touches its own node, the pods on it, its lease and its CSINode, and nothing that would let it draw work or
 * secrets to itself. Models kubernetes/plugin/pkg/admission/noderestriction.
 */
export function admitNodeRestriction(attributes: AdmissionAttributes): void {
  const { user, kind } = attributes;
  if (!user.name.startsWith(USER_PREFIX) || !user.groups.includes(GROUP)) return;
  if (attributes.operation === 'CONNECT') return;
  const node = user.name.slice(USER_PREFIX.length);
  switch (`${kind.group}/${kind.plural}`) {
    case '/pods':
      return admitPod(attributes, node);
    case '/nodes':
      return admitNode(attributes, node);
    case '/serviceaccounts':
      return admitToken(attributes, node);
    case 'coordination.k8s.io/leases':
      return admitLease(attributes, node);
    case 'storage.k8s.io/csinodes':
      if (nameOf(attributes) === node) return;
      throw refuse(attributes, 'can only access CSINode with the same name as the requesting node');
    default:
  }
}

function nameOf(attributes: AdmissionAttributes): string {
  return attributes.name || attributes.object?.metadata.name || '';
}

function admitPod(attributes: AdmissionAttributes, node: string): void {
  const { subresource = '', operation } = attributes;
  const old = attributes.old ? as<Pod>(attributes.old) : undefined;
  switch (subresource) {
    case '':
      break;
    case 'status':
      return admitPodStatus(attributes, node, old);
    case 'eviction': {
      const pod = attributes.server.read(PODS, attributes.namespace, attributes.name);
      if (!pod) throw notFound(PODS, attributes.name);
      if (as<Pod>(pod).spec.nodeName === node) return;
      throw refuse(attributes, `node ${node} can only evict pods with spec.nodeName set to itself`);
    }
    default: {
      const text = `unexpected pod subresource ${JSON.stringify(subresource)}, only 'status' and 'eviction' are allowed`;
      throw refuse(attributes, text);
    }
  }
  if (operation === 'CREATE') return admitMirrorPod(attributes, node);
  if (operation !== 'DELETE') {
    const text = `unexpected operation "${operation}", node "${node}" can only create and delete mirror pods`;
    throw refuse(attributes, text);
  }
  if (old && old.spec.nodeName !== node) {
    throw refuse(attributes, `node "${node}" can only delete pods with spec.nodeName set to itself`);
  }
}

function admitPodStatus(attributes: AdmissionAttributes, node: string, old: Pod | undefined): void {
  if (attributes.operation !== 'UPDATE' || !old || !attributes.object) {
    throw refuse(attributes, `unexpected operation "${attributes.operation}"`);
  }
  if (old.spec.nodeName !== node) {
    throw refuse(
      attributes,
      `node "${node}" can only update pod status for pods with spec.nodeName set to itself`,
    );
  }
  if (!deepEqual(old.metadata.labels ?? {}, attributes.object.metadata.labels ?? {})) {
    throw refuse(attributes, `node "${node}" cannot update labels through pod status`);
  }
}

function admitMirrorPod(attributes: AdmissionAttributes, node: string): void {
  if (!attributes.object) return;
  const pod = as<Pod>(attributes.object);
  const only = `node "${node}" can only create pods with`;
  if (pod.metadata.annotations?.[MIRROR] === undefined) {
    throw refuse(
      attributes,
      `pod does not have "${MIRROR}" annotation, node "${node}" can only create mirror pods`,
    );
  }
  if (pod.spec.nodeName !== node) throw refuse(attributes, `${only} spec.nodeName set to itself`);
  const owners = pod.metadata.ownerReferences ?? [];
  if (owners.length > 1) throw refuse(attributes, `${only} a single owner reference set to itself`);
  const owner = owners[0];
  if (!owner || owner.apiVersion !== 'v1' || owner.kind !== 'Node' || owner.name !== node) {
    throw refuse(attributes, `${only} an owner reference set to itself`);
  }
  if (!owner.controller) throw refuse(attributes, `${only} a controller owner reference set to itself`);
  if (owner.blockOwnerDeletion) {
    throw refuse(attributes, `node "${node}" must not set blockOwnerDeletion on an owner reference`);
  }
  const live = attributes.server.read(NODES, undefined, node);
  if (!live) throw notFound(NODES, node);
  if (live.metadata.uid !== owner.uid) {
    throw refuse(
      attributes,
      `node ${node} UID mismatch: expected ${owner.uid} got ${live.metadata.uid ?? ''}`,
    );
  }
  const reference = referenceOf(pod);
  if (reference) throw refuse(attributes, `node "${node}" can not create pods that reference ${reference}`);
}

/** The kind of API object a pod refers to, if any: a mirror pod is told by its file alone. */
function referenceOf(pod: Pod): string | undefined {
  const { spec } = pod;
  if (spec.serviceAccountName) return 'a service account';
  const containers = [...(spec.initContainers ?? []), ...(spec.containers ?? [])];
  const env = containers.flatMap((container) => container.env ?? []);
  const envFrom = containers.flatMap((container) => container.envFrom ?? []);
  const volumes = spec.volumes ?? [];
  const projected = volumes.flatMap((volume) => volume.projected?.sources ?? []);
  const secrets =
    spec.imagePullSecrets?.length ||
    volumes.some((volume) => volume.secret) ||
    projected.some((source) => source.secret) ||
    env.some((variable) => variable.valueFrom?.secretKeyRef) ||
    envFrom.some((source) => source.secretRef);
  if (secrets) return 'secrets';
  const configMaps =
    volumes.some((volume) => volume.configMap) ||
    projected.some((source) => source.configMap) ||
    env.some((variable) => variable.valueFrom?.configMapKeyRef) ||
    envFrom.some((source) => source.configMapRef);
  if (configMaps) return 'configmaps';
  return volumes.some((volume) => volume.persistentVolumeClaim) ? 'persistentvolumeclaims' : undefined;
}

function admitNode(attributes: AdmissionAttributes, node: string): void {
  const { operation, object, old } = attributes;
  const name = nameOf(attributes);
  if (name !== node) throw refuse(attributes, `node "${node}" is not allowed to modify node "${name}"`);
  if (!object || (operation !== 'CREATE' && operation !== 'UPDATE')) return;
  const next = as<Node>(object);
  const before = old ? as<Node>(old) : undefined;
  if (before && !deepEqual(next.spec?.taints ?? [], before.spec?.taints ?? [])) {
    throw refuse(attributes, `node "${node}" is not allowed to modify taints`);
  }
  const labels = forbiddenLabels(next.metadata.labels ?? {}, before?.metadata.labels ?? {});
  if (labels.length === 0) return;
  const listed = labels.join(', ');
  const text = before
    ? `is not allowed to modify labels: ${listed}`
    : `node "${node}" is not allowed to set the following labels: ${listed}`;
  throw refuse(attributes, text);
}

function forbiddenLabels(next: Record<string, string>, old: Record<string, string>): string[] {
  const keys = new Set([...Object.keys(next), ...Object.keys(old)].filter((key) => next[key] !== old[key]));
  return [...keys].filter(isForbiddenLabel).sort();
}

function isForbiddenLabel(key: string): boolean {
  const slash = key.indexOf('/');
  const namespace = slash < 0 ? '' : key.slice(0, slash);
  const within = (domain: string): boolean => namespace === domain || namespace.endsWith(`.${domain}`);
  if (within(RESTRICTED)) return true;
  if (!within('kubernetes.io') && !within('k8s.io')) return false;
  return !KUBELET_LABELS.has(key) && !KUBELET_NAMESPACES.some(within);
}

function admitToken(attributes: AdmissionAttributes, node: string): void {
  if (attributes.operation !== 'CREATE' || attributes.subresource !== 'token' || !attributes.object) return;
  const bound = as<KubeObject & { spec: TokenRequest['spec'] }>(attributes.object).spec?.boundObjectRef;
  if (!bound || bound.apiVersion !== 'v1' || bound.kind !== 'Pod' || !bound.name) {
    throw refuse(attributes, 'node requested token not bound to a pod');
  }
  if (!bound.uid) throw refuse(attributes, 'node requested token with a pod binding without a uid');
  const pod = attributes.server.read(PODS, attributes.namespace, bound.name);
  if (!pod) throw notFound(PODS, bound.name);
  if (pod.metadata.uid !== bound.uid) {
    const why = 'does not match the UID in record. The object might have been deleted and then recreated';
    throw refuse(attributes, `the UID in the bound object reference (${bound.uid}) ${why}`);
  }
  if (as<Pod>(pod).spec.nodeName !== node) {
    throw refuse(attributes, 'node requested token bound to a pod scheduled on a different node');
  }
}

function admitLease(attributes: AdmissionAttributes, node: string): void {
  if (attributes.namespace !== LEASE_NAMESPACE) {
    throw refuse(attributes, `can only access leases in the "${LEASE_NAMESPACE}" system namespace`);
  }
  if (nameOf(attributes) !== node) {
    throw refuse(attributes, 'can only access node lease with the same name as the requesting node');
  }
}
