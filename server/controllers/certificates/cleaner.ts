import { X509Certificate } from 'node:crypto';
import type { Timer } from '#server/base';
import type { Controller, ControllerContext, WorkQueue } from '#server/client';
import { type Arrange, createLoop } from '#server/controllers/machinery';
import { type CertificateSigningRequest, certificateSigningRequests, isNotFound } from '#server/kube';
import { conditionOf } from './requests.ts';

const HOUR = 3600_000;
/** How long requests are kept: unanswered ones, and answered ones of whatever answer. */
const KEPT_PENDING = 24 * HOUR;
const KEPT_ANSWERED = HOUR;
const INTERVAL = HOUR;

function hasExpired(certificate: string, now: number): boolean {
  return Date.parse(new X509Certificate(Buffer.from(certificate, 'base64')).validTo) < now;
}

function isOld(csr: CertificateSigningRequest, now: number): boolean {
  const age = (time: string | undefined | null): number => (time ? now - Date.parse(time) : 0);
  const answers = ['Approved', 'Denied', 'Failed']
    .map((type) => conditionOf(csr, type))
    .filter((answer) => answer !== undefined);
  if (answers.length === 0) return age(csr.metadata.creationTimestamp) > KEPT_PENDING;
  const certificate = csr.status?.certificate;
  if (certificate && hasExpired(certificate, now)) return true;
  return answers.some((answer) => {
    // Approved, but not signed yet: the signer may be behind.
    if (answer.type === 'Approved' && !certificate) return false;
    return age(answer.lastUpdateTime) > KEPT_ANSWERED;
  });
}

/** Deletes old requests, once an hour while there are any. Models certificates/cleaner. */
export function createCertificateCleaner(context: ControllerContext): Controller {
  const { client, informers, clock } = context;
  const csrInformer = informers.informer(certificateSigningRequests);
  let timer: Timer | undefined;

  const arm = (queue: WorkQueue): void => {
    timer ??= clock.after(INTERVAL, () => {
      timer = undefined;
      for (const csr of csrInformer.list()) queue.add(csr.metadata.name);
    });
  };
  const reconcile = async (name: string, queue: WorkQueue): Promise<void> => {
    const csr = csrInformer.get(name);
    if (!csr) return;
    if (!isOld(csr, clock.now())) {
      arm(queue);
      return;
    }
    try {
      await client.delete(certificateSigningRequests, { name });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  };
  const watch = (on: Arrange, queue: WorkQueue): void => {
    on(csrInformer, { added: ({ metadata }) => queue.add(metadata.name) });
  };
  return createLoop({
    name: 'certificate-cleaner',
    context,
    watch,
    reconcile,
    onStop: () => timer?.cancel(),
  });
}
