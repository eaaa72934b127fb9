import type { KubeletApi } from '#server/apiserver';
import { createEventRecorder, createInformerFactory } from '#server/client';
import { nodes, pods, services } from '#server/kube';
import type { AttachedNamespace } from '../network/contract.ts';
import { hostPrograms, machineFiles } from '../programs/host-programs.ts';
import type { Kubelet, KubeletOptions } from './contract.ts';
import { type KubeletFlags, parseKubeletFlags } from './flags.ts';
import { hostResolver } from './host-resolver.ts';
import { createImageStore } from './images.ts';
import { createKubeletServer } from './kubelet-server.ts';
import { createMirrorPods } from './mirror-pods.ts';
import { createNodeAgent } from './node-agent.ts';
import { createPluginRegistry } from './plugin-registry.ts';
import { createPodAddresses } from './pod-addresses.ts';
import type { PodContext } from './pod-context.ts';
import { createPodManager, type PodManager } from './pod-manager.ts';
import { createPodObjects } from './pod-objects.ts';
import { INFORMER_RETRY } from './retry.ts';
import { watchRuntimeState } from './runtime-state.ts';
import { watchStaticPods } from './static-pods.ts';

/** How long containers get to end in an orderly shutdown of the machine. */
const SHUTDOWN_GRACE = 2_000;

/** A kubelet with its container runtime. Models cmd/kubelet and pkg/kubelet v1.36. */
export function createKubelet(options: KubeletOptions): Kubelet {
  let parts: Parts | undefined;
  let markRegistered: () => void = () => undefined;
  const registered = new Promise<void>((resolve) => {
    markRegistered = resolve;
  });
  const started = (): Parts => {
    if (!parts) throw new KubeletStoppedError(`the kubelet of ${options.nodeName} does not run`);
    return parts;
  };
  return {
    registered,
    async start() {
      if (parts) return;
      parts = assemble(options, parseKubeletFlags(options.flags));
      parts.start();
      void parts.registered.then(markRegistered);
    },
    async stop({ graceful }) {
      const running = parts;
      parts = undefined;
      await running?.stop(graceful ? SHUTDOWN_GRACE : 0);
    },
    api: {
      logs: async (...args) => started().api.logs(...args),
      exec: async (...args) => started().api.exec(...args),
      attach: async (...args) => started().api.attach(...args),
      portForward: async (...args) => started().api.portForward(...args),
    },
  };
}

/** Somebody asked a kubelet that was stopped. */
export class KubeletStoppedError extends Error {
  override readonly name = 'KubeletStoppedError';
}

interface Parts {
  start(): void;
  stop(graceMilliseconds: number): Promise<void>;
  readonly registered: Promise<void>;
  readonly api: KubeletApi;
}

function assemble(options: KubeletOptions, flags: KubeletFlags): Parts {
  const { nodeName, client, host, clock, ids, log, network } = options;
  const hostname = flags.hostnameOverride ?? host.hostname;
  const informers = createInformerFactory({ client, clock, log, ids, retryDelay: INFORMER_RETRY });
  const recorder = createEventRecorder({ client, component: 'kubelet', host: nodeName, clock, ids, log });
  const nodeInformer = informers.informer(nodes, { fieldSelector: `metadata.name=${nodeName}` });
  const podInformer = informers.informer(pods, { fieldSelector: `spec.nodeName=${nodeName}` });
  const serviceInformer = informers.informer(services);
  const objects = createPodObjects({ client, clock, log });
  const addresses = createPodAddresses();
  const resolver = hostResolver(host.files, hostname, host.ip);
  const ownNetwork: AttachedNamespace | undefined = options.nodeNetwork
    ? undefined
    : network.attach({
        kind: 'node',
        ips: [host.ip],
        nodeName,
        resolver,
      });
  const nodeNetwork = options.nodeNetwork ?? ownNetwork;
  if (!nodeNetwork) throw new KubeletStoppedError('no network');
  const runtime = watchRuntimeState(host.files, () => nodeChanged());
  const images = createImageStore({
    catalogue: options.catalogue,
    delays: options.delays,
    clock,
    onChange: () => agent.changed(),
  });
  const node = (): ReturnType<typeof nodeInformer.get> => nodeInformer.get(nodeName);
  const agent = createNodeAgent({
    nodeName,
    client,
    node: nodeInformer,
    recorder,
    facts: () => ({ host, flags, hostname, runtime, images: images.list(), now: clock.now() }),
    clock,
    ids,
    log,
  });
  const mirrors = createMirrorPods({ client, node, clock, log });
  const context = (manager: PodManager): PodContext => ({
    nodeName,
    hostname,
    client,
    recorder,
    objects,
    images,
    addresses,
    runtime,
    network,
    nodeNetwork,
    hostFiles: machineFiles(host.files),
    hostPrograms: hostPrograms(),
    hostResolver: resolver,
    config: options.config,
    node,
    hostIPs: () => hostAddresses(node()?.status?.addresses ?? []),
    services: () => serviceInformer.list(),
    servicesKnown: serviceInformer.synced,
    otherPods: (uid) => manager.others(uid),
    dialerFor: (pod) => options.dialerFor(pod),
    clock,
    ids,
    log,
  });
  const manager = createPodManager(context, mirrors);
  const plugins = createPluginRegistry({ nodeName, client, files: host.files, node, clock, log });
  const useCidr = (): void => {
    const cidr = options.config.podCidrFrom === 'node' ? node()?.spec?.podCIDR : options.config.podCidrFrom;
    if (cidr) addresses.setCidr(cidr);
  };
  let seen = '';
  const nodeChanged = (): void => {
    agent.changed();
    useCidr();
    // Pods care for these only; heartbeats wake nobody.
    const current = node();
    const relevant = JSON.stringify([
      current?.metadata.uid,
      current?.metadata.labels,
      current?.spec,
      hostAddresses(current?.status?.addresses ?? []),
      addresses.cidr,
      runtime.networkReady,
    ]);
    if (relevant === seen) return;
    seen = relevant;
    manager.wake();
    plugins.wake();
  };
  let statics: { stop(): void } | undefined;
  return {
    registered: agent.registered,
    api: createKubeletServer({ manager, network, hostIP: host.ip }),
    start() {
      useCidr();
      nodeInformer.on({ added: nodeChanged, updated: nodeChanged, deleted: nodeChanged });
      if (options.config.staticPodPath !== undefined) {
        statics = watchStaticPods({
          files: host.files,
          path: options.config.staticPodPath,
          nodeName,
          now: () => clock.now(),
          log,
          onPods: (list) => manager.setStaticPods(list),
        });
      }
      manager.follow(podInformer);
      informers.start();
      agent.start();
      plugins.start();
    },
    async stop(grace) {
      statics?.stop();
      plugins.stop();
      mirrors.stop();
      recorder.stop();
      informers.stop();
      await manager.stop(grace);
      await agent.stop();
      objects.stop();
      runtime.stop();
      ownNetwork?.detach();
    },
  };
}

/** Models component-helpers/node/util.GetNodeHostIPs: internal before external. */
function hostAddresses(addresses: readonly { type: string; address: string }[]): string[] {
  const of = (type: string): string[] =>
    addresses.filter((one) => one.type === type).map((one) => one.address);
  return [...of('InternalIP'), ...of('ExternalIP')].slice(0, 1);
}
