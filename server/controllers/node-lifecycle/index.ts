import type { Controller, ControllerContext } from '#server/client';
export function createNodeLifecycleController(_context: ControllerContext): Controller {
  return { start() {}, async stop() {} };
}
