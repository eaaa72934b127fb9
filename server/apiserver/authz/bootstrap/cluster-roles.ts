import type { ClusterRole, ClusterRoleBinding } from '#server/kube';
import { NODE_RULES } from './node-rules.ts';
import {
  clusterBinding,
  clusterRole,
  EVENTS,
  group,
  READ,
  rule,
  serviceAccount,
  urls,
  user,
} from './notation.ts';

const CSR = 'certificatesigningrequests';

function approver(signer: string): ClusterRole {
  return clusterRole(`system:certificates.k8s.io:${signer}-approver`, [
    rule('approve', 'certificates.k8s.io', 'signers', `kubernetes.io/${signer}`),
  ]);
}

/** Default ClusterRoles of components and of the API itself. */
export const systemRoles: ClusterRole[] = [
  clusterRole('cluster-admin', [rule('*', '*', '*'), urls('*', '*')]),
  clusterRole('system:discovery', [
    urls('get', '/livez /readyz /healthz /version /version/ /openapi /openapi/* /api /api/* /apis /apis/*'),
  ]),
  clusterRole('system:monitoring', [
    urls('get', '/healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/*'),
  ]),
  clusterRole('system:basic-user', [
    rule('create', 'authorization.k8s.io', 'selfsubjectaccessreviews selfsubjectrulesreviews'),
    rule('create', 'authentication.k8s.io', 'selfsubjectreviews'),
  ]),
  clusterRole('system:public-info-viewer', [urls('get', '/livez /readyz /healthz /version /version/')]),
  clusterRole('system:heapster', [
    rule(READ, 'core', 'events namespaces nodes pods'),
    rule(READ, 'extensions', 'deployments'),
  ]),
  clusterRole('system:node', NODE_RULES),
  clusterRole('system:node-problem-detector', [
    rule('get', 'core', 'nodes'),
    rule('patch', 'core', 'nodes/status'),
    EVENTS,
  ]),
  clusterRole('system:kubelet-api-admin', [
    rule(READ, 'core', 'nodes'),
    rule('proxy', 'core', 'nodes'),
    rule('*', 'core', 'nodes/log nodes/metrics nodes/proxy nodes/stats'),
    rule('*', 'core', 'nodes/configz nodes/healthz nodes/pods'),
  ]),
  clusterRole('system:node-bootstrapper', [rule(`create ${READ}`, 'certificates.k8s.io', CSR)]),
  clusterRole('system:auth-delegator', [
    rule('create', 'authentication.k8s.io', 'tokenreviews'),
    rule('create', 'authorization.k8s.io', 'subjectaccessreviews'),
  ]),
  clusterRole('system:kube-aggregator', [rule(READ, 'core', 'services endpoints')]),
  clusterRole('system:kube-controller-manager', [
    EVENTS,
    rule('create', 'coordination.k8s.io', 'leases'),
    rule('get update', 'coordination.k8s.io', 'leases', 'kube-controller-manager'),
    rule('create', 'core', 'secrets serviceaccounts'),
    rule('delete', 'core', 'secrets'),
    rule('get', 'core', 'namespaces secrets serviceaccounts configmaps'),
    rule('update', 'core', 'secrets serviceaccounts'),
    rule('create', 'authentication.k8s.io', 'tokenreviews'),
    rule('create', 'authorization.k8s.io', 'subjectaccessreviews'),
    rule('list watch', '*', '*'),
    rule('create', 'core', 'serviceaccounts/token'),
  ]),
  clusterRole('system:kube-dns', [rule('list watch', 'core', 'endpoints services')]),
  clusterRole('system:persistent-volume-provisioner', [
    rule(`${READ} create delete`, 'core', 'persistentvolumes'),
    rule(`${READ} update`, 'core', 'persistentvolumeclaims'),
    rule(READ, 'storage.k8s.io', 'storageclasses'),
    rule('watch', 'core', 'events'),
    EVENTS,
  ]),
  clusterRole('system:volume-scheduler', [
    rule(`${READ} update patch`, 'core', 'persistentvolumes'),
    rule(READ, 'storage.k8s.io', 'storageclasses'),
    rule(`${READ} update patch`, 'core', 'persistentvolumeclaims'),
  ]),
  clusterRole(`system:certificates.k8s.io:${CSR}:nodeclient`, [
    rule('create', 'certificates.k8s.io', `${CSR}/nodeclient`),
  ]),
  clusterRole(`system:certificates.k8s.io:${CSR}:selfnodeclient`, [
    rule('create', 'certificates.k8s.io', `${CSR}/selfnodeclient`),
  ]),
  approver('legacy-unknown'),
  approver('kubelet-serving'),
  approver('kube-apiserver-client'),
  approver('kube-apiserver-client-kubelet'),
  clusterRole('system:service-account-issuer-discovery', [
    urls(
      'get',
      '/.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/',
    ),
  ]),
  clusterRole('system:node-proxier', [
    rule('list watch', 'core', 'services endpoints'),
    rule(READ, 'core', 'nodes'),
    EVENTS,
    rule('list watch', 'networking.k8s.io', 'servicecidrs'),
    rule('list watch', 'discovery.k8s.io', 'endpointslices'),
  ]),
  clusterRole('system:kube-scheduler', [
    EVENTS,
    rule('create', 'coordination.k8s.io', 'leases'),
    rule('get update', 'coordination.k8s.io', 'leases', 'kube-scheduler'),
    rule(READ, 'core', 'nodes'),
    rule(`${READ} delete`, 'core', 'pods'),
    rule('create', 'core', 'pods/binding bindings'),
    rule('patch update', 'core', 'pods/status'),
    rule(READ, 'core', 'replicationcontrollers services'),
    rule(READ, 'apps extensions', 'replicasets'),
    rule(READ, 'apps', 'statefulsets'),
    rule(READ, 'policy', 'poddisruptionbudgets'),
    rule(READ, 'core', 'persistentvolumeclaims persistentvolumes'),
    rule('create', 'authentication.k8s.io', 'tokenreviews'),
    rule('create', 'authorization.k8s.io', 'subjectaccessreviews'),
    rule(READ, 'storage.k8s.io', 'csinodes'),
    rule(READ, 'storage.k8s.io', 'volumeattachments'),
    rule(READ, 'core', 'namespaces'),
    rule(READ, 'storage.k8s.io', 'csidrivers'),
    rule(READ, 'storage.k8s.io', 'csistoragecapacities'),
    rule(READ, 'resource.k8s.io', 'deviceclasses'),
    rule(`${READ} update patch`, 'resource.k8s.io', 'resourceclaims'),
    rule(`${READ} update patch`, 'resource.k8s.io', 'resourceclaims/status'),
    rule(`${READ} update patch`, 'core', 'pods/finalizers'),
    rule(READ, 'resource.k8s.io', 'resourceslices'),
  ]),
];

const AUTHENTICATED = group('system:authenticated');
const SCHEDULER = user('system:kube-scheduler');

export const systemBindings: ClusterRoleBinding[] = [
  clusterBinding('cluster-admin', group('system:masters')),
  clusterBinding('system:monitoring', group('system:monitoring')),
  clusterBinding('system:discovery', AUTHENTICATED),
  clusterBinding('system:basic-user', AUTHENTICATED),
  clusterBinding('system:public-info-viewer', AUTHENTICATED, group('system:unauthenticated')),
  clusterBinding('system:node-proxier', user('system:kube-proxy')),
  clusterBinding('system:kube-controller-manager', user('system:kube-controller-manager')),
  clusterBinding('system:kube-dns', serviceAccount('kube-dns')),
  clusterBinding('system:kube-scheduler', SCHEDULER),
  clusterBinding('system:volume-scheduler', SCHEDULER),
  clusterBinding('system:service-account-issuer-discovery', group('system:serviceaccounts')),
  clusterBinding('system:node'),
];
