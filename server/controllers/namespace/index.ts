import type { Controller, ControllerContext } from '#server/client';
export function createNamespaceController(_context: ControllerContext): Controller {
  return { start() {}, async stop() {} };
}
