import type { Controller, ControllerContext } from '#server/client';
export function createCertificateApprovingController(_context: ControllerContext): Controller {
  return { start() {}, async stop() {} };
}
import type { Authority } from '#server/pki';
export function createCertificateSigningController(_context: ControllerContext, _options: { signing: Authority }): Controller {
  return { start() {}, async stop() {} };
}
