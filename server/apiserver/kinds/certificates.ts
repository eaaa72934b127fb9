import type { CertificateSigningRequest } from '#server/kube';
import { as, type KindDefinition } from '../kind.ts';
import { ageColumn, column, humanDuration, nameColumn } from './cells.ts';
import { csrStrategy } from './certificates-strategy.ts';
import { defineKind } from './define.ts';

/** Models extractCSRStatus of the printers: a denial outweighs an approval. */
function conditionText(csr: CertificateSigningRequest): string {
  const types = new Set((csr.status?.conditions ?? []).map((condition) => condition.type));
  const verdict = types.has('Denied') ? 'Denied' : types.has('Approved') ? 'Approved' : 'Pending';
  return `${verdict}${types.has('Failed') ? ',Failed' : ''}${csr.status?.certificate ? ',Issued' : ''}`;
}

export const certificateKinds: readonly KindDefinition[] = [
  defineKind({
    group: 'certificates.k8s.io',
    kind: 'CertificateSigningRequest',
    plural: 'certificatesigningrequests',
    namespaced: false,
    types: 'certificates/v1',
    shortNames: ['csr'],
    hasStatus: true,
    subresources: [
      { name: 'approval', kind: 'CertificateSigningRequest', verbs: ['get', 'patch', 'update'] },
    ],
    strategy: csrStrategy,
    columns: [
      nameColumn,
      ageColumn,
      column(
        'SignerName',
        'Who is asked to sign.',
        (object) => as<CertificateSigningRequest>(object).spec.signerName,
      ),
      column('Requestor', 'Who asks.', (object) => as<CertificateSigningRequest>(object).spec.username ?? ''),
      column('RequestedDuration', 'How long it should be valid.', (object) => {
        const seconds = as<CertificateSigningRequest>(object).spec.expirationSeconds;
        return seconds === undefined ? '<none>' : humanDuration(seconds * 1000);
      }),
      column('Condition', 'What was decided.', (object) =>
        conditionText(as<CertificateSigningRequest>(object)),
      ),
    ],
    selectableFields: {
      'spec.signerName': (object) => as<CertificateSigningRequest>(object).spec.signerName,
    },
  }),
];
