/** Labels, annotations, finalizers and types Cluster API and its KubeVirt provider put on objects. */
export const CLUSTER_NAME_LABEL = 'cluster.x-k8s.io/cluster-name';
export const CONTROL_PLANE_LABEL = 'cluster.x-k8s.io/control-plane';
export const CONTROL_PLANE_NAME_LABEL = 'cluster.x-k8s.io/control-plane-name';
export const DEPLOYMENT_NAME_LABEL = 'cluster.x-k8s.io/deployment-name';
export const SET_NAME_LABEL = 'cluster.x-k8s.io/set-name';
export const TEMPLATE_HASH_LABEL = 'machine-template-hash';
export const ROLE_LABEL = 'cluster.x-k8s.io/role';
export const KUBEVIRT_MACHINE_NAME_LABEL = 'capk.cluster.x-k8s.io/kubevirt-machine-name';
export const KUBEVIRT_MACHINE_NAMESPACE_LABEL = 'capk.cluster.x-k8s.io/kubevirt-machine-namespace';
export const TERMINAL_LABEL = 'capk.cluster.x-k8s.io/vm-is-terminal';

export const CLONED_FROM_NAME_ANNOTATION = 'cluster.x-k8s.io/cloned-from-name';
export const CLONED_FROM_KIND_ANNOTATION = 'cluster.x-k8s.io/cloned-from-groupkind';
export const PAUSED_ANNOTATION = 'cluster.x-k8s.io/paused';
export const DELETE_MACHINE_ANNOTATION = 'cluster.x-k8s.io/delete-machine';
export const EXCLUDE_DRAIN_ANNOTATION = 'machine.cluster.x-k8s.io/exclude-node-draining';
export const EXCLUDE_DETACH_ANNOTATION = 'machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach';
export const REVISION_ANNOTATION = 'machinedeployment.clusters.x-k8s.io/revision';
/** On a KubevirtCluster: `true` makes the provider write providerIDs onto the Nodes itself, as upstream always does. */
export const PATCH_PROVIDER_ID_ANNOTATION = 'capk.cluster.x-k8s.io/patch-node-provider-id';

export const CLUSTER_FINALIZER = 'cluster.cluster.x-k8s.io';
export const MACHINE_FINALIZER = 'machine.cluster.x-k8s.io';
export const MACHINE_SET_FINALIZER = 'cluster.x-k8s.io/machineset';
export const MACHINE_DEPLOYMENT_FINALIZER = 'cluster.x-k8s.io/machinedeployment';
export const CONTROL_PLANE_FINALIZER = 'kubeadm.controlplane.cluster.x-k8s.io';
export const KUBEVIRT_CLUSTER_FINALIZER = 'kubevirtcluster.infrastructure.cluster.x-k8s.io';
export const KUBEVIRT_MACHINE_FINALIZER = 'kubevirtmachine.infrastructure.cluster.x-k8s.io';

/** `type` of every Secret that Cluster API makes. */
export const CLUSTER_SECRET_TYPE = 'cluster.x-k8s.io/secret';
/** Workers join with it; it goes once their labels were synced. */
export const UNINITIALIZED_TAINT = { key: 'node.cluster.x-k8s.io/uninitialized', effect: 'NoSchedule' };
/** The file cloud-init writes when kubeadm succeeded, and what it holds. */
export const SENTINEL_DIRECTORY = '/run/cluster-api';
export const SENTINEL_FILE = '/run/cluster-api/bootstrap-success.complete';
export const SENTINEL_CONTENT = 'success';

/** Field manager of Cluster API's controllers: the name of their binary. */
export const MANAGER = { fieldManager: 'manager' };
