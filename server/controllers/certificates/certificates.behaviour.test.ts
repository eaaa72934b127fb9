import { X509Certificate } from 'node:crypto';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Client, Draft } from '#server/client';
import { createInProcessClient } from '#server/client';
import { type Cluster, startCluster } from '#server/controllers/testing';
import {
  type CertificateSigningRequest,
  certificateSigningRequests,
  clusterRoleBindings,
} from '#server/kube';
import { type Authority, createAuthority, createKeyPair, signRequest } from '#server/pki';
import { createCertificateApprovingController, createCertificateSigningController } from './index.ts';

let cluster: Cluster;
let authority: Authority;
const KUBELET = 'kubernetes.io/kube-apiserver-client-kubelet';

beforeEach(async () => {
  cluster = await startCluster();
  authority = await createAuthority({ commonName: 'kubernetes', now: Date.now() });
  cluster.run('certificate-controller', createCertificateApprovingController);
  cluster.run('certificate-controller', (context) =>
    createCertificateSigningController(context, { signing: authority }),
  );
});

afterEach(() => cluster.stop());

function as(name: string, groups: string[]): Client {
  return createInProcessClient({
    backend: cluster.backend,
    user: { name, groups: [...groups, 'system:authenticated'] },
    userAgent: 'kubelet/v1',
  });
}

async function csr(
  name: string,
  options: { commonName?: string; organizations?: string[]; signerName?: string; usages?: string[] } = {},
): Promise<Draft<CertificateSigningRequest>> {
  const {
    commonName = 'system:node:worker',
    organizations = ['system:nodes'],
    signerName = KUBELET,
  } = options;
  const pem = await signRequest({ keys: createKeyPair(), commonName, organizations });
  const usages = options.usages ?? ['digital signature', 'client auth'];
  return {
    metadata: { name },
    spec: { request: Buffer.from(pem).toString('base64'), signerName, usages, expirationSeconds: 86_400 },
  };
}

const grant = (name: string, group: string, role: string) =>
  cluster.admin.create(clusterRoleBindings, {
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
    subjects: [{ kind: 'Group', name: group, apiGroup: 'rbac.authorization.k8s.io' }],
  });

it('a bootstrapping kubelet that may ask gets its certificate', async () => {
  await grant('bootstrappers', 'system:bootstrappers', 'system:node-bootstrapper');
  await grant(
    'auto',
    'system:bootstrappers',
    'system:certificates.k8s.io:certificatesigningrequests:nodeclient',
  );
  await as('system:bootstrap:abcdef', ['system:bootstrappers']).create(
    certificateSigningRequests,
    await csr('node-csr'),
  );
  const signed = await cluster.until(
    certificateSigningRequests,
    { name: 'node-csr' },
    (object) => object?.status?.certificate !== undefined,
  );
  const [{ lastTransitionTime: _, lastUpdateTime: __, ...approved } = { type: '', status: '' }] =
    signed.status?.conditions ?? [];
  expect(approved).toEqual({
    type: 'Approved',
    status: 'True',
    reason: 'AutoApproved',
    message: 'Auto approving kubelet client certificate after SubjectAccessReview.',
  });
  const certificate = new X509Certificate(Buffer.from(signed.status?.certificate ?? '', 'base64'));
  expect(certificate.verify(new X509Certificate(authority.certPem).publicKey)).toBe(true);
  expect(certificate.subject.split('\n').sort()).toEqual(['CN=system:node:worker', 'O=system:nodes']);
  expect(Date.parse(certificate.validTo) - Date.now()).toBeLessThanOrEqual(86_400_000);
});

it('a kubelet renews its own certificate', async () => {
  await grant(
    'renewal',
    'system:nodes',
    'system:certificates.k8s.io:certificatesigningrequests:selfnodeclient',
  );
  await as('system:node:worker', ['system:nodes']).create(certificateSigningRequests, await csr('renewal'));
  const signed = await cluster.until(
    certificateSigningRequests,
    { name: 'renewal' },
    (object) => object?.status?.certificate !== undefined,
  );
  expect(signed.status?.conditions?.[0]?.message).toBe(
    'Auto approving self kubelet client certificate after SubjectAccessReview.',
  );
});

it('who lacks the permission waits until it is granted, and other signers wait for a person', async () => {
  await grant('bootstrappers', 'system:bootstrappers', 'system:node-bootstrapper');
  const client = as('system:bootstrap:abcdef', ['system:bootstrappers']);
  await client.create(certificateSigningRequests, await csr('early'));
  await client.create(
    certificateSigningRequests,
    await csr('person', {
      signerName: 'kubernetes.io/kube-apiserver-client',
      commonName: 'jane',
      organizations: ['dev'],
    }),
  );
  await new Promise((resolve) => setImmediate(resolve));
  for (const name of ['early', 'person']) {
    expect((await cluster.admin.get(certificateSigningRequests, { name })).status?.conditions ?? []).toEqual(
      [],
    );
  }
  await grant(
    'auto',
    'system:bootstrappers',
    'system:certificates.k8s.io:certificatesigningrequests:nodeclient',
  );
  await cluster.until(
    certificateSigningRequests,
    { name: 'early' },
    (object) => object?.status?.certificate !== undefined,
  );
  const person = await cluster.admin.get(certificateSigningRequests, { name: 'person' });
  const approval = { type: 'Approved', status: 'True', reason: 'Looked', message: 'fine' };
  await cluster.admin.update(
    certificateSigningRequests,
    { ...person, status: { conditions: [approval] } },
    { subresource: 'approval' },
  );
  await cluster.until(
    certificateSigningRequests,
    { name: 'person' },
    (object) => object?.status?.certificate !== undefined,
  );
});

it("an approved request against its signer's rules fails", async () => {
  const made = await cluster.admin.create(
    certificateSigningRequests,
    await csr('wrong', {
      signerName: 'kubernetes.io/kubelet-serving',
      usages: ['server auth', 'digital signature'],
    }),
  );
  const approval = { type: 'Approved', status: 'True', reason: 'Looked', message: 'fine' };
  await cluster.admin.update(
    certificateSigningRequests,
    { ...made, status: { conditions: [approval] } },
    { subresource: 'approval' },
  );
  const failed = await cluster.until(
    certificateSigningRequests,
    { name: 'wrong' },
    (object) => object?.status?.conditions?.length === 2,
  );
  expect(failed.status?.conditions?.[1]).toMatchObject({
    type: 'Failed',
    status: 'True',
    reason: 'SignerValidationFailure',
    message: 'DNS or IP subjectAltName is required',
  });
});
