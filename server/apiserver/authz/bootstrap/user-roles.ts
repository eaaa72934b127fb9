import type { ClusterRole } from '#server/kube';
import { aggregatedRole, aggregatesTo, clusterRole, READ, READ_WRITE, rule, WRITE } from './notation.ts';

const WORKLOADS =
  'statefulsets statefulsets/scale daemonsets deployments deployments/scale replicasets replicasets/scale';
const OLD_WORKLOADS =
  'daemonsets deployments deployments/scale replicasets replicasets/scale replicationcontrollers/scale ingresses networkpolicies';

/** admin, edit and view, and the parts they are put together from. */
export const userRoles: ClusterRole[] = [
  aggregatedRole('admin', {}),
  aggregatedRole('edit', aggregatesTo('admin')),
  aggregatedRole('view', aggregatesTo('edit')),
  clusterRole(
    'system:aggregate-to-admin',
    [
      rule('create', 'authorization.k8s.io', 'localsubjectaccessreviews'),
      rule(READ_WRITE, 'rbac.authorization.k8s.io', 'roles rolebindings'),
    ],
    aggregatesTo('admin'),
  ),
  clusterRole(
    'system:aggregate-to-edit',
    [
      rule(READ, 'core', 'pods/attach pods/proxy pods/exec pods/portforward secrets services/proxy'),
      rule('impersonate', 'core', 'serviceaccounts'),
      rule(WRITE, 'core', 'pods pods/attach pods/proxy pods/exec pods/portforward'),
      rule('create', 'core', 'pods/eviction'),
      rule(
        WRITE,
        'core',
        'replicationcontrollers replicationcontrollers/scale serviceaccounts services services/proxy persistentvolumeclaims configmaps secrets events',
      ),
      rule('create', 'core', 'serviceaccounts/token'),
      rule(WRITE, 'apps', `${WORKLOADS} deployments/rollback`),
      rule(WRITE, 'autoscaling', 'horizontalpodautoscalers'),
      rule(WRITE, 'batch', 'jobs cronjobs'),
      rule(WRITE, 'extensions', `${OLD_WORKLOADS} deployments/rollback`),
      rule(WRITE, 'policy', 'poddisruptionbudgets'),
      rule(WRITE, 'networking.k8s.io', 'networkpolicies ingresses'),
      rule(READ_WRITE, 'coordination.k8s.io', 'leases'),
      rule(WRITE, 'resource.k8s.io', 'resourceclaims resourceclaimtemplates'),
    ],
    aggregatesTo('edit'),
  ),
  clusterRole(
    'system:aggregate-to-view',
    [
      rule(
        READ,
        'core',
        'pods replicationcontrollers replicationcontrollers/scale serviceaccounts services services/status endpoints persistentvolumeclaims persistentvolumeclaims/status configmaps',
      ),
      rule(
        READ,
        'core',
        'limitranges resourcequotas bindings events pods/status resourcequotas/status namespaces/status replicationcontrollers/status pods/log',
      ),
      rule(READ, 'core', 'namespaces'),
      rule(READ, 'discovery.k8s.io', 'endpointslices'),
      rule(
        READ,
        'apps',
        `${WORKLOADS} controllerrevisions statefulsets/status daemonsets/status deployments/status replicasets/status`,
      ),
      rule(READ, 'autoscaling', 'horizontalpodautoscalers horizontalpodautoscalers/status'),
      rule(READ, 'batch', 'jobs jobs/status cronjobs cronjobs/status'),
      rule(
        READ,
        'extensions',
        `${OLD_WORKLOADS} daemonsets/status deployments/status replicasets/status ingresses/status`,
      ),
      rule(READ, 'policy', 'poddisruptionbudgets poddisruptionbudgets/status'),
      rule(READ, 'networking.k8s.io', 'networkpolicies ingresses ingresses/status'),
      rule(READ, 'resource.k8s.io', 'resourceclaims resourceclaims/status resourceclaimtemplates'),
    ],
    aggregatesTo('view'),
  ),
];
