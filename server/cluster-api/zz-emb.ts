import { mkdirSync, rmSync } from 'node:fs';
import { createClock, createLogger, createRandomIds, silentLogger } from '#server/base';
import { createHttpClient, parseKubeconfig } from '#server/client';
import { virtualMachineInstances } from '#server/clouds/kubevirt';
import { clusters, machineDeployments, machines } from '#server/cluster-api';
import { events, nodes, pods, secrets } from '#server/kube';
import { createTenants } from '#server/tenants';
import { startEmbeddedClusters } from '/work/main/server/cluster/embedded.ts';

const d = '/tmp/k/capi-data';
if (!process.argv.includes('keep')) rmSync(d, { recursive: true, force: true });
mkdirSync(d, { recursive: true });
const clock = createClock(),
  ids = createRandomIds(),
  log = createLogger({ level: 'warn' });
const c = await startEmbeddedClusters({
  dataDir: d,
  host: '127.0.0.1',
  port: 0,
  names: [],
  cloudSpeed: 0,
  storeSync: 'normal',
  clock,
  ids,
  log,
});
const config = parseKubeconfig(c.adminKubeconfig);
const m = createHttpClient(config, { userAgent: 'x' });
const tenants = createTenants({ management: m, clock, ids, log: silentLogger });
let t = performance.now();
const tenant = await tenants.ensure('solo');
const ns = { namespace: tenant.namespace };
const until = async (what: string, f: () => Promise<boolean>, ms = 15000) => {
  const t0 = performance.now();
  for (;;) {
    if (await f().catch(() => false)) break;
    if (performance.now() - t0 > ms) {
      console.log('TIMEOUT', what);
      for (const r of [machines, virtualMachineInstances, pods])
        for (const i of (await m.list(r as typeof machines, ns)).items)
          console.log(
            i.metadata.name,
            i.status?.phase,
            JSON.stringify(
              i.status?.conditions?.filter((x) => ['Ready', 'NodeReady', 'PodScheduled'].includes(x.type)),
            ).slice(0, 500),
          );
      for (const e of (await m.list(events, ns)).items.slice(-12))
        console.log('  ev', e.involvedObject.kind, e.reason, (e.message ?? '').slice(0, 200));
      return;
    }
    await new Promise((r) => setTimeout(r, 10));
  }
  console.log(what, (performance.now() - t).toFixed(0));
  t = performance.now();
};
const avail = async () =>
  (await m.get(clusters, { ...ns, name: tenant.cluster })).status?.conditions?.find(
    (x) => x.type === 'Available',
  )?.status === 'True';
await until('cluster available', avail);
const secret = await m.get(secrets, { ...ns, name: `${tenant.cluster}-kubeconfig` });
const tc = createHttpClient(parseKubeconfig(Buffer.from(secret.data?.['value'] ?? '', 'base64').toString()), {
  userAgent: 'y',
});
const md = { ...ns, name: `${tenant.cluster}-md-0` };
const scale = (n: number) =>
  m.patch(machineDeployments, md, { type: 'merge', body: { spec: { replicas: n } } });
if (!process.argv.includes('keep')) {
  await scale(1);
  await until(
    'one worker',
    async () => (await m.get(machineDeployments, md)).status?.availableReplicas === 1,
  );
  console.log(
    (await tc.list(nodes)).items.map((n) => [
      n.metadata.name,
      n.spec.providerID,
      JSON.stringify(n.spec.taints),
      n.metadata.labels?.['node-role.kubernetes.io/control-plane'],
    ]),
  );
  const w = (await m.list(virtualMachineInstances, ns)).items.find((i) => i.metadata.name.includes('md-0'));
  await m.delete(virtualMachineInstances, { ...ns, name: w?.metadata.name ?? '' });
  await until('vmi back', async () => {
    const x = await m.get(virtualMachineInstances, { ...ns, name: w?.metadata.name ?? '' });
    return x.metadata.uid !== w?.metadata.uid && x.status?.phase === 'Running';
  });
  await until(
    'worker ready again',
    async () =>
      (await m.get(machineDeployments, md)).status?.availableReplicas === 1 &&
      (await tc.get(nodes, { name: w?.metadata.name ?? '' })).status?.conditions?.find(
        (x) => x.type === 'Ready',
      )?.status === 'True',
  );
  await m.delete(machines, { ...ns, name: w?.metadata.name ?? '' });
  await until(
    'machine gone',
    async () => !(await m.list(machines, ns)).items.some((x) => x.metadata.name === w?.metadata.name),
    40000,
  );
  await until('replaced', async () => (await m.get(machineDeployments, md)).status?.availableReplicas === 1);
  console.log((await tc.list(nodes)).items.map((n) => n.metadata.name));
}
if (process.argv.includes('kill')) process.kill(process.pid, 'SIGKILL');
await scale(0);
await until('no worker', async () => (await m.list(machines, ns)).items.length === 1, 40000);
const t3 = (await m.list(virtualMachineInstances, ns)).items.map((i) => [i.metadata.name, i.status?.phase]);
console.log(
  t3,
  (await tc.list(nodes)).items.map((n) => [
    n.metadata.name,
    n.status?.conditions?.find((x) => x.type === 'Ready')?.status,
  ]),
);
await m.delete(clusters, { ...ns, name: tenant.cluster });
await until('cluster gone', async () => (await m.list(clusters, ns)).items.length === 0, 20000);
await c.stop();
process.exit(0);
