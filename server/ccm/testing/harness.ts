import { Writable } from 'node:stream';
import { createManualClock, createSeededIds, silentLogger } from '#server/base';
import { createEventRecorder, createInformerFactory, type Draft } from '#server/client';
import { createFakeBackend } from '#server/client/testing';
import { type Node, type NodeAddress, nodes } from '#server/kube';
import { userAgent } from '../command/identity.ts';
import type { CloudProvider, InstanceMetadata } from '../contract.ts';
import type { CloudController, CloudControllerContext } from '../controller.ts';
import { createKlog } from '../klog.ts';
import { createCloudMetrics } from '../metrics.ts';
import {
  type CloudNodeControllerOptions,
  startCloudNodeController,
} from '../node-controller/node-controller.ts';

export const TAINT = {
  key: 'node.cloudprovider.kubernetes.io/uninitialized',
  value: 'true',
  effect: 'NoSchedule',
};

export type NodeParts = Partial<Omit<Node, 'metadata'>> & { metadata?: Partial<Node['metadata']> };

export function nodeDraft(name: string, rest: NodeParts = {}): Draft<Node> {
  return {
    spec: { taints: [TAINT] },
    status: { addresses: [{ type: 'Hostname', address: name }] },
    ...rest,
    metadata: { name, ...rest.metadata },
  };
}

export function internal(address: string): NodeAddress {
  return { type: 'InternalIP', address };
}

export function machine(rest: Partial<InstanceMetadata> = {}): InstanceMetadata {
  return {
    providerID: 'fake://machine',
    instanceType: '',
    nodeAddresses: [internal('10.0.0.1')],
    zone: '',
    region: '',
    ...rest,
  };
}

/** What a program writes, as text without klog's header: `I node_controller.go:429] …`. */
export function createOutput(): { stream: Writable; text(): string; lines(): string[] } {
  const chunks: string[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk.toString());
      done();
    },
  });
  const text = (): string => chunks.join('');
  return {
    stream,
    text,
    lines: () =>
      text()
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => line.replace(/^([IWEF])\d{4} [\d:.]{15} +1 /, '$1 ')),
  };
}

export interface ControllerHarnessOptions {
  /** What the cloud answers about a node; what it throws is the cloud's error. */
  metadata?(node: Node): InstanceMetadata | undefined;
  cloud?: Partial<CloudProvider>;
  options?: Partial<CloudNodeControllerOptions>;
  verbosity?: number;
}

/** A cloud-node-controller over an API server and a cloud in memory; time stands still. */
export function createControllerHarness(harness: ControllerHarnessOptions = {}) {
  const clock = createManualClock();
  const backend = createFakeBackend({ clock });
  const client = backend.client({ userAgent: userAgent('node-controller') });
  const outsider = backend.client({ userAgent: 'kubectl/v1.36.3' });
  const informers = createInformerFactory({ client, clock, log: silentLogger, ids: createSeededIds(2) });
  const output = createOutput();
  const asked: string[] = [];
  const cloud: CloudProvider = {
    providerName: 'fake',
    hasClusterID: true,
    instancesV2: {
      instanceExists: async () => true,
      instanceShutdown: async () => false,
      async instanceMetadata(node) {
        asked.push(node.metadata.name);
        return harness.metadata ? harness.metadata(node) : machine();
      },
    },
    ...harness.cloud,
  };
  const ids = createSeededIds();
  const context: CloudControllerContext = {
    client,
    informers,
    cloud,
    clock,
    ids,
    log: createKlog({ output: output.stream, clock, verbosity: harness.verbosity ?? 0 }),
    metrics: createCloudMetrics(),
    recorder: (component) => createEventRecorder({ client, component, clock, ids, log: silentLogger }),
  };
  let controller: CloudController | undefined;
  return {
    clock,
    backend,
    /** The client of somebody else. */
    outsider,
    output,
    /** The nodes the cloud was asked about, in order. */
    asked,
    context,
    async start(): Promise<CloudController | undefined> {
      controller = startCloudNodeController(context, {
        statusUpdateFrequency: 300_000,
        concurrentSyncs: 1,
        concurrentStatusUpdates: 1,
        ...harness.options,
      });
      informers.start();
      await clock.advance(0);
      return controller;
    },
    async stop(): Promise<void> {
      await controller?.stop();
      informers.stop();
    },
    create: (node: Draft<Node>): Promise<Node> => outsider.create(nodes, node),
    node: (name: string): Promise<Node> => outsider.get(nodes, { name }),
    /** The controller's own requests that change something, as `verb plural/name/subresource`. */
    writes: () =>
      backend.requests.filter(
        ({ userAgent: agent, verb }) => agent !== 'kubectl/v1.36.3' && !['get', 'list'].includes(verb),
      ),
  };
}

/** `update nodes/x`, `patch nodes/x/status`, `create events`. */
export function named(request: {
  verb: string;
  resource: { plural: string };
  name?: string | undefined;
  subresource?: string | undefined;
}): string {
  const path = [request.resource.plural, request.name, request.subresource].filter(Boolean).join('/');
  return `${request.verb} ${path}`;
}
