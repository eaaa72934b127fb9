import type { Controller, ControllerContext } from '#server/client';
export function createServiceAccountController(_context: ControllerContext): Controller {
  return { start() {}, async stop() {} };
}
