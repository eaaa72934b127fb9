import type { Controller, ControllerContext } from '#server/client';
export function createEndpointSliceController(_context: ControllerContext): Controller {
  return { start() {}, async stop() {} };
}
