import type { Controller, ControllerContext } from '#server/client';
export function createDeploymentController(_context: ControllerContext): Controller {
  return { start() {}, async stop() {} };
}
