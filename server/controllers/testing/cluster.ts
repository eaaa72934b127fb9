import { createApiServer } from '#server/apiserver';
import {
  type Clock,
  createClock,
  createDisposables,
  createLogger,
  createRandomIds,
  createSeededIds,
  silentLogger,
} from '#server/base';
import {
  type ApiBackend,
  type Client,
  type Controller,
  type ControllerContext,
  createInformerFactory,
  createInProcessClient,
} from '#server/client';
import { type Event, events, type KubeObject, type Resource, serviceAccounts } from '#server/kube';
import { createKeyPair } from '#server/pki';
import { createMemoryEngine } from '#server/store';

export interface ClusterOptions {
  clock?: Clock;
  /** Stands between the controllers and the server: for faults and counts. */
  wrap?(backend: ApiBackend): ApiBackend;
}

export interface Cluster {
  /** A member of system:masters. */
  readonly admin: Client;
  readonly backend: ApiBackend;
  readonly clock: Clock;
  /** Starts a controller as that service account of kube-system. */
  run(account: string, create: (context: ControllerContext) => Controller): Controller;
  /** Resolves with the object once it is as asked; rejects after five seconds. */
  until<T extends KubeObject>(
    resource: Resource<T>,
    ref: { namespace?: string; name: string },
    holds: (object: T | undefined) => boolean,
  ): Promise<T>;
  /** Resolves once the check does not throw; rejects with what it threw last after five seconds. */
  eventually<R>(check: () => R | Promise<R>): Promise<R>;
  /** `type reason message (count)` of the events about an object, oldest first. */
  eventsOf(namespace: string, name: string): Promise<string[]>;
  stop(): Promise<void>;
}

const PATIENCE = 5000;

let serviceAccountKeys: ReturnType<typeof createKeyPair> | undefined;

/** Starts an empty cluster with no controller; namespace `default` has its service account. */
export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const running = createDisposables();
  const clock = options.clock ?? createClock();
  const log = process.env['LOG_LEVEL'] ? createLogger({ level: process.env['LOG_LEVEL'] }) : silentLogger;
  const engine = createMemoryEngine({ log });
  running.defer(() => engine.close());
  serviceAccountKeys ??= createKeyPair();
  const server = await createApiServer({
    cluster: 'test',
    store: await engine.open('test'),
    clock,
    ids: createRandomIds(),
    log,
    clientCaPem: [],
    serviceAccount: {
      issuer: 'https://kubernetes.default.svc.cluster.local',
      signingKeyPem: serviceAccountKeys.privateKeyPem,
      verifyingKeysPem: [serviceAccountKeys.publicKeyPem],
    },
    serviceCidr: '10.96.0.0/16',
    kubelets: { kubelet: () => undefined },
  });
  running.defer(() => server.close());
  const backend = options.wrap?.(server.backend) ?? server.backend;
  const clientOf = (target: ApiBackend, name: string, groups: readonly string[]): Client =>
    createInProcessClient({
      backend: target,
      user: { name, groups: ['system:authenticated', ...groups] },
      userAgent: 'kube-controller-manager/v1.36.3',
    });
  const admin = clientOf(server.backend, 'admin', ['system:masters']);
  await admin.create(serviceAccounts, { metadata: { name: 'default', namespace: 'default' } });
  const eventually = async <R>(check: () => R | Promise<R>): Promise<R> => {
    const end = performance.now() + PATIENCE;
    for (;;) {
      try {
        return await check();
      } catch (error) {
        if (performance.now() > end) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  };
  return {
    admin,
    backend: server.backend,
    clock,
    eventually,
    run(account, create) {
      const informers = createInformerFactory({
        client: clientOf(backend, 'system:kube-controller-manager', []),
        clock,
        log,
      });
      running.defer(() => informers.stop());
      const client = clientOf(backend, `system:serviceaccount:kube-system:${account}`, [
        'system:serviceaccounts',
        'system:serviceaccounts:kube-system',
      ]);
      const controller = create({ client, informers, clock, ids: createSeededIds(), log });
      controller.start();
      running.defer(() => controller.stop());
      informers.start();
      return controller;
    },
    until(resource, ref, holds) {
      return eventually(async () => {
        const object = await admin.get(resource, ref).catch(() => undefined);
        if (!holds(object))
          throw new Error(`${resource.plural} ${ref.name} is ${JSON.stringify(object, undefined, 1)}`);
        return object as NonNullable<typeof object>;
      });
    },
    async eventsOf(namespace, name) {
      const { items } = await admin.list<Event>(events, { namespace });
      return items
        .filter((event) => event.involvedObject.name === name)
        .sort((a, b) => Number(a.metadata.resourceVersion) - Number(b.metadata.resourceVersion))
        .map((event) => `${event.type} ${event.reason} ${event.message}`);
    },
    stop: () => running.dispose(),
  };
}
