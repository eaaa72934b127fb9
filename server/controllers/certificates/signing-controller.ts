import type { Controller, ControllerContext, WorkQueue } from '#server/client';
import { type Arrange, createLoop } from '#server/controllers/machinery';
import { type CertificateSigningRequest, certificateSigningRequests, formatTime } from '#server/kube';
import { type Authority, type CertificateRequest, issueCertificate } from '#server/pki';
import {
  clientError,
  conditionOf,
  isApproved,
  kubeletClientError,
  kubeletServingError,
  parseCsr,
  SIGNERS,
} from './requests.ts';

/** How long certificates are valid, and the least that can be asked for, seconds. */
const VALIDITY = 365 * 24 * 3600;
const SHORTEST = 600;
const DAY = 24 * 3600;

/** What each signer demands of a request; the answer says what is wrong with it. */
const RULES: Readonly<
  Record<string, (request: CertificateRequest, usages: readonly string[]) => string | undefined>
> = {
  [SIGNERS.client]: (_, usages) => clientError(usages),
  [SIGNERS.kubeletClient]: kubeletClientError,
  [SIGNERS.kubeletServing]: kubeletServingError,
};

/** Signs approved requests with `signing`. Models certificates/signer/signer.go. */
export function createCertificateSigningController(
  context: ControllerContext,
  options: { signing: Authority },
): Controller {
  const { client, informers, clock } = context;
  const csrInformer = informers.informer(certificateSigningRequests);

  const sign = async ({ spec }: CertificateSigningRequest, request: CertificateRequest): Promise<string> => {
    const seconds = Math.min(VALIDITY, Math.max(SHORTEST, spec.expirationSeconds ?? VALIDITY));
    const usages = (['client', 'server'] as const).filter((usage) => spec.usages?.includes(`${usage} auth`));
    const { certPem } = await issueCertificate({
      authority: options.signing,
      ...request,
      usages,
      now: clock.now(),
      days: seconds / DAY,
    });
    return Buffer.from(certPem).toString('base64');
  };
  const reconcile = async (name: string): Promise<void> => {
    const csr = csrInformer.get(name);
    if (!csr || csr.status?.certificate || !isApproved(csr) || conditionOf(csr, 'Failed')?.status === 'True')
      return;
    const rule = RULES[csr.spec.signerName];
    if (!rule) return;
    const request = await parseCsr(csr);
    const wrong = rule(request, csr.spec.usages ?? []);
    const { conditions = [] } = csr.status ?? {};
    const lastUpdateTime = formatTime(clock.now());
    const failed = {
      type: 'Failed',
      status: 'True',
      reason: 'SignerValidationFailure',
      message: wrong ?? '',
      lastUpdateTime,
    };
    const status = wrong
      ? { ...csr.status, conditions: [...conditions, failed] }
      : { ...csr.status, certificate: await sign(csr, request) };
    await client.update(certificateSigningRequests, { ...csr, status }, { subresource: 'status' });
  };
  const watch = (on: Arrange, queue: WorkQueue): void => {
    on(csrInformer, {
      added: ({ metadata }) => queue.add(metadata.name),
      updated: (_, { metadata }) => queue.add(metadata.name),
    });
  };
  return createLoop({ name: 'certificate-signing', context, workers: 1, watch, reconcile });
}
