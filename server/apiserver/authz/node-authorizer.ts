import type { Container, Pod, UserInfo } from '#server/kube';
import type { AuthorizationAttributes, ServerFacilities } from '../kind.ts';
import { NODE_RULES } from './bootstrap/node-rules.ts';
import { ruleAllows } from './rule-matching.ts';

interface Decision {
  allowed: boolean;
  reason: string;
}

const ALLOWED: Decision = { allowed: true, reason: '' };
const READ = new Set(['get', 'list', 'watch']);
const OWN_OBJECT = new Set(['get', 'create', 'update', 'patch', 'delete']);
const NODE_PREFIX = 'system:node:';

/** Is this a kubelet? Models kubernetes/pkg/auth/nodeidentifier. */
export function isNode(user: UserInfo): boolean {
  return user.name.startsWith(NODE_PREFIX) && user.groups.includes('system:nodes');
}

/**
 * What a kubelet may do: its own Node, Lease and CSINode; the pods bound to it; the Secrets, ConfigMaps, claims and
 * service accounts those pods name. Where upstream keeps a graph up to date, this looks at the pods of the namespace.
 * Models kubernetes/plugin/pkg/auth/authorizer/node; device claims and slices are left to the static rules.
 */
export function createNodeAuthorizer(facilities: Pick<ServerFacilities, 'list' | 'read'>): {
  authorize(attributes: AuthorizationAttributes): Decision;
} {
  return {
    authorize(attributes) {
      if (!isNode(attributes.user)) return no('');
      const node = attributes.user.name.slice(NODE_PREFIX.length);
      if (!node) return no(`unknown node for user ${JSON.stringify(attributes.user.name)}`);
      return subdivided(node, attributes, facilities) ?? byStaticRules(attributes);
    },
  };
}

function no(reason: string): Decision {
  return { allowed: false, reason };
}

function byStaticRules(attributes: AuthorizationAttributes): Decision {
  return NODE_RULES.some((rule) => ruleAllows(rule, attributes)) ? ALLOWED : no('');
}

type Asked = AuthorizationAttributes & { resource: NonNullable<AuthorizationAttributes['resource']> };
type Facilities = Pick<ServerFacilities, 'list' | 'read'>;

/** The resources whose access depends on the node; undefined for all others. */
function subdivided(
  node: string,
  attributes: AuthorizationAttributes,
  facilities: Facilities,
): Decision | undefined {
  const resource = attributes.resource;
  if (!resource) return undefined;
  const asked: Asked = { ...attributes, resource };
  switch (`${resource.group}/${resource.plural}`) {
    case '/secrets':
      return readReferenced(node, asked, facilities, secretsOf);
    case '/configmaps':
      return readReferenced(node, asked, facilities, configMapsOf);
    case '/persistentvolumeclaims':
      return claim(node, asked, facilities);
    case '/persistentvolumes':
      return getOnly(asked) ?? related(node, volumeServes(node, resource.name ?? '', facilities));
    case 'storage.k8s.io/volumeattachments':
      return getOnly(asked) ?? related(node, attachmentOf(resource.name ?? '', facilities) === node);
    case '/serviceaccounts':
      return serviceAccount(node, asked, facilities);
    case 'coordination.k8s.io/leases':
      return lease(node, asked);
    case 'storage.k8s.io/csinodes':
      return csiNode(node, asked);
    case '/nodes':
      return ownNode(node, asked);
    case '/pods':
      return pod(node, asked, facilities);
    default:
      return undefined;
  }
}

function related(node: string, holds: boolean): Decision {
  return holds ? ALLOWED : no(`no relationship found between node '${node}' and this object`);
}

function getOnly({ verb, resource }: Asked): Decision | undefined {
  if (verb !== 'get') return no('can only get individual resources of this type');
  if (resource.subresource) return no('cannot get subresource');
  return resource.name ? undefined : no('No Object name found');
}

function readReferenced(
  node: string,
  asked: Asked,
  facilities: Facilities,
  names: (pod: Pod) => Iterable<string>,
): Decision {
  const { verb, resource } = asked;
  if (!READ.has(verb)) return no('can only read resources of this type');
  if (resource.subresource) return no('cannot read subresource');
  if (!resource.namespace) return no('can only read namespaced object of this type');
  if (!resource.name) return no('No Object name found');
  return related(node, somePodNames(node, asked, facilities, names));
}

function podsOn(node: string, namespace: string, facilities: Facilities): Pod[] {
  const pods = facilities.list({ group: '', plural: 'pods' }, namespace) as unknown[] as Pod[];
  return pods.filter((candidate) => candidate.spec?.nodeName === node);
}

function somePodNames(
  node: string,
  { resource }: Asked,
  facilities: Facilities,
  names: (pod: Pod) => Iterable<string>,
): boolean {
  const wanted = resource.name ?? '';
  for (const candidate of podsOn(node, resource.namespace ?? '', facilities)) {
    for (const name of names(candidate)) if (name === wanted) return true;
  }
  return false;
}

function containersOf(pod: Pod): Pick<Container, 'env' | 'envFrom'>[] {
  const spec = pod.spec;
  return [...(spec?.initContainers ?? []), ...(spec?.containers ?? []), ...(spec?.ephemeralContainers ?? [])];
}

function* secretsOf(pod: Pod): Iterable<string> {
  for (const reference of pod.spec?.imagePullSecrets ?? []) yield reference.name ?? '';
  for (const container of containersOf(pod)) {
    for (const from of container.envFrom ?? []) yield from.secretRef?.name ?? '';
    for (const variable of container.env ?? []) yield variable.valueFrom?.secretKeyRef?.name ?? '';
  }
  for (const volume of pod.spec?.volumes ?? []) {
    yield volume.secret?.secretName ?? '';
    for (const source of volume.projected?.sources ?? []) yield source.secret?.name ?? '';
    yield volume.csi?.nodePublishSecretRef?.name ?? '';
  }
}

function* configMapsOf(pod: Pod): Iterable<string> {
  for (const container of containersOf(pod)) {
    for (const from of container.envFrom ?? []) yield from.configMapRef?.name ?? '';
    for (const variable of container.env ?? []) yield variable.valueFrom?.configMapKeyRef?.name ?? '';
  }
  for (const volume of pod.spec?.volumes ?? []) {
    yield volume.configMap?.name ?? '';
    for (const source of volume.projected?.sources ?? []) yield source.configMap?.name ?? '';
  }
}

function* claimsOf(pod: Pod): Iterable<string> {
  for (const volume of pod.spec?.volumes ?? []) {
    if (volume.persistentVolumeClaim) yield volume.persistentVolumeClaim.claimName;
    else if (volume.ephemeral) yield `${pod.metadata.name}-${volume.name}`;
  }
}

function claim(node: string, asked: Asked, facilities: Facilities): Decision {
  if (asked.resource.subresource === 'status') {
    if (asked.verb !== 'update' && asked.verb !== 'patch') return no('can only get/update/patch this type');
    return related(node, somePodNames(node, asked, facilities, claimsOf));
  }
  return getOnly(asked) ?? related(node, somePodNames(node, asked, facilities, claimsOf));
}

function volumeServes(node: string, name: string, facilities: Facilities): boolean {
  const volume = facilities.read({ group: '', plural: 'persistentvolumes' }, undefined, name);
  const reference = (volume?.spec as { claimRef?: { namespace?: string; name?: string } } | undefined)
    ?.claimRef;
  if (!reference?.namespace || !reference.name) return false;
  const wanted = reference.name;
  return podsOn(node, reference.namespace, facilities).some((candidate) =>
    [...claimsOf(candidate)].includes(wanted),
  );
}

function attachmentOf(name: string, facilities: Facilities): string | undefined {
  const attachment = facilities.read(
    { group: 'storage.k8s.io', plural: 'volumeattachments' },
    undefined,
    name,
  );
  return (attachment?.spec as { nodeName?: string } | undefined)?.nodeName;
}

function serviceAccount(node: string, asked: Asked, facilities: Facilities): Decision {
  const { verb, resource } = asked;
  const reads = verb === 'get' && !resource.subresource;
  if (!reads && (verb !== 'create' || !resource.name))
    return no('can only create tokens for individual service accounts');
  if (!reads && resource.subresource !== 'token')
    return no('can only create token subresource of serviceaccount');
  return related(
    node,
    somePodNames(node, asked, facilities, (candidate) => [candidate.spec?.serviceAccountName ?? '']),
  );
}

function lease(node: string, { verb, resource }: Asked): Decision {
  if (!OWN_OBJECT.has(verb)) return no('can only get, create, update, patch, or delete a node lease');
  if (resource.namespace !== 'kube-node-lease')
    return no('can only access leases in the "kube-node-lease" system namespace');
  if (verb !== 'create' && resource.name !== node) {
    return no('can only access node lease with the same name as the requesting node');
  }
  return ALLOWED;
}

function csiNode(node: string, { verb, resource }: Asked): Decision {
  if (!OWN_OBJECT.has(verb)) return no('can only get, create, update, patch, or delete a CSINode');
  if (resource.subresource) return no('cannot authorize CSINode subresources');
  if (verb !== 'create' && resource.name !== node) {
    return no('can only access CSINode with the same name as the requesting node');
  }
  return ALLOWED;
}

/** Which Node a kubelet creates or updates is the NodeRestriction admission plugin's business. */
function ownNode(node: string, { verb, resource }: Asked): Decision {
  const writes = verb === 'update' || verb === 'patch';
  if (resource.subresource === 'status' && writes) return ALLOWED;
  if (resource.subresource) return no('');
  if (writes || verb === 'create') return ALLOWED;
  if (!READ.has(verb)) return no('');
  if (resource.name === node) return ALLOWED;
  return resource.name
    ? no(`node '${node}' cannot read '${resource.name}', only its own Node object`)
    : no(`node '${node}' cannot read all nodes, only its own Node object`);
}

function pod(node: string, asked: Asked, facilities: Facilities): Decision {
  const { verb, resource } = asked;
  const own = (): Decision => {
    const found = facilities.read(
      { group: '', plural: 'pods' },
      resource.namespace,
      resource.name ?? '',
    ) as unknown as Pod | undefined;
    return related(node, found?.spec?.nodeName === node);
  };
  if (resource.subresource === 'status') return verb === 'update' || verb === 'patch' ? ALLOWED : no('');
  if (resource.subresource === 'eviction') return verb === 'create' ? ALLOWED : no('');
  if (resource.subresource) return no('');
  if (verb === 'create' || verb === 'delete') return ALLOWED;
  if (verb === 'get') return resource.name ? own() : no('No Object name found');
  if (verb !== 'list' && verb !== 'watch') return no('');
  const selected = asked.fieldRequirements;
  if (
    !selected ||
    selected.some((r) => r.field === 'spec.nodeName' && r.operator === '=' && r.value === node)
  )
    return ALLOWED;
  return resource.name ? own() : no('can only list/watch pods with spec.nodeName field selector');
}
