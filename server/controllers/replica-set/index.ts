import type { Controller, ControllerContext } from '#server/client';
export function createReplicaSetController(_context: ControllerContext): Controller {
  return { start() {}, async stop() {} };
}
