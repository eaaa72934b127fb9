import type { UnstructuredObject, UserInfo } from '#server/kube';
import type { KindDefinition, ServerFacilities } from '../kind.ts';

/** The part of AdmissionAttributes this check reads. */
export interface EscalationAttributes {
  operation: string;
  kind: KindDefinition;
  namespace?: string | undefined;
  name: string;
  object?: UnstructuredObject | undefined;
  old?: UnstructuredObject | undefined;
  user: UserInfo;
  server: Pick<ServerFacilities, 'authorize' | 'read' | 'list' | 'rulesFor'>;
}

/** Refuses a role or binding that would give its writer more than they hold. Throws StatusError 403. */
export function rbacEscalationCheck(_attributes: EscalationAttributes): void {
  // Filled in below.
}
