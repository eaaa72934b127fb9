import type { Controller, ControllerContext } from '#server/client';
export function createGarbageCollector(_context: ControllerContext): Controller {
  return { start() {}, async stop() {} };
}
