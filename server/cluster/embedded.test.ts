import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createClock, createRandomIds, OperationalError, silentLogger } from '#server/base';
import {
  ConnectionError,
  createHttpClient,
  type HttpClient,
  parseKubeconfig,
  type RestConfig,
} from '#server/client';
import { nodes, StatusError } from '#server/kube';
import { createTenants, type Tenant, type Tenants } from '#server/tenants';
import { type EmbeddedClusters, startEmbeddedClusters } from './embedded.ts';

describe('embedded clusters', () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'embedded-'));
  let clusters: EmbeddedClusters;
  let management: HttpClient;
  let tenants: Tenants;
  let [alice, bob]: [Tenant?, Tenant?] = [];
  let [aliceConfig, bobConfig]: [RestConfig?, RestConfig?] = [];

  const options = () => ({
    dataDir,
    host: '127.0.0.1',
    port: 0,
    names: [],
    cloudSpeed: 0,
    storeSync: 'normal' as const,
    clock: createClock(),
    ids: createRandomIds(),
    log: silentLogger,
  });

  beforeAll(async () => {
    clusters = await startEmbeddedClusters(options());
    management = createHttpClient(parseKubeconfig(clusters.adminKubeconfig), { userAgent: 'test' });
    tenants = createTenants({ management, clock: createClock(), ids: createRandomIds(), log: silentLogger });
    [alice, bob] = await Promise.all(['alice', 'bob'].map((user) => tenants.ensure(user)));
    await Promise.all([alice, bob].map((tenant) => tenants.ready(tenant!, AbortSignal.timeout(60_000))));
    [aliceConfig, bobConfig] = await Promise.all([tenants.credentials(alice!), tenants.credentials(bob!)]);
  }, 90_000);
  afterAll(async () => {
    management?.close();
    await clusters?.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  it('gives every user a cluster of their own, unlike the other', async () => {
    const [a, b] = await Promise.all([tenants.client(alice!), tenants.client(bob!)]);
    const [ofAlice] = (await a!.list(nodes)).items;
    const [ofBob] = (await b!.list(nodes)).items;
    const facts = (node: typeof ofAlice) => ({
      name: node!.metadata.name,
      uid: node!.metadata.uid,
      ip: node!.status?.addresses?.find((address) => address.type === 'InternalIP')?.address,
    });
    for (const fact of ['name', 'uid', 'ip'] as const)
      expect(facts(ofAlice)[fact]).not.toBe(facts(ofBob)[fact]);
    a!.close();
    b!.close();
    expect(await tenants.ensure('alice')).toEqual(alice);
  });

  it('never takes a credential for another cluster, not even on one connection', async () => {
    const agent = new Agent({
      keepAlive: true,
      maxSockets: 1,
      ca: aliceConfig!.caPem,
      cert: aliceConfig!.certPem,
      key: aliceConfig!.keyPem,
    });
    const ask = (server: string): Promise<{ status: number; reused: boolean }> =>
      new Promise((resolve, reject) => {
        const call = request(`${server}/api/v1/nodes`, { agent }, (response) => {
          response.resume();
          response.once('end', () =>
            resolve({ status: response.statusCode ?? 0, reused: call.reusedSocket }),
          );
        });
        call.once('error', reject);
        call.end();
      });
    const answers = [];
    for (const server of [
      aliceConfig!.server,
      bobConfig!.server,
      `${clusters.url}/clusters/management`,
      aliceConfig!.server,
    ]) {
      answers.push(await ask(server));
    }
    agent.destroy();
    expect(answers).toEqual([
      { status: 200, reused: false },
      { status: 401, reused: true },
      { status: 401, reused: true },
      { status: 200, reused: true },
    ]);
  });

  it('refuses a second process on the same data', async () => {
    await expect(startEmbeddedClusters(options())).rejects.toThrow(OperationalError);
  });

  it('refuses to be reached with another CA', async () => {
    const client = createHttpClient({ ...aliceConfig!, caPem: aliceConfig!.certPem! }, { userAgent: 'test' });
    await expect(client.list(nodes)).rejects.toThrow(ConnectionError);
    client.close();
  });

  it('answers for a cluster whose machine is off', async () => {
    const { virtualMachines } = await import('#server/clouds/kubevirt');
    const [vm] = (await management.list(virtualMachines, { namespace: bob!.namespace })).items;
    await management.patch(
      virtualMachines,
      { namespace: bob!.namespace, name: vm!.metadata.name },
      { type: 'merge', body: { spec: { runStrategy: 'Halted' } } },
    );
    const client = createHttpClient(bobConfig!, { userAgent: 'test' });
    let refusal: unknown;
    while (!refusal) {
      refusal = await client.list(nodes).then(
        () => undefined,
        (error: unknown) => error,
      );
    }
    client.close();
    expect(refusal instanceof StatusError ? refusal.status : refusal).toMatchObject({
      code: 503,
      message: `the API server of cluster ${bob!.namespace}/${bob!.cluster} does not run: its machine is off or still booting`,
    });
  });

  it('keeps nothing of a cluster that was deleted', async () => {
    const { clusters: clusterResource } = await import('#server/cluster-api');
    const { secrets } = await import('#server/kube');
    const carol = await tenants.ensure('carol');
    await tenants.ready(carol, AbortSignal.timeout(60_000));
    const config = await tenants.credentials(carol);
    await management.delete(clusterResource, { namespace: carol.namespace, name: carol.cluster });
    const client = createHttpClient(config!, { userAgent: 'test' });
    let code = 0;
    while (code !== 404) {
      code = await client.list(nodes).then(
        () => 200,
        (error: unknown) => (error instanceof StatusError ? error.code : 0),
      );
    }
    client.close();
    const left = (await management.list(secrets, { namespace: carol.namespace })).items.map(
      (secret) => secret.metadata.name,
    );
    expect(left.filter((name) => name.startsWith(carol.cluster))).toEqual([]);
  });
});
