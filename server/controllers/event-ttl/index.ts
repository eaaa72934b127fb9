import type { Controller, ControllerContext } from '#server/client';
export function createEventTtl(_context: ControllerContext): Controller {
  return { start() {}, async stop() {} };
}
