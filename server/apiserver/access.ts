import { failure, type UserInfo } from '#server/kube';
import { authorizationFailure } from './authz/authorizer.ts';
import type { AuthorizationAttributes } from './kind.ts';

export type Authorize = (attributes: AuthorizationAttributes) => { allowed: boolean; reason: string };

/** Throws 403 in upstream's words unless the authorizer allows. */
export function requireAccess(authorize: Authorize, attributes: AuthorizationAttributes): void {
  const decision = authorize(attributes);
  if (!decision.allowed) throw authorizationFailure(attributes, decision.reason);
}

/** What a request asks to be instead. */
export interface Impersonation {
  user: string;
  uid: string;
  groups: readonly string[];
  extra: Readonly<Record<string, readonly string[]>>;
}

const SERVICE_ACCOUNT = /^system:serviceaccount:([^:]+):([^:]+)$/;

/**
 * The user a request acts as, each part of it authorized for the real one (`impersonate`). Throws 403, or 500 for groups
 * without a user, as upstream. Models apiserver/pkg/endpoints/filters/impersonation.
 */
export function impersonate(authorize: Authorize, real: UserInfo, wanted: Impersonation): UserInfo {
  const { user, uid, groups, extra } = wanted;
  if (!user) {
    const names = [...groups, ...Object.keys(extra), ...(uid ? [uid] : [])];
    throw failure(
      500,
      'InternalError',
      `Internal error occurred: requested ${JSON.stringify(names)} without impersonating a user`,
      {
        causes: [{ message: `requested ${JSON.stringify(names)} without impersonating a user` }],
      },
    );
  }
  const may = (resource: NonNullable<AuthorizationAttributes['resource']>): void =>
    requireAccess(authorize, { user: real, verb: 'impersonate', resource });
  const account = SERVICE_ACCOUNT.exec(user);
  if (account)
    may({ group: '', plural: 'serviceaccounts', namespace: account[1] ?? '', name: account[2] ?? '' });
  else may({ group: '', plural: 'users', name: user });
  for (const group of groups) may({ group: '', plural: 'groups', name: group });
  for (const key of Object.keys(extra)) {
    for (const value of extra[key] ?? [])
      may({ group: 'authentication.k8s.io', plural: 'userextras', subresource: key, name: value });
  }
  if (uid) may({ group: 'authentication.k8s.io', plural: 'uids', name: uid });
  return {
    name: user,
    groups: impersonatedGroups(user, groups, account?.[1]),
    ...(uid ? { uid } : {}),
    ...(Object.keys(extra).length > 0 ? { extra } : {}),
  };
}

function impersonatedGroups(user: string, asked: readonly string[], namespace: string | undefined): string[] {
  const groups = [...asked];
  if (namespace !== undefined && groups.length === 0)
    groups.push('system:serviceaccounts', `system:serviceaccounts:${namespace}`);
  if (user === 'system:anonymous') {
    if (!groups.includes('system:unauthenticated')) groups.push('system:unauthenticated');
  } else if (!groups.includes('system:authenticated') && !groups.includes('system:unauthenticated'))
    groups.push('system:authenticated');
  return groups;
}
