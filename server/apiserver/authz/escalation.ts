import {
  deepEqual,
  forbidden,
  notFound,
  type PolicyRule,
  type RoleRef,
  type UnstructuredObject,
  type UserInfo,
} from '#server/kube';
import type { KindDefinition, ServerFacilities } from '../kind.ts';
import { RBAC_GROUP } from './rbac-index.ts';
import { missingRules } from './rule-matching.ts';

/** The part of AdmissionAttributes this check reads. */
export interface EscalationAttributes {
  operation: string;
  kind: Pick<KindDefinition, 'group' | 'kind' | 'plural'>;
  namespace?: string | undefined;
  name: string;
  object?: UnstructuredObject | undefined;
  old?: UnstructuredObject | undefined;
  user: UserInfo;
  server: Pick<ServerFacilities, 'authorize' | 'read' | 'rulesFor'>;
}

const EVERYTHING: PolicyRule[] = [
  { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
  { verbs: ['*'], nonResourceURLs: ['*'] },
];

/**
 * Refuses the create or update of a role or binding that would give away more than its writer holds, unless they may
 * `escalate` the role or `bind` the referred one. Other kinds and operations pass. Throws StatusError: 403, or 404
 * when a binding refers to a role that is not there. Models kubernetes/pkg/registry/rbac (policybased storages).
 */
export function rbacEscalationCheck(attributes: EscalationAttributes): void {
  const { kind, operation, object, old, user } = attributes;
  if (kind.group !== RBAC_GROUP || !object || (operation !== 'CREATE' && operation !== 'UPDATE')) return;
  if (user.groups.includes('system:masters')) return;
  if (operation === 'UPDATE' && old && onlyCollectorFieldsDiffer(object, old)) return;
  if (kind.kind === 'Role' || kind.kind === 'ClusterRole') checkRole(attributes, object);
  else if (kind.kind === 'RoleBinding' || kind.kind === 'ClusterRoleBinding')
    checkBinding(attributes, object);
}

/** Owner references and finalizers are the garbage collector's to write, whatever the role grants. */
function onlyCollectorFieldsDiffer(object: UnstructuredObject, old: UnstructuredObject): boolean {
  const comparable = (value: UnstructuredObject): unknown => ({
    ...value,
    metadata: {
      ...value.metadata,
      ownerReferences: undefined,
      finalizers: undefined,
      managedFields: undefined,
    },
  });
  return deepEqual(comparable(object), comparable(old));
}

function checkRole(attributes: EscalationAttributes, object: UnstructuredObject): void {
  const { kind, namespace, name, user, server, old } = attributes;
  const resource = { group: RBAC_GROUP, plural: kind.plural, name, ...(namespace ? { namespace } : {}) };
  if (server.authorize({ user, verb: 'escalate', resource }).allowed) return;
  confirmHeld(attributes, (object.rules as PolicyRule[] | undefined) ?? []);
  if (kind.kind !== 'ClusterRole' || !(object.aggregationRule ?? old?.aggregationRule)) return;
  if (missingRules(heldRules(attributes).rules, EVERYTHING).length > 0) {
    throw forbidden(kind, name, 'must have cluster-admin privileges to use the aggregationRule');
  }
}

function checkBinding(attributes: EscalationAttributes, object: UnstructuredObject): void {
  const { namespace, user, server } = attributes;
  const roleRef = object.roleRef as RoleRef | undefined;
  const plural =
    roleRef?.kind === 'ClusterRole' ? 'clusterroles' : roleRef?.kind === 'Role' ? 'roles' : undefined;
  if (!roleRef || !plural) return;
  const place = namespace ? { namespace } : {};
  const resource = { group: roleRef.apiGroup ?? '', plural, name: roleRef.name, ...place };
  if (server.authorize({ user, verb: 'bind', resource }).allowed) return;
  const role = server.read(
    { group: RBAC_GROUP, plural },
    plural === 'roles' ? namespace : undefined,
    roleRef.name,
  );
  if (!role) throw notFound({ group: RBAC_GROUP, plural }, roleRef.name);
  confirmHeld(attributes, (role.rules as PolicyRule[] | undefined) ?? []);
}

function heldRules({ user, namespace, server }: EscalationAttributes): {
  rules: PolicyRule[];
  error: string | undefined;
} {
  const held = server.rulesFor(user, namespace ?? '');
  return { rules: [...held.resourceRules, ...held.nonResourceRules], error: held.evaluationError };
}

function confirmHeld(attributes: EscalationAttributes, wanted: readonly PolicyRule[]): void {
  const { kind, name, user } = attributes;
  const held = heldRules(attributes);
  const missing = missingRules(held.rules, wanted);
  if (missing.length === 0) return;
  const listed = [...new Set(compact(missing).map(describeRule))].sort().join('\n');
  const errors = held.error ? `; resolution errors: [${held.error}]` : '';
  const who = `user ${JSON.stringify(user.name)} (groups=${quoteAll(user.groups)})`;
  throw forbidden(
    kind,
    name,
    `${who} is attempting to grant RBAC permissions not currently held:\n${listed}${errors}`,
  );
}

/** Joins atoms that differ by verb only. */
function compact(rules: readonly PolicyRule[]): PolicyRule[] {
  const joined = new Map<string, PolicyRule>();
  const others: PolicyRule[] = [];
  for (const rule of rules) {
    if (rule.resourceNames || rule.nonResourceURLs) {
      others.push(rule);
      continue;
    }
    const key = JSON.stringify([rule.apiGroups, rule.resources]);
    const known = joined.get(key);
    joined.set(key, known ? { ...known, verbs: [...known.verbs, ...rule.verbs] } : rule);
  }
  return [...others, ...joined.values()];
}

function quoteAll(values: readonly string[]): string {
  return `[${values.map((value) => JSON.stringify(value)).join(' ')}]`;
}

function describeRule(rule: PolicyRule): string {
  const parts: [string, readonly string[] | undefined][] = [
    ['APIGroups', rule.apiGroups],
    ['Resources', rule.resources],
    ['NonResourceURLs', rule.nonResourceURLs],
    ['ResourceNames', rule.resourceNames],
    ['Verbs', rule.verbs],
  ];
  return `{${parts.flatMap(([name, values]) => (values?.length ? `${name}:${quoteAll(values)}` : [])).join(', ')}}`;
}
