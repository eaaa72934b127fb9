import type { Controller, ControllerContext } from '#server/client';
export function createRootCaPublisher(_context: ControllerContext, _options: { rootCaPem: string }): Controller {
  return { start() {}, async stop() {} };
}
