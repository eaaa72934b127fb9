import type { Clock, Ids } from '#server/base';
import type { UnstructuredObject, UserInfo } from '#server/kube';
import { createAllocators } from './allocators.ts';
import { type Authenticator, type Credentials, createAuthenticator } from './authn/authenticator.ts';
import { type Authorizer, createAuthorizer } from './authz/authorizer.ts';
import type { Allocators, ServerFacilities } from './kind.ts';
import { type ObjectStorage, objectStorageKey, scopePrefix } from './storage.ts';

export interface FacilitiesOptions {
  clock: Clock;
  ids: Ids;
  clientCaPem: readonly string[];
  serviceAccount: { issuer: string; signingKeyPem: string; verifyingKeysPem: readonly string[] };
  serviceCidr: string;
  nodePortRange?: string;
}

export interface Facilities {
  readonly facilities: ServerFacilities;
  readonly authorizer: Authorizer;
  readonly authenticate: (credentials: Credentials) => Promise<UserInfo | undefined>;
}

/**
 * What strategies, admission and reviews may ask of a server, over its stored objects. Keys are read and addresses
 * counted when first needed: most of a sleeping cluster's servers never do.
 */
export function createFacilities(storage: ObjectStorage, options: FacilitiesOptions): Facilities {
  const { clock, ids } = options;
  const read: ServerFacilities['read'] = (resource, namespace, name) => {
    const entry = storage.get(objectStorageKey(resource, namespace, name));
    return entry && storage.decode(entry);
  };
  const list: ServerFacilities['list'] = (resource, namespace) => {
    const { entries } = storage.store.list(scopePrefix(resource, namespace));
    return entries.map((entry): UnstructuredObject => storage.decode(entry));
  };
  const authorizer = createAuthorizer({ read, list });
  let authenticator: Authenticator | undefined;
  const theAuthenticator = (): Authenticator => {
    authenticator ??= createAuthenticator({
      clientCaPem: options.clientCaPem,
      serviceAccount: options.serviceAccount,
      facilities: { now: () => clock.now(), uid: () => ids.uid(), read },
    });
    return authenticator;
  };
  let allocators: Allocators | undefined;
  const facilities: ServerFacilities = {
    now: () => clock.now(),
    uid: () => ids.uid(),
    suffix: (length) => ids.suffix(length),
    read,
    list,
    get allocators() {
      allocators ??= createAllocators({
        serviceCidr: options.serviceCidr,
        nodePortRange: options.nodePortRange,
        ids,
        existing: list({ group: '', plural: 'services' }),
      });
      return allocators;
    },
    authorize: (attributes) => authorizer.authorize(attributes),
    rulesFor: (user, namespace) => authorizer.rulesFor(user, namespace),
    get tokens() {
      return theAuthenticator().tokens;
    },
  };
  return {
    facilities,
    authorizer,
    authenticate: async (credentials) => theAuthenticator().authenticate(credentials),
  };
}
