import type { Clock, Ids, Logger } from '#server/base';
import type { Client, EventRecorder } from '#server/client';
import type { Node, Pod, Service } from '#server/kube';
import type { FileSystem, Program } from '../contract.ts';
import type { AttachedNamespace, Network, ResolverConfig } from '../network/contract.ts';
import type { KubeletConfig, KubeletOptions, PodIdentity } from './contract.ts';
import type { ImageStore } from './images.ts';
import type { PodAddresses } from './pod-addresses.ts';
import type { PodObjects } from './pod-objects.ts';
import type { RuntimeState } from './runtime-state.ts';

/** What all pods of one kubelet share. */
export interface PodContext {
  readonly nodeName: string;
  readonly hostname: string;
  readonly client: Client;
  readonly recorder: EventRecorder;
  readonly objects: PodObjects;
  readonly images: ImageStore;
  readonly addresses: PodAddresses;
  readonly runtime: RuntimeState;
  readonly network: Network;
  readonly nodeNetwork: AttachedNamespace;
  /** The machine's files as `hostPath` shows them. */
  readonly hostFiles: FileSystem;
  /** How the machine itself resolves names. */
  readonly hostResolver: ResolverConfig;
  readonly hostPrograms: Readonly<Record<string, Program>>;
  readonly config: KubeletConfig;
  /** This node as it is known, undefined before. */
  node(): Node | undefined;
  /** The addresses the Node has been given; none: pods of the host's network have no IP yet. */
  hostIPs(): string[];
  services(): readonly Service[];
  /** Resolves when services are known: environments are made of them. */
  readonly servicesKnown: Promise<void>;
  /** Every other pod that holds resources of the node. */
  otherPods(uid: string): Pod[];
  dialerFor(pod: PodIdentity): ReturnType<KubeletOptions['dialerFor']>;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Logger;
}
