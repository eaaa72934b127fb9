import { type CertificateSigningRequest, deepEqual } from '#server/kube';
import { as } from '../kind.ts';
import type { AdmissionAttributes } from './chain.ts';
import { refuse } from './refusal.ts';

const GROUP = 'certificates.k8s.io';
const CLIENT_SIGNER = 'kubernetes.io/kube-apiserver-client';
const MASTERS = 'system:masters';

function mayUseSigner(attributes: AdmissionAttributes, verb: string, signer: string): boolean {
  const domain = signer.slice(0, signer.indexOf('/') + 1);
  return [signer, `${domain}*`].some(
    (name) =>
      attributes.server.authorize({
        user: attributes.user,
        verb,
        resource: { group: GROUP, plural: 'signers', name },
      }).allowed,
  );
}

/**
 * Whoever approves or signs must be allowed to do so for the signer asked, and nobody asks for a client certificate of
 * the group that may do everything. Models kubernetes/plugin/pkg/admission/certificates (approval, signing,
 * subjectrestriction).
 */
export function validateCertificateRequests(attributes: AdmissionAttributes): void {
  const { kind, operation, subresource = '', object, old } = attributes;
  if (kind.group !== GROUP || kind.plural !== 'certificatesigningrequests' || !object) return;
  const csr = as<CertificateSigningRequest>(object);
  if (operation === 'CREATE' && subresource === '') {
    if (csr.spec.signerName !== CLIENT_SIGNER || !asksFor(csr.spec.request, MASTERS)) return;
    throw refuse(attributes, `use of ${CLIENT_SIGNER} signer with ${MASTERS} group is not allowed`);
  }
  if (operation !== 'UPDATE' || !old) return;
  const before = as<CertificateSigningRequest>(old);
  const signer = before.spec.signerName;
  if (subresource === 'approval' && !mayUseSigner(attributes, 'approve', signer)) {
    throw refuse(
      attributes,
      `user not permitted to approve requests with signerName ${JSON.stringify(signer)}`,
    );
  }
  if (subresource !== 'status') return;
  const same =
    csr.status?.certificate === before.status?.certificate &&
    deepEqual(csr.status?.conditions ?? [], before.status?.conditions ?? []);
  if (!same && !mayUseSigner(attributes, 'sign', signer)) {
    throw refuse(attributes, `user not permitted to sign requests with signerName ${JSON.stringify(signer)}`);
  }
}

/** Names stand in a certificate request as plain text. `request` is base64 of PEM. */
function asksFor(request: string | undefined, group: string): boolean {
  const pem = Buffer.from(request ?? '', 'base64').toString('latin1');
  const body =
    /-----BEGIN CERTIFICATE REQUEST-----([\s\S]+?)-----END CERTIFICATE REQUEST-----/.exec(pem)?.[1] ?? '';
  return Buffer.from(body, 'base64').includes(group);
}
