import type { CertificateSigningRequest, CertificateSigningRequestCondition } from '#server/kube';
import { type CertificateRequest, parseRequest } from '#server/pki';

export const SIGNERS = {
  client: 'kubernetes.io/kube-apiserver-client',
  kubeletClient: 'kubernetes.io/kube-apiserver-client-kubelet',
  kubeletServing: 'kubernetes.io/kubelet-serving',
} as const;

const NODES = 'system:nodes';
const NODE_PREFIX = 'system:node:';
const ENCIPHERMENT = 'key encipherment';
const SIGNATURE = 'digital signature';

/** The PKCS#10 request inside. Rejects with RequestFormatError when it is none. */
export function parseCsr({ spec }: CertificateSigningRequest): Promise<CertificateRequest> {
  return parseRequest(Buffer.from(spec.request, 'base64').toString('utf8'));
}

export function conditionOf(
  csr: CertificateSigningRequest,
  type: string,
): CertificateSigningRequestCondition | undefined {
  return csr.status?.conditions?.find((condition) => condition.type === type);
}

export function isApproved(csr: CertificateSigningRequest): boolean {
  return conditionOf(csr, 'Approved') !== undefined && conditionOf(csr, 'Denied') === undefined;
}

function usageError(usages: readonly string[], required: readonly string[]): string | undefined {
  const given = new Set(usages);
  const matches = (wanted: readonly string[]): boolean =>
    wanted.length === given.size && wanted.every((usage) => given.has(usage));
  if (matches(required) || matches(required.filter((usage) => usage !== ENCIPHERMENT))) return undefined;
  return `usages did not match [${[...required].sort().join(' ')}]`;
}

function nodeSubjectError(request: CertificateRequest): string | undefined {
  return request.commonName.startsWith(NODE_PREFIX)
    ? undefined
    : `subject common name does not begin with ${NODE_PREFIX}`;
}

function organizationError({ organizations }: CertificateRequest): string | undefined {
  return organizations.length === 1 && organizations[0] === NODES
    ? undefined
    : `subject organization is not ${NODES}`;
}

/** Why a request is none for a kubelet's client certificate. Models ValidateKubeletClientCSR. */
export function kubeletClientError(
  request: CertificateRequest,
  usages: readonly string[],
): string | undefined {
  const wrong = organizationError(request);
  if (wrong) return wrong;
  if (request.dnsNames.length > 0) return 'DNS subjectAltNames are not allowed';
  if (request.ips.length > 0) return 'IP subjectAltNames are not allowed';
  return nodeSubjectError(request) ?? usageError(usages, [ENCIPHERMENT, SIGNATURE, 'client auth']);
}

/** Why a request is none for a kubelet's serving certificate. Models ValidateKubeletServingCSR. */
export function kubeletServingError(
  request: CertificateRequest,
  usages: readonly string[],
): string | undefined {
  const wrong = organizationError(request);
  if (wrong) return wrong;
  if (request.dnsNames.length === 0 && request.ips.length === 0)
    return 'DNS or IP subjectAltName is required';
  return usageError(usages, [ENCIPHERMENT, SIGNATURE, 'server auth']) ?? nodeSubjectError(request);
}

/** Why usages are none of a client certificate. Models validAPIServerClientUsages. */
export function clientError(usages: readonly string[]): string | undefined {
  const strange = usages.find((usage) => ![SIGNATURE, ENCIPHERMENT, 'client auth'].includes(usage));
  if (strange) return `invalid usage for client certificate: ${strange}`;
  return usages.includes('client auth')
    ? undefined
    : 'missing required usage for client certificate: client auth';
}
