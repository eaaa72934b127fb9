import type { Controller, ControllerContext } from '#server/client';
export function createClusterRoleAggregationController(_context: ControllerContext): Controller {
  return { start() {}, async stop() {} };
}
