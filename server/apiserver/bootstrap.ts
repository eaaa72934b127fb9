import { errorMessage, InternalError } from '#server/base';
import {
  formatTime,
  type KubeObject,
  parseApiVersion,
  recordUpdate,
  type UnstructuredObject,
} from '#server/kube';
import { RevisionMismatchError, type StoreWatch } from '#server/store';
import { bootstrapRbac } from './authz/bootstrap-policy.ts';
import { cloneJson, freezeJson } from './json.ts';
import type { KindDefinition, RequestContext } from './kind.ts';
import type { KindTable } from './kind-table.ts';
import { countsGeneration } from './registry/metadata.ts';
import type { RegistryEnvironment } from './registry/operation.ts';
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
  for (const template of await constantTemplates(env)) {
    if (missing(template.object)) writes.push(insert(env, template));
  }
  const own = [authenticationConfig(options.clientCaPem), kubernetesService(options.serviceCidr)];
  for (const object of own) if (missing(object)) writes.push(insertObject(env, object));
  for (const object of endpointObjects(options.advertise)) writes.push(applyEndpoints(env, object));
  await Promise.all(writes);
}

/**
 * Keeps the `kubernetes` Service and its endpoints: what somebody deletes comes back, and so do the addresses somebody
 * changes. Stops with `stop`. Models kubernetes/pkg/controlplane/controller/kubernetesservice, which looks every ten
 * seconds; here the change itself is the occasion.
 */
export function keepKubernetesService(options: BootstrapOptions): StoreWatch {
  const { env } = options;
  const { store } = env.storage;
  let stopped = false;
  const endpoints = endpointObjects(options.advertise);
  const restore = async (object: KubeObject): Promise<void> => {
    if (stopped) return;
    try {
      if (object.kind !== 'Service') await applyEndpoints(env, object);
      else if (!env.storage.get(keyOf(env.kinds, object))) await insertObject(env, object);
    } catch (error) {
      // Somebody else wrote at the same moment: that write is an occasion of its own.
      if (stopped || error instanceof RevisionMismatchError) return;
      env.log.error(
        { error: errorMessage(error), kind: object.kind },
        'the kubernetes Service was not restored',
      );
    }
  };
  const follow = (object: KubeObject): StoreWatch => {
    const key = keyOf(env.kinds, object);
    return store.watch(key, store.revision, (event) => {
      if (event.key !== key || (object.kind === 'Service' && event.type === 'put')) return;
      // The request that deleted it gives its address back first.
      setImmediate(() => void restore(object));
    });
  };
  const watches = [kubernetesService(options.serviceCidr), ...endpoints].map(follow);
  return {
    stop() {
      stopped = true;
      for (const watch of watches) watch.stop();
    },
  };
}

async function insertObject(env: RegistryEnvironment, object: KubeObject): Promise<void> {
  await insert(env, await templateOf(env, object));
}

interface Template {
  kind: KindDefinition;
  key: string;
  /** Frozen: complete but for what differs per cluster (uid, times, resourceVersion). */
  object: UnstructuredObject;
  /** Its JSON, cut where those belong. */
  pieces: readonly (string | Hole)[];
}

type Hole = { hole: 'uid' | 'time' | 'revision' };

/** Made once per process: the same objects for all clusters. */
let constants: Promise<readonly Template[]> | undefined;

function constantTemplates(env: RegistryEnvironment): Promise<readonly Template[]> {
  constants ??= Promise.all(
    [
      ...SYSTEM_NAMESPACES.map(namespaceObject),
      priorityClass(
        'system-node-critical',
        2_000_001_000,
        'Used for system critical pods that must not be moved from their current node.',
      ),
      priorityClass(
        'system-cluster-critical',
        2_000_000_000,
        'Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.',
      ),
      ...bootstrapRbac(),
    ].map((object) => templateOf(env, object)),
  );
  return constants;
}

const TEMPLATE_TIME = '2000-01-01T00:00:00Z';

/** Defaults, the kind's own preparation and managed fields, done once. */
async function templateOf(env: RegistryEnvironment, source: KubeObject): Promise<Template> {
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
  await kind.strategy.prepareForCreate?.(object, context);
  if (countsGeneration(kind)) object.metadata.generation = 1;
  freezeJson(object);
  return { kind, key: keyOf(env.kinds, object), object, pieces: cut(object) };
}

async function insert(env: RegistryEnvironment, template: Template): Promise<void> {
  const time = formatTime(env.clock.now());
  const uid = env.ids.uid();
  const { metadata } = template.object;
  try {
    await env.storage.putMade(
      template.key,
      (number) => {
        const revision = String(number);
        const values = { uid, time, revision };
        let text = '';
        for (const piece of template.pieces) text += typeof piece === 'string' ? piece : values[piece.hole];
        const managedFields = (metadata.managedFields ?? []).map((entry) =>
          Object.freeze({ ...entry, time }),
        );
        const filled = {
          ...metadata,
          uid,
          creationTimestamp: time,
          resourceVersion: revision,
          managedFields,
        };
        // What the template holds frozen is shared by all clusters of the process.
        return { bytes: Buffer.from(text), object: { ...template.object, metadata: filled } };
      },
      'absent',
    );
  } catch (error) {
    if (!(error instanceof RevisionMismatchError)) throw error;
  }
}

const MARKS: Readonly<Record<string, Hole>> = {
  '\u0001uid\u0001': { hole: 'uid' },
  '\u0001time\u0001': { hole: 'time' },
  '\u0001revision\u0001': { hole: 'revision' },
};

/** The JSON of an object, cut at the values that are filled in later. */
function cut(object: UnstructuredObject): (string | Hole)[] {
  const mark = (hole: Hole['hole']): string => `\u0001${hole}\u0001`;
  const { metadata } = object;
  const { apiVersion, kind, metadata: _metadata, ...content } = object;
  const marked = {
    apiVersion,
    kind,
    metadata: {
      ...metadata,
      uid: mark('uid'),
      creationTimestamp: mark('time'),
      resourceVersion: mark('revision'),
      managedFields: (metadata.managedFields ?? []).map((entry) => ({ ...entry, time: mark('time') })),
    },
    ...content,
  };
  return JSON.stringify(marked)
    .split(/(\\u0001[a-z]+\\u0001)/)
    .map((piece) => MARKS[piece.replaceAll('\\u0001', '\u0001')] ?? piece);
}

/** Endpoints say where the server is now: written again when that changed. */
async function applyEndpoints(env: RegistryEnvironment, object: KubeObject): Promise<void> {
  const template = await templateOf(env, object);
  const entry = env.storage.get(template.key);
  if (!entry) return insert(env, template);
  const live = env.storage.decode(entry);
  const { metadata: _metadata, ...content } = template.object;
  const { metadata: _liveMetadata, ...liveContent } = live;
  if (JSON.stringify(content) === JSON.stringify(liveContent)) return;
  const next: UnstructuredObject = {
    ...cloneJson(content),
    metadata: cloneJson(live.metadata),
  };
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

function priorityClass(
  name: string,
  value: number,
  description: string,
): KubeObject & Record<string, unknown> {
  return {
    apiVersion: 'scheduling.k8s.io/v1',
    kind: 'PriorityClass',
    metadata: { name },
    value,
    description,
    preemptionPolicy: 'PreemptLowerPriority',
  };
}

function authenticationConfig(clientCaPem: readonly string[]): KubeObject & Record<string, unknown> {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'extension-apiserver-authentication', namespace: 'kube-system' },
    data: { 'client-ca-file': clientCaPem.join('') },
  };
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
    metadata: {
      name: 'kubernetes',
      namespace: 'default',
      labels: { component: 'apiserver', provider: 'kubernetes' },
    },
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
    metadata: {
      name: 'kubernetes',
      namespace: 'default',
      labels: { 'endpointslice.kubernetes.io/skip-mirror': 'true' },
    },
    subsets: [{ addresses: [{ ip }], ports: [{ name: 'https', port, protocol: 'TCP' }] }],
  };
  const slice: KubeObject & Record<string, unknown> = {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: 'kubernetes',
      namespace: 'default',
      labels: { 'kubernetes.io/service-name': 'kubernetes' },
    },
    addressType: 'IPv4',
    endpoints: [{ addresses: [ip], conditions: { ready: true } }],
    ports: [{ name: 'https', port, protocol: 'TCP' }],
  };
  return [endpoints, slice];
}
