import { afterEach, beforeEach, expect, it } from 'vitest';
import { createRootCaPublisher } from '#server/controllers/root-ca-publisher';
import { type Cluster, startCluster } from '#server/controllers/testing';
import { configMaps, namespaces, serviceAccounts } from '#server/kube';
import { createServiceAccountController } from './index.ts';

let cluster: Cluster;

beforeEach(async () => {
  cluster = await startCluster();
  cluster.run('service-account-controller', createServiceAccountController);
  cluster.run('root-ca-cert-publisher', (context) => createRootCaPublisher(context, { rootCaPem: 'PEM' }));
});

afterEach(() => cluster.stop());

it('every namespace has its default account and the root certificate, and has them again when they are deleted', async () => {
  for (const namespace of ['default', 'kube-system', 'kube-public', 'kube-node-lease']) {
    await cluster.until(serviceAccounts, { namespace, name: 'default' }, (object) => object !== undefined);
    await cluster.until(
      configMaps,
      { namespace, name: 'kube-root-ca.crt' },
      (object) => object !== undefined,
    );
  }
  await cluster.admin.create(namespaces, { metadata: { name: 'team' }, spec: {} });
  const account = await cluster.until(
    serviceAccounts,
    { namespace: 'team', name: 'default' },
    (object) => object !== undefined,
  );
  const map = await cluster.until(
    configMaps,
    { namespace: 'team', name: 'kube-root-ca.crt' },
    (object) => object !== undefined,
  );
  expect(map.data).toEqual({ 'ca.crt': 'PEM' });
  expect(map.metadata.annotations?.['kubernetes.io/description']).toMatch(
    /^Contains a CA bundle that can be used to verify the kube-apiserver/,
  );
  await cluster.admin.delete(serviceAccounts, { namespace: 'team', name: 'default' });
  await cluster.until(
    serviceAccounts,
    { namespace: 'team', name: 'default' },
    (object) => object !== undefined && object.metadata.uid !== account.metadata.uid,
  );
  await cluster.admin.patch(
    configMaps,
    { namespace: 'team', name: 'kube-root-ca.crt' },
    { type: 'merge', body: { data: { 'ca.crt': 'forged', extra: 'x' } } },
  );
  await cluster.until(
    configMaps,
    { namespace: 'team', name: 'kube-root-ca.crt' },
    (object) => JSON.stringify(object?.data) === '{"ca.crt":"PEM"}',
  );
  await cluster.admin.delete(configMaps, { namespace: 'team', name: 'kube-root-ca.crt' });
  await cluster.until(
    configMaps,
    { namespace: 'team', name: 'kube-root-ca.crt' },
    (object) => object !== undefined && object.metadata.uid !== map.metadata.uid,
  );
});
