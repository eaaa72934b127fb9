import http from 'node:http';
import type { Clock, Logger } from '#server/base';
import type { InformerFactory } from '#server/client';
import {
  type EndpointSlice,
  endpointSlices,
  type Node,
  nodes,
  objectKey,
  type Service,
  services,
} from '#server/kube';
import type { Network, Route, RouteRequest } from './contract.ts';

/** Whose health a connection asks for. */
const HEALTH = Symbol('health check');
const SERVICE_NAME = 'kubernetes.io/service-name';
const BY_SERVICE = 'node/service-proxy';
/** Clients whose session affinity is remembered; the one seen longest ago goes first. */
const MAX_AFFINITIES = 10_000;
const DEFAULT_AFFINITY_SECONDS = 10_800;

type Reach = 'cluster' | 'external' | 'nodePort';

interface Frontend {
  readonly service: Service;
  readonly portName: string;
  readonly reach: Reach;
}

interface Backend {
  readonly ip: string;
  readonly port: number;
  readonly nodeName: string | undefined;
}

/**
 * Routes Service addresses of one cluster: ClusterIPs, NodePorts on every node's addresses, externalIPs and load balancer
 * addresses, with traffic policies and client affinity; a Service without endpoints rejects. Backends are taken in turn.
 * Starts the informers it needs. Models cilium's kube-proxy replacement and pkg/proxy/topology.go.
 */
export function createServiceProxy(options: {
  network: Network;
  informers: InformerFactory;
  clock: Clock;
  log: Logger;
}): { stop(): void } {
  const { network, informers, clock, log } = options;
  const serviceInformer = informers.informer(services);
  const sliceInformer = informers.informer(endpointSlices);
  const nodeInformer = informers.informer(nodes);
  sliceInformer.addIndex(BY_SERVICE, (slice) => {
    const name = slice.metadata.labels?.[SERVICE_NAME];
    return name === undefined ? [] : [`${slice.metadata.namespace}/${name}`];
  });
  const frontends = new Map<string, Frontend>();
  const healthPorts = new Map<number, Service>();
  const nodeAddresses = new Map<string, string>();
  const affinities = new Map<string, { backend: string; at: number }>();
  let turn = 0;

  const forget = (service: Service): void => {
    const key = objectKey(service);
    for (const [port, own] of healthPorts) if (objectKey(own) === key) healthPorts.delete(port);
    for (const [address, frontend] of frontends)
      if (objectKey(frontend.service) === key) frontends.delete(address);
  };
  const learn = (service: Service): void => {
    const { spec } = service;
    if (!spec || spec.type === 'ExternalName') return;
    for (const port of spec.ports ?? []) {
      const protocol = port.protocol ?? 'TCP';
      const put = (ip: string, number: number, reach: Reach): void => {
        frontends.set(`${protocol}/${ip}:${number}`, { service, portName: port.name ?? '', reach });
      };
      for (const ip of spec.clusterIPs ?? (spec.clusterIP ? [spec.clusterIP] : []))
        if (ip !== 'None') put(ip, port.port, 'cluster');
      for (const ip of spec.externalIPs ?? []) put(ip, port.port, 'external');
      for (const ingress of service.status?.loadBalancer?.ingress ?? [])
        if (ingress.ip && ingress.ipMode !== 'Proxy') put(ingress.ip, port.port, 'external');
      if (port.nodePort) put('*', port.nodePort, 'nodePort');
    }
    if (spec.externalTrafficPolicy === 'Local' && spec.healthCheckNodePort)
      healthPorts.set(spec.healthCheckNodePort, service);
  };
  const subscriptions = [
    serviceInformer.on({
      added: learn,
      updated(before, now) {
        forget(before);
        learn(now);
      },
      deleted: forget,
    }),
    nodeInformer.on({
      added: (node) => learnNode(node),
      updated(before, now) {
        forgetNode(before);
        learnNode(now);
      },
      deleted: (node) => forgetNode(node),
    }),
  ];
  const learnNode = (node: Node): void => {
    for (const address of node.status?.addresses ?? [])
      if (address.type.endsWith('IP')) nodeAddresses.set(address.address, node.metadata.name);
  };
  const forgetNode = (node: Node): void => {
    for (const address of node.status?.addresses ?? []) nodeAddresses.delete(address.address);
  };
  informers.start();

  const nodeAt = (ip: string): string | undefined => {
    const known = nodeAddresses.get(ip);
    if (known !== undefined) return known;
    const holder = network.holder(ip);
    return holder?.kind === 'node' ? holder.nodeName : undefined;
  };
  const backendsOf = (frontend: Frontend): Backend[] => {
    const slices = sliceInformer.byIndex(BY_SERVICE, objectKey(frontend.service));
    const ready = slices.flatMap((slice) =>
      backendsIn(slice, frontend.portName, (conditions) => conditions.ready !== false),
    );
    if (ready.length > 0) return ready;
    // All that is left is going down: better than nothing.
    return slices.flatMap((slice) =>
      backendsIn(
        slice,
        frontend.portName,
        (conditions) => conditions.serving === true && conditions.terminating === true,
      ),
    );
  };
  const choose = (
    frontend: Frontend,
    candidates: readonly Backend[],
    request: RouteRequest,
  ): Backend | undefined => {
    const { spec } = frontend.service;
    if (spec?.sessionAffinity !== 'ClientIP') return candidates[turn++ % candidates.length];
    const key = `${objectKey(frontend.service)}/${frontend.portName}/${request.sourceIp}`;
    const timeout = (spec.sessionAffinityConfig?.clientIP?.timeoutSeconds ?? DEFAULT_AFFINITY_SECONDS) * 1000;
    const held = affinities.get(key);
    const fresh =
      held && clock.now() - held.at < timeout
        ? candidates.find((one) => `${one.ip}:${one.port}` === held.backend)
        : undefined;
    const chosen = fresh ?? candidates[turn++ % candidates.length];
    affinities.delete(key);
    if (chosen) affinities.set(key, { backend: `${chosen.ip}:${chosen.port}`, at: clock.now() });
    if (affinities.size > MAX_AFFINITIES) affinities.delete(affinities.keys().next().value ?? '');
    return chosen;
  };
  const find = (request: RouteRequest): { frontend: Frontend; node: string | undefined } | undefined => {
    const direct = frontends.get(`${request.protocol}/${request.ip}:${request.port}`);
    if (direct) return { frontend: direct, node: request.sourceNode };
    const nodePort = frontends.get(`${request.protocol}/*:${request.port}`);
    if (!nodePort) return undefined;
    const node = nodeAt(request.ip);
    return node === undefined ? undefined : { frontend: nodePort, node };
  };
  /** What a load balancer asks a node: has this Service a ready endpoint here? */
  const health = (request: RouteRequest): Route => {
    const service = request.protocol === 'TCP' ? healthPorts.get(request.port) : undefined;
    const node = service && nodeAt(request.ip);
    if (!service || node === undefined) return undefined;
    return {
      serve: (stream) =>
        healthServer.emit('connection', Object.assign(stream, { [HEALTH]: { service, node } })),
    };
  };
  const localEndpoints = (service: Service, node: string): number =>
    sliceInformer
      .byIndex(BY_SERVICE, objectKey(service))
      .flatMap((slice) => slice.endpoints ?? [])
      .filter((endpoint) => endpoint.nodeName === node && endpoint.conditions?.ready !== false).length;
  const healthServer = http.createServer((request, response) => {
    const asked = (request.socket as { [HEALTH]?: { service: Service; node: string } })[HEALTH];
    const count = asked ? localEndpoints(asked.service, asked.node) : 0;
    response.writeHead(count > 0 ? 200 : 503, {
      'Content-Type': 'application/json',
      'X-Content-Type-Options': 'nosniff',
    });
    response.end(
      JSON.stringify({
        service: { namespace: asked?.service.metadata.namespace, name: asked?.service.metadata.name },
        localEndpoints: count,
        serviceProxyHealthy: true,
      }),
    );
  });
  const route = (request: RouteRequest): Route => {
    const asked = health(request);
    if (asked) return asked;
    const found = find(request);
    if (!found) return undefined;
    const { frontend, node } = found;
    const { spec } = frontend.service;
    const all = backendsOf(frontend);
    if (all.length === 0) return 'reject';
    const fromOutside =
      request.sourceKind === 'external' || (frontend.reach === 'nodePort' && request.sourceNode !== node);
    const localOnly =
      (frontend.reach === 'cluster' && spec?.internalTrafficPolicy === 'Local') ||
      (frontend.reach !== 'cluster' && spec?.externalTrafficPolicy === 'Local' && fromOutside);
    const candidates = localOnly ? all.filter((backend) => backend.nodeName === node) : all;
    if (candidates.length === 0) return 'drop';
    const chosen = choose(frontend, candidates, request);
    return chosen ? { ip: chosen.ip, port: chosen.port } : 'reject';
  };
  const router = network.addRouter({ route });
  log.debug({}, 'service proxy runs');
  return {
    stop() {
      router.stop();
      for (const subscription of subscriptions) subscription.stop();
    },
  };
}

function backendsIn(
  slice: EndpointSlice,
  portName: string,
  wanted: (conditions: { ready?: boolean; serving?: boolean; terminating?: boolean }) => boolean,
): Backend[] {
  const port = slice.ports?.find((one) => (one.name ?? '') === portName)?.port;
  if (port === undefined) return [];
  return (slice.endpoints ?? [])
    .filter((endpoint) => wanted(endpoint.conditions ?? {}))
    .flatMap((endpoint) => endpoint.addresses.map((ip) => ({ ip, port, nodeName: endpoint.nodeName })));
}
