import type { Controller, ControllerContext } from '#server/client';
export function createDaemonSetController(_context: ControllerContext): Controller {
  return { start() {}, async stop() {} };
}
