import { describe, expect, it } from 'vitest';
import { createApiServer } from '#server/apiserver';
import { createClock, createRandomIds, silentLogger } from '#server/base';
import { createInProcessClient } from '#server/client';
import { deployments, services } from '#server/kube';
import { createAuthority, createKeyPair } from '#server/pki';
import { createMemoryEngine } from '#server/store';
import { applyObjects } from './apply.ts';
import { coreDnsObjects } from './kubeadm/core-dns.ts';

describe('applyObjects', () => {
  it('can be repeated, also where the first attempt was cut off half way', async () => {
    const clock = createClock();
    const keys = createKeyPair();
    const server = await createApiServer({
      cluster: 'test',
      store: await createMemoryEngine({ log: silentLogger }).open('test'),
      clock,
      ids: createRandomIds(),
      log: silentLogger,
      clientCaPem: [(await createAuthority({ commonName: 'kubernetes', now: clock.now() })).certPem],
      serviceAccount: {
        issuer: 'https://kubernetes.default.svc.cluster.local',
        signingKeyPem: keys.privateKeyPem,
        verifyingKeysPem: [keys.publicKeyPem],
      },
      serviceCidr: '10.96.0.0/12',
      kubelets: { kubelet: () => undefined },
    });
    const client = createInProcessClient({
      backend: server.backend,
      user: { name: 'admin', groups: ['system:masters'] },
      userAgent: 'kubeadm/v1.36.3',
    });
    const objects = coreDnsObjects({ clusterDns: '10.96.0.10', dnsDomain: 'cluster.local' });
    const printed: string[] = [];
    const options = {
      fieldManager: 'kubeadm',
      onlyCreate: true,
      print: (text: string) => void printed.push(text),
    };
    await applyObjects(
      client,
      objects.filter((object) => object.kind !== 'Deployment'),
      options,
    );
    await applyObjects(client, objects, options);
    const ref = { namespace: 'kube-system' };
    expect((await client.get(services, { ...ref, name: 'kube-dns' })).spec.clusterIP).toBe('10.96.0.10');
    expect((await client.get(deployments, { ...ref, name: 'coredns' })).spec.replicas).toBe(2);
    expect(printed.filter((line) => line.startsWith('service/'))).toEqual([
      'service/kube-dns created\n',
      'service/kube-dns unchanged\n',
    ]);
    await server.close();
  });
});
