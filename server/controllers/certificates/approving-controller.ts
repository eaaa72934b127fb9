import type { Controller, ControllerContext, WorkQueue } from '#server/client';
import { type Arrange, createLoop } from '#server/controllers/machinery';
import {
  type CertificateSigningRequest,
  certificateSigningRequests,
  defineResource,
  type SubjectAccessReview,
} from '#server/kube';
import { conditionOf, kubeletClientError, parseCsr, SIGNERS } from './requests.ts';

const reviews = defineResource<SubjectAccessReview>({
  group: 'authorization.k8s.io',
  version: 'v1',
  kind: 'SubjectAccessReview',
  plural: 'subjectaccessreviews',
  namespaced: false,
});

/** Milliseconds before a request whose sender lacks the permission is looked at again; doubles up to the limit. */
const FIRST_RETRY = 200;
const LAST_RETRY = 1_000_000;

/** What a sender must be allowed to create, and what the approval then says. */
const SELF = {
  subresource: 'selfnodeclient',
  message: 'Auto approving self kubelet client certificate after SubjectAccessReview.',
};
const OTHER = {
  subresource: 'nodeclient',
  message: 'Auto approving kubelet client certificate after SubjectAccessReview.',
};

/** Approves kubelets' client certificates. Models certificates/approver/sarapprove.go. */
export function createCertificateApprovingController(context: ControllerContext): Controller {
  const { client, informers } = context;
  const csrInformer = informers.informer(certificateSigningRequests);
  /** How often each request was found wanting. */
  const refusals = new Map<string, number>();

  const isAllowed = async ({ spec }: CertificateSigningRequest, subresource: string): Promise<boolean> => {
    const { username = '', uid, groups, extra } = spec;
    const resource = {
      group: 'certificates.k8s.io',
      resource: 'certificatesigningrequests',
      verb: 'create',
      subresource,
    };
    const { status } = await client.create(reviews, {
      metadata: {},
      spec: {
        user: username,
        ...(uid ? { uid } : {}),
        ...(groups ? { groups } : {}),
        ...(extra ? { extra } : {}),
        resourceAttributes: resource,
      },
    });
    return status?.allowed ?? false;
  };
  const approve = async (csr: CertificateSigningRequest, message: string): Promise<void> => {
    const approved = { type: 'Approved', status: 'True', reason: 'AutoApproved', message };
    const status = { ...csr.status, conditions: [...(csr.status?.conditions ?? []), approved] };
    await client.update(certificateSigningRequests, { ...csr, status }, { subresource: 'approval' });
  };
  const reconcile = async (name: string) => {
    const csr = csrInformer.get(name);
    if (!csr || csr.status?.certificate || conditionOf(csr, 'Approved') || conditionOf(csr, 'Denied')) {
      refusals.delete(name);
      return undefined;
    }
    if (csr.spec.signerName !== SIGNERS.kubeletClient) return undefined;
    const request = await parseCsr(csr);
    if (kubeletClientError(request, csr.spec.usages ?? [])) return undefined;
    for (const permission of csr.spec.username === request.commonName ? [SELF, OTHER] : [OTHER]) {
      if (await isAllowed(csr, permission.subresource)) {
        await approve(csr, permission.message);
        refusals.delete(name);
        return undefined;
      }
    }
    // The permission may be granted yet.
    const times = refusals.get(name) ?? 0;
    refusals.set(name, times + 1);
    return { requeueAfter: Math.min(FIRST_RETRY * 2 ** times, LAST_RETRY) };
  };
  const watch = (on: Arrange, queue: WorkQueue): void => {
    on(csrInformer, {
      added: ({ metadata }) => queue.add(metadata.name),
      updated: (_, { metadata }) => queue.add(metadata.name),
      deleted: ({ metadata }) => queue.add(metadata.name),
    });
  };
  return createLoop({ name: 'certificate-approving', context, workers: 1, watch, reconcile });
}
