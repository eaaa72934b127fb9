import type { KubeObject } from './object.ts';
import type {
  CertificateSigningRequest,
  ClusterRole,
  ClusterRoleBinding,
  ConfigMap,
  ControllerRevision,
  CSIDriver,
  CSINode,
  DaemonSet,
  Deployment,
  EndpointSlice,
  Endpoints,
  Event,
  Lease,
  Namespace,
  Node,
  Pod,
  PodDisruptionBudget,
  PriorityClass,
  ReplicaSet,
  Role,
  RoleBinding,
  Secret,
  Service,
  ServiceAccount,
} from './types.generated.ts';

/**
 * A kind as a client names it: where its objects live under the API, and what shape they have.
 * Rooms that bring kinds of their own (Cluster API, KubeVirt) define theirs with `defineResource`.
 */
export interface Resource<T extends KubeObject = KubeObject> {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  /** The plural in the path, lower case. */
  readonly plural: string;
  readonly namespaced: boolean;
  /** Never set: carries the shape to the type checker. */
  readonly shape?: T;
}

export function defineResource<T extends KubeObject>(resource: Omit<Resource<T>, 'shape'>): Resource<T> {
  return Object.freeze({ ...resource });
}

/** `<plural>.<group>`, or the plural alone in the core group: how Status texts and RBAC name a resource. */
export function groupResource(resource: { group: string; plural: string }): string {
  return resource.group ? `${resource.plural}.${resource.group}` : resource.plural;
}

function core<T extends KubeObject>(kind: string, plural: string, namespaced = true): Resource<T> {
  return defineResource<T>({ group: '', version: 'v1', kind, plural, namespaced });
}

function grouped<T extends KubeObject>(
  group: string,
  kind: string,
  plural: string,
  namespaced = true,
): Resource<T> {
  return defineResource<T>({ group, version: 'v1', kind, plural, namespaced });
}

export const namespaces = core<Namespace>('Namespace', 'namespaces', false);
export const nodes = core<Node>('Node', 'nodes', false);
export const pods = core<Pod>('Pod', 'pods');
export const services = core<Service>('Service', 'services');
export const endpoints = core<Endpoints>('Endpoints', 'endpoints');
export const events = core<Event>('Event', 'events');
export const configMaps = core<ConfigMap>('ConfigMap', 'configmaps');
export const secrets = core<Secret>('Secret', 'secrets');
export const serviceAccounts = core<ServiceAccount>('ServiceAccount', 'serviceaccounts');
export const deployments = grouped<Deployment>('apps', 'Deployment', 'deployments');
export const replicaSets = grouped<ReplicaSet>('apps', 'ReplicaSet', 'replicasets');
export const daemonSets = grouped<DaemonSet>('apps', 'DaemonSet', 'daemonsets');
export const controllerRevisions = grouped<ControllerRevision>(
  'apps',
  'ControllerRevision',
  'controllerrevisions',
);
export const endpointSlices = grouped<EndpointSlice>('discovery.k8s.io', 'EndpointSlice', 'endpointslices');
export const leases = grouped<Lease>('coordination.k8s.io', 'Lease', 'leases');
export const csiNodes = grouped<CSINode>('storage.k8s.io', 'CSINode', 'csinodes', false);
export const csiDrivers = grouped<CSIDriver>('storage.k8s.io', 'CSIDriver', 'csidrivers', false);
export const priorityClasses = grouped<PriorityClass>(
  'scheduling.k8s.io',
  'PriorityClass',
  'priorityclasses',
  false,
);
export const podDisruptionBudgets = grouped<PodDisruptionBudget>(
  'policy',
  'PodDisruptionBudget',
  'poddisruptionbudgets',
);
export const roles = grouped<Role>('rbac.authorization.k8s.io', 'Role', 'roles');
export const roleBindings = grouped<RoleBinding>('rbac.authorization.k8s.io', 'RoleBinding', 'rolebindings');
export const clusterRoles = grouped<ClusterRole>(
  'rbac.authorization.k8s.io',
  'ClusterRole',
  'clusterroles',
  false,
);
export const clusterRoleBindings = grouped<ClusterRoleBinding>(
  'rbac.authorization.k8s.io',
  'ClusterRoleBinding',
  'clusterrolebindings',
  false,
);
export const certificateSigningRequests = grouped<CertificateSigningRequest>(
  'certificates.k8s.io',
  'CertificateSigningRequest',
  'certificatesigningrequests',
  false,
);

/** apiextensions.k8s.io/v1 CustomResourceDefinition: not among the generated shapes. */
export interface CustomResourceDefinition extends KubeObject {
  spec: {
    group: string;
    scope: 'Namespaced' | 'Cluster';
    names: {
      plural: string;
      singular: string;
      kind: string;
      listKind: string;
      shortNames?: string[];
      categories?: string[];
    };
    versions: CustomResourceDefinitionVersion[];
    conversion?: { strategy: 'None' };
    preserveUnknownFields?: boolean;
  };
  status?: {
    conditions?: {
      type: string;
      status: string;
      reason?: string;
      message?: string;
      lastTransitionTime?: string;
    }[];
    acceptedNames?: CustomResourceDefinition['spec']['names'];
    storedVersions?: string[];
  };
}

export interface CustomResourceDefinitionVersion {
  name: string;
  served: boolean;
  storage: boolean;
  deprecated?: boolean;
  schema?: { openAPIV3Schema: JsonSchema };
  subresources?: {
    status?: Record<string, never>;
    scale?: { specReplicasPath: string; statusReplicasPath: string; labelSelectorPath?: string };
  };
  additionalPrinterColumns?: {
    name: string;
    type: string;
    jsonPath: string;
    format?: string;
    description?: string;
    priority?: number;
  }[];
  selectableFields?: { jsonPath: string }[];
}

/** The structural OpenAPI v3 schemas a CustomResourceDefinition may hold. */
export interface JsonSchema {
  type?: string;
  format?: string;
  description?: string;
  properties?: Record<string, JsonSchema>;
  additionalProperties?: JsonSchema | boolean;
  items?: JsonSchema;
  required?: string[];
  enum?: unknown[];
  default?: unknown;
  nullable?: boolean;
  pattern?: string;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  'x-kubernetes-preserve-unknown-fields'?: boolean;
  'x-kubernetes-int-or-string'?: boolean;
  'x-kubernetes-embedded-resource'?: boolean;
  'x-kubernetes-list-type'?: string;
  'x-kubernetes-list-map-keys'?: string[];
  'x-kubernetes-map-type'?: string;
}

export const customResourceDefinitions = grouped<CustomResourceDefinition>(
  'apiextensions.k8s.io',
  'CustomResourceDefinition',
  'customresourcedefinitions',
  false,
);
