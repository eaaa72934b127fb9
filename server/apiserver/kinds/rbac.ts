import type { RoleBinding, Subject } from '#server/kube';
import { as, type Column, type KindDefinition } from '../kind.ts';
import { ageColumn, column, createdAtColumn, nameColumn, wideColumn } from './cells.ts';
import { defineKind } from './define.ts';
import { bindingStrategy, roleStrategy } from './rbac-strategy.ts';

const GROUP = 'rbac.authorization.k8s.io';

function subjects(kind: string, text: (subject: Subject) => string): Column['cell'] {
  return (object) =>
    (as<RoleBinding>(object).subjects ?? [])
      .filter((subject) => subject.kind === kind)
      .map(text)
      .join(', ');
}

const roleColumns: Column[] = [nameColumn, createdAtColumn];

const bindingColumns: Column[] = [
  nameColumn,
  column('Role', 'The role that is given.', (object) => {
    const { roleRef } = as<RoleBinding>(object);
    return `${roleRef.kind}/${roleRef.name}`;
  }),
  ageColumn,
  wideColumn(
    'Users',
    'The users who have it.',
    subjects('User', (subject) => subject.name),
  ),
  wideColumn(
    'Groups',
    'The groups whose members have it.',
    subjects('Group', (subject) => subject.name),
  ),
  wideColumn(
    'ServiceAccounts',
    'The service accounts that have it.',
    subjects('ServiceAccount', (subject) => `${subject.namespace ?? ''}/${subject.name}`),
  ),
];

function rbacKind(kind: string, plural: string, namespaced: boolean): KindDefinition {
  const isBinding = kind.endsWith('Binding');
  return defineKind({
    group: GROUP,
    kind,
    plural,
    namespaced,
    types: 'rbac/v1',
    strategy: isBinding ? bindingStrategy(namespaced) : roleStrategy(namespaced),
    columns: isBinding ? bindingColumns : roleColumns,
  });
}

/** Models kubernetes/pkg/registry/rbac and the printers of rbac/v1. */
export const rbacKinds: readonly KindDefinition[] = [
  rbacKind('ClusterRoleBinding', 'clusterrolebindings', false),
  rbacKind('ClusterRole', 'clusterroles', false),
  rbacKind('RoleBinding', 'rolebindings', true),
  rbacKind('Role', 'roles', true),
];
