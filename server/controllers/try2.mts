import { createApiServer } from '#server/apiserver';
import { createClock, createRandomIds, silentLogger } from '#server/base';
import { createInProcessClient } from '#server/client';
import { createKeyPair } from '#server/pki';
import { createMemoryEngine } from '#server/store';
import { nodes, clusterRoles } from '#server/kube';
const keys = createKeyPair();
const clock = createClock(); const ids = createRandomIds();
const engine = createMemoryEngine({ log: silentLogger });
const mode = process.argv[2];
async function tenant(i: number) {
  const server = await createApiServer({ cluster: 't'+i, store: await engine.open('t'+i), clock, ids, log: silentLogger, clientCaPem: [], serviceAccount: { issuer: 'x', signingKeyPem: keys.privateKeyPem, verifyingKeysPem: [keys.publicKeyPem] }, serviceCidr: '10.96.0.0/16', kubelets: { kubelet: () => undefined } });
  const admin = createInProcessClient({ backend: server.backend, user: { name: 'a', groups: ['system:masters'] }, userAgent: 'x' });
  const kcm = createInProcessClient({ backend: server.backend, user: { name: 'system:kube-controller-manager', groups: ['system:authenticated'] }, userAgent: 'x' });
  if (mode === 'admin') await admin.list(nodes);
  if (mode === 'kcm') await kcm.list(nodes);
  if (mode === 'watch') admin.watch(nodes, {}, () => undefined, () => undefined);
  if (mode === 'create') await admin.create(nodes, { metadata: { name: 'w' }, spec: {} });
  if (mode === 'raw') await admin.raw('/apis');
  if (mode === 'roles') await admin.list(clusterRoles);
  await new Promise(r => setTimeout(r, 10));
}
for (let i = 0; i < 20; i++) await tenant(i);
global.gc?.(); const h0 = process.memoryUsage();
const N = 60;
for (let i = 0; i < N; i++) await tenant(100 + i);
global.gc?.(); const h1 = process.memoryUsage();
console.log(mode, 'heap KB/tenant', ((h1.heapUsed - h0.heapUsed) / N / 1024).toFixed(0));
process.exit(0);
