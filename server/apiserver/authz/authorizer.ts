import type { ServerFacilities } from '../kind.ts';
import type { Authorizer } from './rbac-authorizer.ts';

/**
 * The server's authorizer: system:masters may do anything; then Node, then RBAC (`--authorization-mode=Node,RBAC`).
 */
export function createAuthorizer(_options: Pick<ServerFacilities, 'list' | 'read'>): Authorizer {
  throw new Error('not yet');
}
