import { failure, forbidden, type StatusError } from '#server/kube';
import type { AuthorizationAttributes, ServerFacilities } from '../kind.ts';
import { createNodeAuthorizer, isNode } from './node-authorizer.ts';
import { type Authorizer, createRbacAuthorizer } from './rbac-authorizer.ts';

export type { Authorizer };

/**
 * The server's authorizer: system:masters may do anything, then Node, then RBAC (`--authorization-mode=Node,RBAC`).
 * `list` and `read` are asked on every decision that needs stored objects and must be cheap.
 * Models kubernetes/pkg/kubeapiserver/authorizer and k8s.io/apiserver/pkg/authorization/union.
 */
export function createAuthorizer(facilities: Pick<ServerFacilities, 'list' | 'read'>): Authorizer {
  const node = createNodeAuthorizer(facilities);
  const rbac = createRbacAuthorizer(facilities);
  return {
    authorize(attributes) {
      if (attributes.user.groups.includes('system:masters')) return { allowed: true, reason: '' };
      if (!isNode(attributes.user)) return rbac.authorize(attributes);
      const first = node.authorize(attributes);
      if (first.allowed) return first;
      const second = rbac.authorize(attributes);
      if (second.allowed) return second;
      return { allowed: false, reason: [first.reason, second.reason].filter(Boolean).join('\n') };
    },
    rulesFor(user, namespace) {
      const rules = rbac.rulesFor(user, namespace);
      if (!isNode(user)) return rules;
      const error = 'node authorizer does not support user rule resolution';
      const both = rules.evaluationError ? `[${error}, ${rules.evaluationError}]` : error;
      return { ...rules, incomplete: true, evaluationError: both };
    },
    invalidate: (change) => rbac.invalidate(change),
  };
}

/**
 * The 403 of a refused request: `pods is forbidden: User "x" cannot list resource "pods" in API group "" in the
 * namespace "default"`, with the authorizer's reason behind it when it gave one.
 * Models k8s.io/apiserver/pkg/endpoints/handlers/responsewriters (Forbidden).
 */
export function authorizationFailure(attributes: AuthorizationAttributes, reason: string): StatusError {
  const why = reason ? `${describeRequest(attributes)}: ${reason}` : describeRequest(attributes);
  const resource = attributes.resource;
  if (!resource) return failure(403, 'Forbidden', `forbidden: ${why}`, {});
  return forbidden({ group: resource.group, plural: resource.plural }, resource.name ?? '', why);
}

function describeRequest({ user, verb, resource, path }: AuthorizationAttributes): string {
  const quote = JSON.stringify;
  if (!resource) return `User ${quote(user.name)} cannot ${verb} path ${quote(path ?? '')}`;
  const combined = resource.subresource ? `${resource.plural}/${resource.subresource}` : resource.plural;
  const what = `User ${quote(user.name)} cannot ${verb} resource ${quote(combined)} in API group ${quote(resource.group)}`;
  return resource.namespace
    ? `${what} in the namespace ${quote(resource.namespace)}`
    : `${what} at the cluster scope`;
}
