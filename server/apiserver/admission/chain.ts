import type { UnstructuredObject, UserInfo } from '#server/kube';
import { rbacEscalationCheck } from '../authz/escalation.ts';
import type { KindDefinition, ServerFacilities } from '../kind.ts';
import { validateCertificateRequests } from './certificates.ts';
import { admitDefaultTolerations } from './default-tolerations.ts';
import { admitNamespaceLifecycle } from './namespace-lifecycle.ts';
import { admitNodeRestriction } from './node-restriction.ts';
import { admitPriority, defaultPriority } from './priority.ts';
import { admitServiceAccount, validateServiceAccount } from './service-account.ts';
import { admitTaintedNodes } from './taint-nodes.ts';

/** One write on its way to the store. */
export interface AdmissionAttributes {
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT';
  readonly kind: KindDefinition;
  readonly subresource?: string | undefined;
  readonly namespace?: string | undefined;
  /** Empty when a create leaves the name to the server. */
  readonly name: string;
  /** What would be stored; mutating plugins change it in place. */
  readonly object?: UnstructuredObject | undefined;
  readonly old?: UnstructuredObject | undefined;
  readonly user: UserInfo;
  readonly dryRun: boolean;
  readonly server: ServerFacilities;
}

export interface Admission {
  /** Runs the mutating plugins, then the validating ones. Throws the StatusError of the first that refuses. */
  admit(attributes: AdmissionAttributes): Promise<void>;
}

/** What one plugin does with a write: changes its object, or throws a StatusError. */
export type AdmissionPlugin = (attributes: AdmissionAttributes) => void;

/**
 * The plugins a v1.36 server has on by default and this one needs, in upstream's order
 * (pkg/kubeapiserver/options/plugins.go). NodeRestriction is on as kubeadm sets it.
 * LimitRanger, PodSecurity and ResourceQuota take their places here when there are kinds for them. Upstream checks the
 * escalation of RBAC in its storage, behind admission: here that is the last plugin.
 */
const MUTATING: readonly AdmissionPlugin[] = [
  admitNamespaceLifecycle,
  admitServiceAccount,
  admitNodeRestriction,
  admitTaintedNodes,
  defaultPriority,
  admitDefaultTolerations,
];

const VALIDATING: readonly AdmissionPlugin[] = [
  validateServiceAccount,
  admitPriority,
  validateCertificateRequests,
  rbacEscalationCheck,
];

export function createAdmission(): Admission {
  return {
    async admit(attributes) {
      for (const plugin of MUTATING) plugin(attributes);
      for (const plugin of VALIDATING) plugin(attributes);
    },
  };
}
