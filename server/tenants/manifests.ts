import { stringify } from 'yaml';
import type { UnstructuredObject } from '#server/kube';
import { addOnFiles } from './add-ons.ts';

/** The version of Kubernetes every tenant runs. */
export const KUBERNETES_VERSION = 'v1.36.3';
const MACHINE_IMAGE = `quay.io/capk/ubuntu-2604-container-disk:${KUBERNETES_VERSION}`;
const CCM = 'kubevirt-cloud-controller-manager';
const CCM_IMAGE = `quay.io/kubevirt/${CCM}:v0.6.0`;

/** Labels by which the lab finds its own again. */
export const USER_LABEL = 'kube-classroom.dev/user';
export const CLUSTER_ANNOTATION = 'kube-classroom.dev/cluster';

export interface TenantNames {
  /** Who it belongs to, as a label value. */
  user: string;
  /** `handson-<user>`. */
  namespace: string;
  /** `tenant-<id>`. */
  cluster: string;
}

type Manifest = UnstructuredObject;

/**
 * Everything the web app applies for a user, in order: this is all it does for a tenant. The same on an embedded and on
 * a real management cluster with Cluster API, its kubeadm providers and its KubeVirt provider.
 */
export function birthManifests(names: TenantNames): Manifest[] {
  return [
    namespaceManifest(names),
    ...studentAccess(names),
    ...cloudControllerManager(names),
    ...clusterManifests(names),
  ];
}

function namespaceManifest({ namespace, user, cluster }: TenantNames): Manifest {
  return {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: {
      name: namespace,
      labels: { [USER_LABEL]: user },
      annotations: { [CLUSTER_ANNOTATION]: cluster },
    },
  };
}

const CLUSTER_API = 'cluster.x-k8s.io';
const CONTROL_PLANE = 'controlplane.cluster.x-k8s.io';
const BOOTSTRAP = 'bootstrap.cluster.x-k8s.io';
const INFRASTRUCTURE = 'infrastructure.cluster.x-k8s.io';

function clusterManifests({ namespace, cluster }: TenantNames): Manifest[] {
  const controlPlane = `${cluster}-control-plane`;
  const workers = `${cluster}-md-0`;
  const inNamespace = (name: string): Manifest['metadata'] => ({ name, namespace });
  return [
    {
      apiVersion: `${CLUSTER_API}/v1beta2`,
      kind: 'Cluster',
      metadata: inNamespace(cluster),
      spec: {
        clusterNetwork: {
          pods: { cidrBlocks: ['10.244.0.0/16'] },
          services: { cidrBlocks: ['10.96.0.0/12'] },
          serviceDomain: 'cluster.local',
        },
        controlPlaneRef: { apiGroup: CONTROL_PLANE, kind: 'KubeadmControlPlane', name: controlPlane },
        infrastructureRef: { apiGroup: INFRASTRUCTURE, kind: 'KubevirtCluster', name: cluster },
      },
    },
    {
      apiVersion: `${INFRASTRUCTURE}/v1alpha1`,
      kind: 'KubevirtCluster',
      metadata: inNamespace(cluster),
      spec: { controlPlaneServiceTemplate: { spec: { type: 'ClusterIP' } } },
    },
    machineTemplate(inNamespace(controlPlane)),
    {
      apiVersion: `${CONTROL_PLANE}/v1beta2`,
      kind: 'KubeadmControlPlane',
      metadata: inNamespace(controlPlane),
      spec: {
        replicas: 1,
        version: KUBERNETES_VERSION,
        machineTemplate: {
          spec: {
            infrastructureRef: {
              apiGroup: INFRASTRUCTURE,
              kind: 'KubevirtMachineTemplate',
              name: controlPlane,
            },
          },
        },
        kubeadmConfigSpec: controlPlaneConfig(),
      },
    },
    machineTemplate(inNamespace(workers)),
    {
      apiVersion: `${BOOTSTRAP}/v1beta2`,
      kind: 'KubeadmConfigTemplate',
      metadata: inNamespace(workers),
      spec: {
        template: { spec: { joinConfiguration: { nodeRegistration: { kubeletExtraArgs: KUBELET_ARGS } } } },
      },
    },
    machineDeployment(inNamespace(workers), cluster),
  ];
}

/** The one flag this whole lab is about. */
const KUBELET_ARGS = [{ name: 'cloud-provider', value: 'external' }];
/** One controller manager and one scheduler a cluster: there is nobody to elect, and a thousand tenants need not renew leases for it. */
const NO_ELECTION = { name: 'leader-elect', value: 'false' };

function controlPlaneConfig(): object {
  const registration = { kubeletExtraArgs: KUBELET_ARGS, taints: [] };
  return {
    clusterConfiguration: {
      apiServer: {},
      controllerManager: { extraArgs: [{ name: 'cloud-provider', value: 'external' }, NO_ELECTION] },
      scheduler: { extraArgs: [NO_ELECTION] },
    },
    // Cilium takes kube-proxy's place.
    initConfiguration: { nodeRegistration: registration, skipPhases: ['addon/kube-proxy'] },
    joinConfiguration: { nodeRegistration: registration },
    files: addOnFiles(),
    postKubeadmCommands: ['kubectl --kubeconfig /etc/kubernetes/admin.conf apply -f /etc/kubernetes/addons'],
  };
}

function machineTemplate(metadata: Manifest['metadata']): Manifest {
  const virtualMachine = {
    metadata: { namespace: metadata.namespace },
    spec: {
      runStrategy: 'Always',
      template: {
        spec: {
          domain: {
            cpu: { cores: 2 },
            memory: { guest: '4Gi' },
            devices: {
              disks: [{ name: 'containervolume', disk: { bus: 'virtio' } }],
              interfaces: [{ name: 'default', bridge: {} }],
              networkInterfaceMultiqueue: true,
            },
          },
          networks: [{ name: 'default', pod: {} }],
          evictionStrategy: 'External',
          volumes: [{ name: 'containervolume', containerDisk: { image: MACHINE_IMAGE } }],
        },
      },
    },
  };
  return {
    apiVersion: `${INFRASTRUCTURE}/v1alpha1`,
    kind: 'KubevirtMachineTemplate',
    metadata,
    spec: {
      template: {
        spec: {
          virtualMachineBootstrapCheck: { checkStrategy: 'ssh' },
          virtualMachineTemplate: virtualMachine,
        },
      },
    },
  };
}

function machineDeployment(metadata: Manifest['metadata'], cluster: string): Manifest {
  const { name } = metadata;
  return {
    apiVersion: `${CLUSTER_API}/v1beta2`,
    kind: 'MachineDeployment',
    metadata,
    spec: {
      clusterName: cluster,
      replicas: 0,
      selector: { matchLabels: {} },
      template: {
        spec: {
          clusterName: cluster,
          version: KUBERNETES_VERSION,
          bootstrap: { configRef: { apiGroup: BOOTSTRAP, kind: 'KubeadmConfigTemplate', name } },
          infrastructureRef: { apiGroup: INFRASTRUCTURE, kind: 'KubevirtMachineTemplate', name },
        },
      },
    },
  };
}

/** The cloud-controller-manager of the tenant: runs here, reads the tenant through the Secret and the VMs through its account. */
function cloudControllerManager({ namespace, cluster }: TenantNames): Manifest[] {
  const account = 'cloud-controller-manager';
  const labels = { app: CCM, 'k8s-app': CCM };
  const cloudConfig = {
    namespace,
    loadBalancer: { enabled: false },
    instancesV2: { enabled: true, zoneAndRegionEnabled: false },
  };
  const mounts = [
    { name: 'cloud-config', mountPath: '/etc/cloud', readOnly: true },
    { name: 'kubeconfig', mountPath: '/etc/kubernetes/kubeconfig', readOnly: true },
  ];
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: account, namespace } },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'Role',
      metadata: { name: 'kccm', namespace },
      rules: [
        { apiGroups: ['kubevirt.io'], resources: ['virtualmachines'], verbs: ['get', 'watch', 'list'] },
        {
          apiGroups: ['kubevirt.io'],
          resources: ['virtualmachineinstances'],
          verbs: ['get', 'watch', 'list', 'update'],
        },
        { apiGroups: [''], resources: ['pods'], verbs: ['get', 'watch', 'list'] },
        { apiGroups: [''], resources: ['services'], verbs: ['*'] },
      ],
    },
    roleBinding({ name: 'kccm', namespace, role: 'kccm', account }),
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'cloud-config', namespace },
      data: { 'cloud-config': stringify(cloudConfig) },
    },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: CCM, namespace, labels },
      spec: {
        replicas: 1,
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: {
            serviceAccountName: account,
            containers: [
              {
                name: CCM,
                image: CCM_IMAGE,
                imagePullPolicy: 'IfNotPresent',
                command: [`/bin/${CCM}`],
                args: [
                  '--cloud-provider=kubevirt',
                  '--cloud-config=/etc/cloud/cloud-config',
                  '--kubeconfig=/etc/kubernetes/kubeconfig/value',
                  `--cluster-name=${cluster}`,
                ],
                resources: { requests: { cpu: '100m' } },
                volumeMounts: mounts,
              },
            ],
            volumes: [
              { name: 'cloud-config', configMap: { name: 'cloud-config' } },
              { name: 'kubeconfig', secret: { secretName: `${cluster}-kubeconfig` } },
            ],
          },
        },
      },
    },
  ];
}

/** Name of the Role that says what a student may do in their own management namespace. */
export const STUDENT_ROLE = 'student';

const READ = ['get', 'list', 'watch'];

/** The student's rights: see all of their namespace, and do what the experiments do. */
function studentAccess({ namespace }: TenantNames): Manifest[] {
  const rule = (apiGroups: string[], resources: string[], verbs: string[]): object => ({
    apiGroups,
    resources,
    verbs,
  });
  return [
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'Role',
      metadata: { name: STUDENT_ROLE, namespace },
      rules: [
        rule(
          [''],
          ['pods', 'pods/log', 'services', 'endpoints', 'configmaps', 'secrets', 'events', 'serviceaccounts'],
          READ,
        ),
        rule([''], ['configmaps'], ['create', 'update', 'patch', 'delete']),
        rule([''], ['pods', 'services'], ['delete']),
        rule(['discovery.k8s.io'], ['endpointslices'], READ),
        rule(['coordination.k8s.io'], ['leases'], READ),
        rule(['apps'], ['deployments', 'deployments/scale', 'replicasets', 'controllerrevisions'], READ),
        rule(['apps'], ['deployments', 'deployments/scale'], ['update', 'patch']),
        rule([CLUSTER_API, CONTROL_PLANE, BOOTSTRAP, INFRASTRUCTURE], ['*'], READ),
        rule(
          [CLUSTER_API],
          ['machinedeployments', 'machinedeployments/scale', 'clusters'],
          ['update', 'patch'],
        ),
        rule([CLUSTER_API], ['machines'], ['delete', 'patch']),
        rule(
          ['kubevirt.io'],
          ['virtualmachines', 'virtualmachineinstances'],
          [...READ, 'update', 'patch', 'delete'],
        ),
        rule(['rbac.authorization.k8s.io'], ['roles', 'rolebindings'], READ),
      ],
    },
  ];
}

/** Binds a service account of the namespace to a Role of it. */
export function roleBinding(options: {
  name: string;
  namespace: string;
  role: string;
  account: string;
}): Manifest {
  return {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: options.name, namespace: options.namespace },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: options.role },
    subjects: [{ kind: 'ServiceAccount', name: options.account, namespace: options.namespace }],
  };
}
