import { describe, expect, it } from 'vitest';
import type { CertificateSigningRequest, UnstructuredObject } from '#server/kube';
import { csrStrategy } from './certificates-strategy.ts';
import { contextOf, created, facilities, objectOf, refusalOf } from './testing/context.ts';

const PEM = '-----BEGIN CERTIFICATE REQUEST-----\nMIIB\n-----END CERTIFICATE REQUEST-----\n';
const spec = {
  request: Buffer.from(PEM).toString('base64'),
  signerName: 'example.com/signer',
  usages: ['client auth'],
};
const csr = (parts: object = {}): UnstructuredObject =>
  objectOf('certificates.k8s.io/v1', 'CertificateSigningRequest', { spec: { ...spec, ...parts } });

type Status = NonNullable<CertificateSigningRequest['status']>;

async function write(subresource: string, old: UnstructuredObject, status: Status): Promise<Status> {
  const next = { ...structuredClone(old), status: structuredClone(status) };
  await csrStrategy.prepareForUpdate?.(next, old, contextOf(facilities(), subresource));
  return next.status;
}

const approved = { type: 'Approved', status: 'True', reason: 'Fine' };
const stamped = {
  ...approved,
  lastTransitionTime: '2026-01-01T00:00:00Z',
  lastUpdateTime: '2026-01-01T00:00:00Z',
};

describe('certificate signing requests', () => {
  it('name who asked, whatever they say', async () => {
    expect((await created(csr({ username: 'root', groups: ['system:masters'] }))).spec).toEqual({
      ...spec,
      username: 'somebody',
      groups: ['system:authenticated'],
    });
  });

  it.each([
    [
      { signerName: 'nobody' },
      'spec.signerName: Invalid value: "nobody": must be a fully qualified domain and path of the form "example.com/signer-name"',
    ],
    [{ usages: [] }, 'spec.usages: Required value'],
    [
      { expirationSeconds: 60 },
      'spec.expirationSeconds: Invalid value: 60: may not specify a duration less than 600 seconds (10 minutes)',
    ],
  ])('%j is refused', async (parts, message) => {
    expect(await refusalOf(() => created(csr(parts)))).toBe(
      `CertificateSigningRequest.certificates.k8s.io "a" is invalid: ${message}`,
    );
  });

  it('are decided through /approval and signed through /status, each by itself', async () => {
    const fresh = await created(csr());
    const decided = await write('approval', fresh, { conditions: [approved], certificate: 'Zm9yZ2Vk' });
    expect(decided).toEqual({ conditions: [stamped] });
    const signed = await write('status', { ...fresh, status: decided }, { certificate: 'eA==' });
    expect(signed).toEqual({ conditions: [stamped], certificate: 'eA==' });
  });

  it('are not approved and denied, nor undecided again', async () => {
    const fresh = await created(csr());
    const old = { ...fresh, status: { conditions: [stamped] } };
    const both = { conditions: [stamped, { type: 'Denied', status: 'True' }] };
    expect(await refusalOf(() => write('approval', old, both))).toContain(
      'Approved and Denied conditions are mutually exclusive',
    );
    expect(await refusalOf(() => write('approval', old, {}))).toContain(
      'updates may not remove a condition of type "Approved"',
    );
  });
});
