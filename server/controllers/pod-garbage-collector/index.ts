import type { Controller, ControllerContext } from '#server/client';
export function createPodGarbageCollector(_context: ControllerContext): Controller {
  return { start() {}, async stop() {} };
}
