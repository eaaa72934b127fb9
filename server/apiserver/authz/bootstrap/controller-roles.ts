import type { ClusterRole, ClusterRoleBinding, PolicyRule } from '#server/kube';
import { clusterBinding, clusterRole, EVENTS, READ, rule, serviceAccount } from './notation.ts';

const CERTS = 'certificates.k8s.io';
const SIGNERS =
  'kubernetes.io/legacy-unknown kubernetes.io/kube-apiserver-client kubernetes.io/kube-apiserver-client-kubelet kubernetes.io/kubelet-serving';
const OWNED_PODS = rule('list watch create delete patch', 'core', 'pods');

/** Rules of each controller, by the name of its service account. */
const RULES: Record<string, PolicyRule[]> = {
  'attachdetach-controller': [
    rule('list watch', 'core', 'persistentvolumes persistentvolumeclaims'),
    rule(READ, 'core', 'nodes'),
    rule('patch update', 'core', 'nodes/status'),
    rule('list watch', 'core', 'pods'),
    EVENTS,
    rule(`${READ} create delete`, 'storage.k8s.io', 'volumeattachments'),
    rule(READ, 'storage.k8s.io', 'csidrivers'),
    rule(READ, 'storage.k8s.io', 'csinodes'),
  ],
  'clusterrole-aggregation-controller': [
    rule(`escalate ${READ} update patch`, 'rbac.authorization.k8s.io', 'clusterroles'),
  ],
  'cronjob-controller': [
    rule(`${READ} update`, 'batch', 'cronjobs'),
    rule(`${READ} create update delete patch`, 'batch', 'jobs'),
    rule('update', 'batch', 'cronjobs/status'),
    rule('update', 'batch', 'cronjobs/finalizers'),
    rule('list watch delete', 'core', 'pods'),
    EVENTS,
  ],
  'daemon-set-controller': [
    rule(READ, 'extensions apps', 'daemonsets'),
    rule('update', 'extensions apps', 'daemonsets/status'),
    rule('update', 'extensions apps', 'daemonsets/finalizers'),
    rule('list watch', 'core', 'nodes'),
    OWNED_PODS,
    rule('create', 'core', 'pods/binding'),
    rule(`${READ} create delete update patch`, 'apps', 'controllerrevisions'),
    EVENTS,
  ],
  'deployment-controller': [
    rule(`${READ} update`, 'extensions apps', 'deployments'),
    rule('update', 'extensions apps', 'deployments/status'),
    rule('update', 'extensions apps', 'deployments/finalizers'),
    rule(`${READ} create update patch delete`, 'apps extensions', 'replicasets'),
    rule(`${READ} update`, 'core', 'pods'),
    EVENTS,
  ],
  'disruption-controller': [
    rule(READ, 'extensions apps', 'deployments'),
    rule(READ, 'apps extensions', 'replicasets'),
    rule(READ, 'core', 'replicationcontrollers'),
    rule(READ, 'policy', 'poddisruptionbudgets'),
    rule(READ, 'apps', 'statefulsets'),
    rule('update', 'policy', 'poddisruptionbudgets/status'),
    rule('patch update', 'core', 'pods/status'),
    rule('get', '*', '*/scale'),
    EVENTS,
  ],
  'endpoint-controller': [
    rule(READ, 'core', 'services pods'),
    rule(`${READ} create update delete`, 'core', 'endpoints'),
    rule('create', 'core', 'endpoints/restricted'),
    EVENTS,
  ],
  'endpointslice-controller': [
    rule(READ, 'core', 'services pods nodes'),
    rule('update', 'core', 'services/finalizers'),
    rule(`${READ} create update delete`, 'discovery.k8s.io', 'endpointslices'),
    EVENTS,
  ],
  'endpointslicemirroring-controller': [
    rule(READ, 'core', 'services endpoints'),
    rule('update', 'core', 'services/finalizers'),
    rule('update', 'core', 'endpoints/finalizers'),
    rule(`${READ} create update delete`, 'discovery.k8s.io', 'endpointslices'),
    EVENTS,
  ],
  'expand-controller': [
    rule(`${READ} update patch`, 'core', 'persistentvolumes'),
    rule('update patch', 'core', 'persistentvolumeclaims/status'),
    rule(READ, 'core', 'persistentvolumeclaims'),
    EVENTS,
    rule('get', 'core', 'services'),
  ],
  'ephemeral-volume-controller': [
    rule(READ, 'core', 'pods'),
    rule('update', 'core', 'pods/finalizers'),
    rule(`${READ} create`, 'core', 'persistentvolumeclaims'),
    EVENTS,
  ],
  'resource-claim-controller': [
    rule(READ, 'core', 'pods'),
    rule('update', 'core', 'pods/finalizers'),
    rule(`${READ} create delete`, 'resource.k8s.io', 'resourceclaims'),
    rule('update patch', 'resource.k8s.io', 'resourceclaims resourceclaims/status'),
    rule('update patch', 'core', 'pods/status'),
    EVENTS,
  ],
  'generic-garbage-collector': [rule(`${READ} patch update delete`, '*', '*'), EVENTS],
  'horizontal-pod-autoscaler': [
    rule(READ, 'autoscaling', 'horizontalpodautoscalers'),
    rule('update', 'autoscaling', 'horizontalpodautoscalers/status'),
    rule('get update', '*', '*/scale'),
    rule('list watch', 'core', 'pods'),
    rule('list watch', 'metrics.k8s.io', 'pods'),
    rule(READ, 'custom.metrics.k8s.io', '*'),
    rule(READ, 'external.metrics.k8s.io', '*'),
    EVENTS,
  ],
  'job-controller': [
    rule(`${READ} update patch`, 'batch', 'jobs'),
    rule('update', 'batch', 'jobs/status'),
    rule('update', 'batch', 'jobs/finalizers'),
    OWNED_PODS,
    EVENTS,
  ],
  'namespace-controller': [
    rule(`${READ} delete`, 'core', 'namespaces'),
    rule('update', 'core', 'namespaces/finalize namespaces/status'),
    rule(`${READ} delete deletecollection`, '*', '*'),
  ],
  'node-controller': [
    rule(`${READ} update delete patch`, 'core', 'nodes'),
    rule('patch update', 'core', 'nodes/status'),
    rule('patch update', 'core', 'pods/status'),
    rule(`${READ} delete`, 'core', 'pods'),
    EVENTS,
  ],
  'persistent-volume-binder': [
    rule(`${READ} update create delete`, 'core', 'persistentvolumes'),
    rule('update', 'core', 'persistentvolumes/status'),
    rule(`${READ} update`, 'core', 'persistentvolumeclaims'),
    rule('update', 'core', 'persistentvolumeclaims/status'),
    rule(`${READ} create delete`, 'core', 'pods'),
    rule(READ, 'storage.k8s.io', 'storageclasses'),
    rule('list watch', 'core', 'nodes'),
    EVENTS,
    rule('watch', 'core', 'events'),
    rule('get', 'core', 'services'),
  ],
  'pod-garbage-collector': [
    rule('list watch delete', 'core', 'pods'),
    rule(READ, 'core', 'nodes'),
    rule('patch', 'core', 'pods/status'),
  ],
  'replicaset-controller': [
    rule(`${READ} update`, 'apps extensions', 'replicasets'),
    rule('update', 'apps extensions', 'replicasets/status'),
    rule('update', 'apps extensions', 'replicasets/finalizers'),
    OWNED_PODS,
    EVENTS,
  ],
  'replication-controller': [
    rule(`${READ} update`, 'core', 'replicationcontrollers'),
    rule('update', 'core', 'replicationcontrollers/status'),
    rule('update', 'core', 'replicationcontrollers/finalizers'),
    OWNED_PODS,
    EVENTS,
  ],
  'resourcequota-controller': [
    rule('list watch', '*', '*'),
    rule('update', 'core', 'resourcequotas/status'),
    EVENTS,
  ],
  'route-controller': [rule('list watch', 'core', 'nodes'), rule('patch', 'core', 'nodes/status'), EVENTS],
  'service-account-controller': [rule('create', 'core', 'serviceaccounts'), EVENTS],
  'service-controller': [
    rule(READ, 'core', 'services'),
    rule('patch update', 'core', 'services/status'),
    rule('list watch', 'core', 'nodes'),
    EVENTS,
  ],
  'service-cidrs-controller': [
    rule(`${READ} patch update`, 'networking.k8s.io', 'servicecidrs'),
    rule('patch update', 'networking.k8s.io', 'servicecidrs/finalizers'),
    rule('patch update', 'networking.k8s.io', 'servicecidrs/status'),
    rule(READ, 'networking.k8s.io', 'ipaddresses'),
    EVENTS,
  ],
  'statefulset-controller': [
    rule('list watch', 'core', 'pods'),
    rule(READ, 'apps', 'statefulsets'),
    rule('update', 'apps', 'statefulsets/status'),
    rule('update', 'apps', 'statefulsets/finalizers'),
    rule('get create delete update patch', 'core', 'pods'),
    rule(`${READ} create delete update patch`, 'apps', 'controllerrevisions'),
    rule(`${READ} create`, 'core', 'persistentvolumeclaims'),
    rule('update delete', 'core', 'persistentvolumeclaims'),
    rule('update', 'core', 'pods/finalizers'),
    EVENTS,
  ],
  'ttl-controller': [rule('update patch list watch', 'core', 'nodes'), EVENTS],
  'certificate-controller': [
    rule(`${READ} delete`, CERTS, 'certificatesigningrequests'),
    rule('update', CERTS, 'certificatesigningrequests/status certificatesigningrequests/approval'),
    rule('approve', CERTS, 'signers', 'kubernetes.io/kube-apiserver-client-kubelet'),
    rule('sign', CERTS, 'signers', SIGNERS),
    rule('create', 'authorization.k8s.io', 'subjectaccessreviews'),
    EVENTS,
  ],
  'pvc-protection-controller': [
    rule(`${READ} update`, 'core', 'persistentvolumeclaims'),
    rule(READ, 'core', 'pods'),
    EVENTS,
  ],
  'pv-protection-controller': [rule(`${READ} update`, 'core', 'persistentvolumes'), EVENTS],
  'volumeattributesclass-protection-controller': [
    rule(READ, 'core', 'persistentvolumeclaims'),
    rule(READ, 'core', 'persistentvolumes'),
    rule(`${READ} update`, 'storage.k8s.io', 'volumeattributesclasses'),
    EVENTS,
  ],
  'ttl-after-finished-controller': [rule(`${READ} delete`, 'batch', 'jobs'), EVENTS],
  'root-ca-cert-publisher': [rule('create update', 'core', 'configmaps'), EVENTS],
  'validatingadmissionpolicy-status-controller': [
    rule(READ, 'admissionregistration.k8s.io', 'validatingadmissionpolicies'),
    rule('get patch update', 'admissionregistration.k8s.io', 'validatingadmissionpolicies/status'),
    EVENTS,
  ],
  'legacy-service-account-token-cleaner': [
    rule('get', 'core', 'configmaps', 'kube-apiserver-legacy-service-account-token-tracking'),
    rule('patch delete', 'core', 'secrets'),
  ],
  'selinux-warning-controller': [
    EVENTS,
    rule(READ, 'core', 'persistentvolumes'),
    rule(READ, 'core', 'persistentvolumeclaims'),
    rule(READ, 'core', 'pods'),
    rule(READ, 'storage.k8s.io', 'csidrivers'),
  ],
};

/** `system:controller:<name>` for each controller of kube-controller-manager. */
export const controllerRoles: ClusterRole[] = Object.entries(RULES).map(([name, rules]) =>
  clusterRole(`system:controller:${name}`, rules),
);

export const controllerBindings: ClusterRoleBinding[] = Object.keys(RULES).map((name) =>
  clusterBinding(`system:controller:${name}`, serviceAccount(name)),
);
