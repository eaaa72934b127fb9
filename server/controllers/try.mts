import { createApiServer } from '#server/apiserver';
import { createClock, createRandomIds, silentLogger } from '#server/base';
import { createInProcessClient } from '#server/client';
import { deployments, nodes } from '#server/kube';
import { createAuthority, createKeyPair } from '#server/pki';
import { createMemoryEngine } from '#server/store';
import { startControllerManager } from '../cluster/controller-manager.ts';
import { actAsKubelet, deployment, node } from './testing/index.ts';

const keys = createKeyPair();
const signing = await createAuthority({ commonName: 'k', now: Date.now() });
const clock = createClock();
const ids = createRandomIds();
const engine = createMemoryEngine({ log: silentLogger });
const withC = process.argv[2] !== 'none';
async function tenant(i: number) {
  const t0 = performance.now();
  const server = await createApiServer({
    cluster: 't' + i,
    store: await engine.open('t' + i),
    clock,
    ids,
    log: silentLogger,
    clientCaPem: [],
    serviceAccount: { issuer: 'x', signingKeyPem: keys.privateKeyPem, verifyingKeysPem: [keys.publicKeyPem] },
    serviceCidr: '10.96.0.0/16',
    kubelets: { kubelet: () => undefined },
  });
  const t1 = performance.now();
  let done = t1,
    t2 = t1;
  if (withC) {
    if (!process.env.NOM) startControllerManager({
      server,
      clock,
      ids,
      log: silentLogger,
      clusterCidr: '10.244.0.0/16',
      nodeCidrMaskSize: 24,
      signing,
      rootCaPem: 'x',
      controllers: (process.env['CTL'] ?? '*').split(','),
    });
    t2 = performance.now();
    const admin = createInProcessClient({
      backend: server.backend,
      user: { name: 'a', groups: ['system:masters'] },
      userAgent: 'x',
    });
    const k = process.env.NOK ? { stop() {} } : actAsKubelet(admin);
    await admin.create(nodes, node('worker'));
    if (!process.env.NOD) await admin.create(deployments, deployment());
    for (;;) {
      const d = await admin.get(deployments, { namespace: 'default', name: 'web' });
      if (process.env.CTL || d.status?.availableReplicas === 1) break;
      await new Promise((r) => setImmediate(r));
    }
    k.stop();
    done = performance.now();
  }
  await new Promise((r) => setTimeout(r, 30));
  return [t1 - t0, t2 - t1, done - t2];
}
for (let i = 0; i < 20; i++) await tenant(i);
const rows: number[][] = [];
global.gc?.();
const h0 = process.memoryUsage();
const N = 60;
for (let i = 0; i < N; i++) rows.push(await tenant(100 + i));
await new Promise((r) => setTimeout(r, 500));
global.gc?.();
const h1 = process.memoryUsage();
for (let c = 0; c < 3; c++) {
  const s = rows.map((r) => r[c]!).sort((a, b) => a - b);
  console.log(
    ['server', 'start', 'deployment'][c],
    'p50',
    s[N >> 1]!.toFixed(1),
    'max',
    s[N - 1]!.toFixed(1),
  );
}
console.log(
  'heap KB/tenant',
  ((h1.heapUsed - h0.heapUsed) / N / 1024).toFixed(0),
  'external',
  ((h1.external - h0.external) / N / 1024).toFixed(0),
);
const c0 = process.cpuUsage();
await new Promise((r) => setTimeout(r, 5000));
const c1 = process.cpuUsage(c0);
console.log('idle cpu ms per s for', N + 20, 'tenants', ((c1.user + c1.system) / 5000).toFixed(1));
process.exit(0);
