import {
  createManualClock,
  createSeededIds,
  type Logger,
  type ManualClock,
  silentLogger,
} from '#server/base';
import { type ApiBackend, type Client, createInProcessClient, type Dialer } from '#server/client';
import { createFakeBackend, type FakeBackend } from '#server/client/testing';
import { createKubeVirt, createVirtLaunchers } from '#server/clouds/kubevirt';
import { startPretendKubelet, withoutInstanceStatus } from '#server/clouds/kubevirt/testing';
import type { KubeObject, Service } from '#server/kube';
import { createClusterApi } from '../cluster-api.ts';
import { createPretendHost, type PretendHost, startPretendCcm } from './pretend-tenant.ts';

/** A management cluster with KubeVirt and Cluster API, and one tenant whose API server starts with `kubeadm init`. */
export interface World {
  readonly management: FakeBackend;
  readonly tenant: FakeBackend;
  readonly client: Client;
  readonly clock: ManualClock;
  readonly host: PretendHost;
  /** Where kubeconfigs point to. */
  listener: string;
  /** Starts KubeVirt and Cluster API. */
  start(): Promise<void>;
  /** Stops them as a killed process would: nothing is told to the API. */
  kill(): Promise<void>;
  /** Lets time go on, a millisecond now and then, until the condition holds; returns how many milliseconds went by. */
  until(what: string, condition: () => Promise<boolean> | boolean): Promise<number>;
  stop(): Promise<void>;
}

const MAX_TURNS = 20_000;
const TURNS_PER_MILLISECOND = 10;

/** What the real API server does and the fake one does not: addresses of Services, VMIs without a status subresource. */
function managementServer(fake: FakeBackend): ApiBackend {
  const backend = withoutInstanceStatus(fake);
  let services = 0;
  return {
    ...backend,
    async request(request) {
      if (request.resource.plural !== 'services' || request.verb !== 'create')
        return backend.request(request);
      services += 1;
      const body = request.body as Service;
      return backend.request({
        ...request,
        body: { ...body, spec: { ...body.spec, clusterIP: `10.96.0.${services}` } },
      });
    },
  };
}

/** `backend` replaces the fake management server, for a trial against the real one. */
export function createWorld(
  options: { log?: Logger; patchNodeProviderId?: boolean; backend?: ApiBackend } = {},
): World {
  const clock = createManualClock();
  const ids = createSeededIds(7);
  const log = options.log ?? silentLogger;
  const management = createFakeBackend({ clock, ids: createSeededIds(11) });
  const tenant = createFakeBackend({ clock, ids: createSeededIds(13) });
  tenant.reachable = false;
  const client = createInProcessClient({
    backend: options.backend ?? managementServer(management),
    user: { name: 'operator', groups: ['system:masters'] },
    userAgent: 'manager/v1',
  });
  const host = createPretendHost(tenant);
  const launchers = createVirtLaunchers();
  const kubelet = startPretendKubelet(client, launchers, clock);
  const ccm = startPretendCcm(tenant);
  const dialer: Dialer = { dial: (_config, dialled) => tenant.client(dialled ?? {}) };
  let running: { stop(): Promise<void> }[] = [];
  const world: World = {
    management,
    tenant,
    client,
    clock,
    host,
    listener: 'https://127.0.0.1:6443',
    async start() {
      const kubeVirt = createKubeVirt({
        client,
        clock,
        ids,
        log,
        host,
        launchers,
        delays: { boot: () => 0 },
      });
      const clusterApi = createClusterApi({
        client,
        dialer,
        guests: kubeVirt.guests,
        clock,
        ids,
        log,
        kubeconfigServer: ({ namespace, name }) => ({
          server: `${world.listener}/clusters/${namespace}/${name}`,
          caPem: '',
        }),
        ...(options.patchNodeProviderId ? { patchNodeProviderId: true } : {}),
      });
      running = [clusterApi, kubeVirt];
      await Promise.all([kubeVirt.start(), clusterApi.start()]);
    },
    async kill() {
      const stopping = running;
      running = [];
      for (const one of stopping) await one.stop();
    },
    async until(what, condition) {
      const begin = clock.now();
      for (let turn = 0; turn < MAX_TURNS; turn += 1) {
        if (await condition()) return clock.now() - begin;
        await new Promise((resolve) => setImmediate(resolve));
        if (turn % TURNS_PER_MILLISECOND === 0) await clock.advance(1);
      }
      throw new Error(`it never came about that ${what}`);
    },
    async stop() {
      await world.kill();
      kubelet.stop();
      ccm.stop();
    },
  };
  return world;
}

/** Objects without what differs from run to run. */
export function names(objects: readonly KubeObject[]): string[] {
  return objects.map((object) => object.metadata.name).sort();
}
