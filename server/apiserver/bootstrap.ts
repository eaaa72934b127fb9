import { InternalError } from '#server/base';
import { formatTime, type KubeObject, parseApiVersion, recordUpdate, type UnstructuredObject } from '#server/kube';
import { RevisionMismatchError } from '#server/store';
import { bootstrapRbac } from './authz/bootstrap-policy.ts';
import { cloneJson, freezeJson } from './json.ts';
import type { KindDefinition, RequestContext } from './kind.ts';
import type { KindTable } from './kind-table.ts';
import type { RegistryEnvironment } from './registry/operation.ts';
import { countsGeneration } from './registry/metadata.ts';
import { objectStorageKey } from './storage.ts';

const SYSTEM_NAMESPACES = ['default', 'kube-system', 'kube-public', 'kube-node-lease'];
const MANAGER = 'kube-apiserver';
const USER = { name: 'system:apiserver', groups: ['system:masters', 'system:authenticated'] };
/** The port of the `kubernetes` Service. */
const SERVICE_PORT = 443;

export interface BootstrapOptions {
  env: RegistryEnvironment;
  clientCaPem: readonly string[];
  serviceCidr: string;
  advertise: { ip: string; port: number } | undefined;
}

/**
 * Creates what every cluster has from its first moment: namespaces, default RBAC, priority classes, the `kubernetes`
 * Service with its endpoints, and the ConfigMap of authentication. What exists is left alone, so that it may run after
 * any crash; the endpoints follow `advertise`. All writes are asked for at once: one commit of the store.
 * Models the controllers of kubernetes/pkg/controlplane and the post-start hooks of RBAC and scheduling.
 */
export async function bootstrapCluster(options: BootstrapOptions): Promise<void> {
  const { env } = options;
  const writes: Promise<void>[] = [];
  const missing = (object: KubeObject): boolean => !env.storage.get(keyOf(env.kinds, object));
  for (const template of constantObjects(env)) {
    if (missing(template.object)) writes.push(insert(env, template));
  }
  for (const object of clusterObjects(options)) if (missing(object)) writes.push(insert(env, templateOf(env, object)));
  const service = kubernetesService(options.serviceCidr);
  if (missing(service)) writes.push(insert(env, templateOf(env, service)));
  for (const object of endpointObjects(options.advertise)) writes.push(applyEndpoints(env, object));
  await Promise.all(writes);
}

interface Template {
  kind: KindDefinition;
  key: string;
  /** Frozen: complete but for what differs per cluster (uid, times, resourceVersion). */
  object: UnstructuredObject;
}

/** Made once per process, per table of kinds: the same bytes for all clusters. */
let constants: readonly Template[] | undefined;

function constantObjects(env: RegistryEnvironment): readonly Template[] {
  constants ??= [
    ...SYSTEM_NAMESPACES.map(namespaceObject),
    priorityClass('system-node-critical', 2_000_001_000, 'Used for system critical pods that must not be moved from their current node.'),
    priorityClass('system-cluster-critical', 2_000_000_000, 'Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.'),
    ...bootstrapRbac(),
  ]
    .filter((object) => kindOf(env.kinds, object) !== undefined)
    .map((object) => templateOf(env, object));
  return constants;
}

const TEMPLATE_TIME = '2000-01-01T00:00:00Z';

/** Defaults, the kind's own preparation and managed fields, done once. */
function templateOf(env: RegistryEnvironment, source: KubeObject): Template {
  const kind = kindOf(env.kinds, source);
  if (!kind) throw new InternalError(`no kind for ${source.apiVersion} ${source.kind}`);
  const object = cloneJson(source) as UnstructuredObject;
  kind.strategy.defaults?.(object);
  object.metadata.managedFields = recordUpdate({
    live: undefined,
    next: object,
    manager: MANAGER,
    time: TEMPLATE_TIME,
    schema: env.schemaOf(kind),
  });
  const context: RequestContext = {
    user: USER,
    verb: 'create',
    dryRun: false,
    subresource: undefined,
    namespace: object.metadata.namespace,
    server: env.facilities,
  };
  // Nothing the constants hold waits for anything: the kinds with asynchronous preparation are not among them.
  void kind.strategy.prepareForCreate?.(object, context);
  if (countsGeneration(kind)) object.metadata.generation = 1;
  return { kind, key: keyOf(env.kinds, object), object: freezeJson(object) };
}

async function insert(env: RegistryEnvironment, template: Template): Promise<void> {
  const now = formatTime(env.clock.now());
  const { metadata } = template.object;
  const object: UnstructuredObject = {
    ...template.object,
    metadata: {
      ...metadata,
      uid: env.ids.uid(),
      creationTimestamp: now,
      managedFields: (metadata.managedFields ?? []).map((entry) => ({ ...entry, time: now })),
    },
  };
  try {
    await env.storage.put(template.key, object, 'absent');
  } catch (error) {
    if (!(error instanceof RevisionMismatchError)) throw error;
  }
}

/** Endpoints say where the server is now: written again when that changed. */
async function applyEndpoints(env: RegistryEnvironment, object: KubeObject): Promise<void> {
  const template = templateOf(env, object);
  const entry = env.storage.get(template.key);
  if (!entry) return insert(env, template);
  const live = env.storage.decode(entry);
  const { metadata: _metadata, ...content } = template.object;
  const { metadata: _liveMetadata, ...liveContent } = live;
  if (JSON.stringify(content) === JSON.stringify(liveContent)) return;
  const next: UnstructuredObject = { ...cloneJson(content), metadata: cloneJson(live.metadata) } as UnstructuredObject;
  await env.storage.put(template.key, next, entry.modRevision);
}

function kindOf(kinds: KindTable, object: KubeObject): KindDefinition | undefined {
  const { group, version } = parseApiVersion(object.apiVersion);
  return kinds.byKind(group, version, object.kind);
}

function keyOf(kinds: KindTable, object: KubeObject): string {
  const kind = kindOf(kinds, object);
  if (!kind) throw new InternalError(`no kind for ${object.apiVersion} ${object.kind}`);
  return objectStorageKey(kind, object.metadata.namespace, object.metadata.name);
}

function namespaceObject(name: string): KubeObject & Record<string, unknown> {
  return {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name, labels: { 'kubernetes.io/metadata.name': name } },
    spec: { finalizers: ['kubernetes'] },
    status: { phase: 'Active' },
  };
}

function priorityClass(name: string, value: number, description: string): KubeObject & Record<string, unknown> {
  return {
    apiVersion: 'scheduling.k8s.io/v1',
    kind: 'PriorityClass',
    metadata: { name },
    value,
    description,
    preemptionPolicy: 'PreemptLowerPriority',
  };
}

/** What depends on the cluster's own settings. */
function clusterObjects(options: BootstrapOptions): KubeObject[] {
  const authentication: KubeObject & Record<string, unknown> = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'extension-apiserver-authentication', namespace: 'kube-system' },
    data: { 'client-ca-file': options.clientCaPem.join('') },
  };
  return [authentication];
}

/** The first address of the range. Models ServiceIPRange of pkg/controlplane. */
export function firstServiceAddress(serviceCidr: string): string {
  const [base = '', bits = '32'] = serviceCidr.split('/');
  const number = base.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
  const size = 2 ** (32 - Number(bits));
  const first = Math.floor(number / size) * size + 1;
  return [24, 16, 8, 0].map((shift) => Math.floor(first / 2 ** shift) % 256).join('.');
}

function kubernetesService(serviceCidr: string): KubeObject & Record<string, unknown> {
  const address = firstServiceAddress(serviceCidr);
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'kubernetes', namespace: 'default', labels: { component: 'apiserver', provider: 'kubernetes' } },
    spec: {
      type: 'ClusterIP',
      clusterIP: address,
      clusterIPs: [address],
      ipFamilies: ['IPv4'],
      ipFamilyPolicy: 'SingleStack',
      internalTrafficPolicy: 'Cluster',
      sessionAffinity: 'None',
      ports: [{ name: 'https', port: SERVICE_PORT, protocol: 'TCP', targetPort: 6443 }],
    },
    status: { loadBalancer: {} },
  };
}

function endpointObjects(advertise: { ip: string; port: number } | undefined): KubeObject[] {
  if (!advertise) return [];
  const { ip, port } = advertise;
  const endpoints: KubeObject & Record<string, unknown> = {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: { name: 'kubernetes', namespace: 'default', labels: { 'endpointslice.kubernetes.io/skip-mirror': 'true' } },
    subsets: [{ addresses: [{ ip }], ports: [{ name: 'https', port, protocol: 'TCP' }] }],
  };
  const slice: KubeObject & Record<string, unknown> = {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'kubernetes', namespace: 'default', labels: { 'kubernetes.io/service-name': 'kubernetes' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: [ip], conditions: { ready: true } }],
    ports: [{ name: 'https', port, protocol: 'TCP' }],
  };
  return [endpoints, slice];
}
