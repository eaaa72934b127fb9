import type { PolicyRule } from '#server/kube';
import { READ, rule } from './notation.ts';

/** Rules of every kubelet: of the ClusterRole system:node, and what the Node authorizer falls back to. */
export const NODE_RULES: PolicyRule[] = [
  rule('create', 'authentication.k8s.io', 'tokenreviews'),
  rule('create', 'authorization.k8s.io', 'subjectaccessreviews localsubjectaccessreviews'),
  rule(READ, 'core', 'services'),
  rule(`create ${READ}`, 'core', 'nodes'),
  rule('update patch', 'core', 'nodes/status'),
  rule('update patch', 'core', 'nodes'),
  rule('create update patch', 'core', 'events'),
  rule(READ, 'core', 'pods'),
  rule('create delete', 'core', 'pods'),
  rule('update patch', 'core', 'pods/status'),
  rule('create', 'core', 'pods/eviction'),
  rule(READ, 'core', 'secrets configmaps'),
  rule('get', 'core', 'persistentvolumeclaims persistentvolumes'),
  rule('get', 'core', 'endpoints'),
  rule(`create ${READ}`, 'certificates.k8s.io', 'certificatesigningrequests'),
  rule('get create update patch delete', 'coordination.k8s.io', 'leases'),
  rule('get', 'storage.k8s.io', 'volumeattachments'),
  rule('create', 'core', 'serviceaccounts/token'),
  rule('get update patch', 'core', 'persistentvolumeclaims/status'),
  rule(READ, 'storage.k8s.io', 'csidrivers'),
  rule('get create update patch delete', 'storage.k8s.io', 'csinodes'),
  rule(READ, 'node.k8s.io', 'runtimeclasses'),
  rule('get', 'resource.k8s.io', 'resourceclaims'),
  rule('deletecollection', 'resource.k8s.io', 'resourceslices'),
  rule('get', 'core', 'serviceaccounts'),
];
