import { generateKeyPairSync } from 'node:crypto';
import { type Clock, createClock, createRandomIds, type Ids, type Logger, silentLogger } from '#server/base';
import { type Client, createInProcessClient } from '#server/client';
import type { UserInfo } from '#server/kube';
import { createMemoryEngine, type Store, type StoreEngine } from '#server/store';
import { type ApiServer, type ApiServerOptions, createApiServer } from '../server.ts';

export const ADMIN: UserInfo = {
  name: 'kubernetes-admin',
  groups: ['system:masters', 'system:authenticated'],
};

type Keys = ApiServerOptions['serviceAccount'];

let keys: Keys | undefined;

export function testServiceAccountKeys(): Keys {
  if (keys) return keys;
  const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const made: Keys = {
    issuer: 'https://kubernetes.default.svc.cluster.local',
    signingKeyPem: String(pair.privateKey.export({ type: 'pkcs8', format: 'pem' })),
    verifyingKeysPem: [String(pair.publicKey.export({ type: 'spki', format: 'pem' }))],
  };
  keys = made;
  return made;
}

export interface TestServer {
  server: ApiServer;
  store: Store;
  engine: StoreEngine;
  admin: Client;
  as(user: UserInfo, userAgent?: string): Client;
  close(): Promise<void>;
}

/** A whole server over the memory store, with the real kinds. */
export async function startTestServer(
  options: Partial<ApiServerOptions> & { clock?: Clock; ids?: Ids; log?: Logger; engine?: StoreEngine } = {},
): Promise<TestServer> {
  const clock = options.clock ?? createClock();
  const engine = options.engine ?? createMemoryEngine({ log: options.log ?? silentLogger });
  const store = options.store ?? (await engine.open('test'));
  const server = await createApiServer({
    cluster: 'test',
    store,
    clock,
    ids: createRandomIds(),
    log: silentLogger,
    clientCaPem: [],
    serviceAccount: testServiceAccountKeys(),
    serviceCidr: '10.96.0.0/16',
    kubelets: { kubelet: () => undefined },
    ...options,
  });
  const as = (user: UserInfo, userAgent = 'test/v1'): Client =>
    createInProcessClient({ backend: server.backend, user, userAgent });
  return {
    server,
    store,
    engine,
    as,
    admin: as(ADMIN),
    async close() {
      await server.close();
      await engine.close();
    },
  };
}
