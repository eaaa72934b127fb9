import { createManualClock, createSeededIds, type ManualClock, silentLogger } from '#server/base';
import type { Client, Dialer } from '#server/client';
import { type Draft } from '#server/client';
import { createFakeBackend, type FakeBackend } from '#server/client/testing';
import { type Node, nodes, type Pod, pods } from '#server/kube';
import type { Image } from '../contract.ts';
import { createMemoryFileSystem, type MemoryFileSystem } from '../files/memory-files.ts';
import { createImageCatalogue } from '../images/catalogue.ts';
import { standardImages } from '../images/standard.ts';
import type { Kubelet, KubeletOptions } from '../kubelet/contract.ts';
import { createKubelet } from '../kubelet/kubelet.ts';
import type { Network } from '../network/contract.ts';
import { createNetwork } from '../network/network.ts';

export interface NodeHarness {
  readonly clock: ManualClock;
  readonly backend: FakeBackend;
  readonly client: Client;
  readonly network: Network;
  readonly files: MemoryFileSystem;
  readonly kubelet: Kubelet;
  node(): Promise<Node>;
  pod(name: string, namespace?: string): Promise<Pod>;
  createPod(pod: Draft<Pod>): Promise<Pod>;
  /** Waits until the condition holds, letting promises settle; never sleeps. */
  until(what: string, condition: () => boolean | Promise<boolean>): Promise<void>;
  untilPod(name: string, condition: (pod: Pod) => boolean): Promise<Pod>;
  stop(): Promise<void>;
}

export interface HarnessOptions {
  images?: readonly Image[];
  flags?: readonly string[];
  files?: Readonly<Record<string, string>>;
  /** Default true: a CNI configuration and a pod CIDR are there from the start. */
  networkReady?: boolean;
  manifests?: Readonly<Record<string, string>>;
  config?: Partial<KubeletOptions['config']>;
  dialer?: Dialer;
  imagePull?: (image: string) => number;
}

const TURNS = 5_000;

/** A kubelet on a machine, against a backend in memory and a clock that stands still. */
export async function startNode(options: HarnessOptions = {}): Promise<NodeHarness> {
  const clock = createManualClock();
  const ids = createSeededIds();
  const backend = createFakeBackend({ clock, ids });
  const client = backend.client();
  const network = createNetwork({ clock, log: silentLogger });
  const files = createMemoryFileSystem(
    {
      ...(options.networkReady === false ? {} : { '/etc/cni/net.d/05-cilium.conflist': '{}' }),
      ...Object.fromEntries(
        Object.entries(options.manifests ?? {}).map(([name, text]) => [
          `/etc/kubernetes/manifests/${name}`,
          text,
        ]),
      ),
      ...options.files,
    },
    { clock },
  );
  const kubelet = createKubelet({
    nodeName: 'worker',
    client,
    host: {
      files,
      hostname: 'worker',
      ip: '10.0.1.11',
      osImage: 'Ubuntu 24.04.3 LTS',
      kernelVersion: '6.8.0-88-generic',
      architecture: 'amd64',
      containerRuntimeVersion: 'containerd://2.1.4',
      machineId: 'm',
      systemUuid: 's',
      bootId: 'b',
      capacity: { cpu: '2', memory: '4Gi', pods: '110', ephemeralStorage: '20Gi' },
    },
    flags: options.flags ?? [],
    config: {
      staticPodPath: '/etc/kubernetes/manifests',
      clusterDNS: ['10.96.0.10'],
      clusterDomain: 'cluster.local',
      podCidrFrom: '10.244.0.0/24',
      ...options.config,
    },
    catalogue: createImageCatalogue([...standardImages(), ...(options.images ?? [])]),
    network,
    delays: { imagePull: options.imagePull ?? (() => 0) },
    dialerFor: () => options.dialer ?? { dial: () => client },
    clock,
    ids,
    log: silentLogger,
  });
  await kubelet.start();
  const until = async (what: string, condition: () => boolean | Promise<boolean>): Promise<void> => {
    for (let turn = 0; turn < TURNS; turn += 1) {
      if (await condition()) return;
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    throw new Error(`never happened: ${what}`);
  };
  const pod = (name: string, namespace = 'default'): Promise<Pod> => client.get(pods, { namespace, name });
  return {
    clock,
    backend,
    client,
    network,
    files,
    kubelet,
    node: () => client.get(nodes, { name: 'worker' }),
    pod,
    createPod: (draft) =>
      client.create(pods, {
        ...draft,
        metadata: { namespace: 'default', ...draft.metadata },
        spec: { nodeName: 'worker', restartPolicy: 'Always', ...draft.spec },
      }),
    until,
    async untilPod(name, condition) {
      let last: Pod | undefined;
      try {
        await until(`pod ${name}`, async () => {
          last = await pod(name).catch(() => undefined);
          return last !== undefined && condition(last);
        });
      } catch (error) {
        throw new Error(`pod ${name} stays ${JSON.stringify(last?.status, undefined, 1)}`, { cause: error });
      }
      return last as Pod;
    },
    stop: () => kubelet.stop({ graceful: false }),
  };
}
