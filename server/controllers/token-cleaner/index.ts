import type { Controller, ControllerContext } from '#server/client';
export function createTokenCleaner(_context: ControllerContext): Controller {
  return { start() {}, async stop() {} };
}
