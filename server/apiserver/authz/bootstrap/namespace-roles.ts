import type { Role, RoleBinding } from '#server/kube';
import { EVENTS, READ, role, roleBinding, rule, serviceAccount, user } from './notation.ts';

const SYSTEM = 'kube-system';
const PUBLIC = 'kube-public';
const MANAGER = user('system:kube-controller-manager');
const SCHEDULER = user('system:kube-scheduler');

function leaderLocking(component: string): Role {
  return role(SYSTEM, `system::leader-locking-${component}`, [
    rule('watch', 'core', 'configmaps'),
    rule('get update', 'core', 'configmaps', component),
  ]);
}

export const namespaceRoles: Role[] = [
  role(SYSTEM, 'extension-apiserver-authentication-reader', [
    rule(READ, 'core', 'configmaps', 'extension-apiserver-authentication'),
  ]),
  role(SYSTEM, 'system:controller:bootstrap-signer', [rule(READ, 'core', 'secrets')]),
  role(SYSTEM, 'system:controller:cloud-provider', [rule(`create ${READ}`, 'core', 'configmaps')]),
  role(SYSTEM, 'system:controller:token-cleaner', [rule(`${READ} delete`, 'core', 'secrets'), EVENTS]),
  leaderLocking('kube-controller-manager'),
  leaderLocking('kube-scheduler'),
  role(PUBLIC, 'system:controller:bootstrap-signer', [
    rule(READ, 'core', 'configmaps'),
    rule('update', 'core', 'configmaps', 'cluster-info'),
    EVENTS,
  ]),
];

export const namespaceRoleBindings: RoleBinding[] = [
  roleBinding(
    SYSTEM,
    'system::extension-apiserver-authentication-reader',
    [MANAGER, SCHEDULER],
    'extension-apiserver-authentication-reader',
  ),
  roleBinding(SYSTEM, 'system::leader-locking-kube-controller-manager', [
    MANAGER,
    serviceAccount('kube-controller-manager'),
  ]),
  roleBinding(SYSTEM, 'system::leader-locking-kube-scheduler', [SCHEDULER, serviceAccount('kube-scheduler')]),
  roleBinding(SYSTEM, 'system:controller:bootstrap-signer', [serviceAccount('bootstrap-signer')]),
  roleBinding(SYSTEM, 'system:controller:cloud-provider', [serviceAccount('cloud-provider')]),
  roleBinding(SYSTEM, 'system:controller:token-cleaner', [serviceAccount('token-cleaner')]),
  roleBinding(PUBLIC, 'system:controller:bootstrap-signer', [serviceAccount('bootstrap-signer')]),
];
