import type { KindDefinition } from '../kind.ts';
import { appsKinds } from './apps.ts';
import { certificateKinds } from './certificates.ts';
import { configKinds } from './config.ts';
import { endpointKinds } from './endpoints.ts';
import { eventKinds } from './events.ts';
import { leaseKinds } from './leases.ts';
import { namespaceKinds } from './namespaces.ts';
import { nodeKinds } from './nodes.ts';
import { podKinds } from './pods.ts';
import { policyKinds } from './policy.ts';
import { rbacKinds } from './rbac.ts';
import { schedulingKinds } from './scheduling.ts';
import { serviceKinds } from './services.ts';
import { storageKinds } from './storage.ts';

/** The kinds this server is born with, stored ones and `bindings`; reviews and custom resources come from elsewhere. */
export const builtinKinds: readonly KindDefinition[] = [
  ...podKinds,
  ...serviceKinds,
  ...endpointKinds,
  ...nodeKinds,
  ...namespaceKinds,
  ...eventKinds,
  ...configKinds,
  ...appsKinds,
  ...leaseKinds,
  ...rbacKinds,
  ...storageKinds,
  ...schedulingKinds,
  ...certificateKinds,
  ...policyKinds,
];
