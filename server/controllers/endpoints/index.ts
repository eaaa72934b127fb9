import type { Controller, ControllerContext } from '#server/client';
export function createEndpointsController(_context: ControllerContext): Controller {
  return { start() {}, async stop() {} };
}
