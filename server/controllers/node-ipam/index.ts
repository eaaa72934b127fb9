import type { Controller, ControllerContext } from '#server/client';
export function createNodeIpamController(_context: ControllerContext, _options: { clusterCidr: string; nodeCidrMaskSize: number }): Controller {
  return { start() {}, async stop() {} };
}
