import { type FieldError, internalError, invalid, type Service } from '#server/kube';
import type { Allocator, RequestContext } from '../kind.ts';
import { invalidValue } from './field-errors.ts';

// Models kubernetes/pkg/registry/core/service/storage (alloc.go) for one address family, IPv4.

const KIND = { group: '', kind: 'Service' };
const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?!$)|$)){4}$/;

/** Addresses and ports one write took, so that exactly these go back when it fails. */
interface Taken {
  ips: string[];
  ports: number[];
}

/** What creates took: the server gives back by request. */
const takenByCreate = new WeakMap<RequestContext, Taken>();

export function needsClusterIp(service: Service): boolean {
  return service.spec.type !== 'ExternalName';
}

export function needsNodePort(service: Service): boolean {
  return service.spec.type === 'NodePort' || service.spec.type === 'LoadBalancer';
}

export function needsHealthCheckPort(service: Service): boolean {
  return service.spec.type === 'LoadBalancer' && service.spec.externalTrafficPolicy === 'Local';
}

function isHeadless(service: Service): boolean {
  return service.spec.clusterIP === 'None';
}

function refuse(service: Service, errors: readonly FieldError[]): Error {
  return invalid(KIND, service.metadata.name, errors);
}

function claimIp(service: Service, ip: string, context: RequestContext, taken: Taken): void {
  const outcome = context.server.allocators.clusterIp.claim(ip);
  if (outcome === 'ok') {
    taken.ips.push(ip);
    return;
  }
  const why =
    outcome === 'taken'
      ? 'provided IP is already allocated'
      : 'the provided network does not match the current range';
  throw refuse(service, [
    invalidValue('spec.clusterIPs', service.spec.clusterIPs, `failed to allocate IP ${ip}: ${why}`),
  ]);
}

/** The text of what claiming a port met, or undefined when it is taken now. */
function claimPort(port: number, ports: Allocator<number>, taken: Taken): string | undefined {
  const outcome = ports.claim(port);
  if (outcome === 'ok') {
    taken.ports.push(port);
    return undefined;
  }
  return outcome === 'taken'
    ? 'provided port is already allocated'
    : `provided port is not in the valid range. The range of valid ports is ${ports.range}`;
}

function nextPort(ports: Allocator<number>, what: string, taken: Taken): number {
  const port = ports.allocate();
  if (port === undefined) throw internalError(`failed to allocate a ${what}: range is full`);
  taken.ports.push(port);
  return port;
}

/** `ipFamilyPolicy` and `ipFamilies` as a cluster with IPv4 only fills them. Models initIPFamilyFields. */
function fillFamilies(service: Service, old: Service | undefined): void {
  const { spec } = service;
  const selectorless = isHeadless(service) && Object.keys(spec.selector ?? {}).length === 0;
  spec.ipFamilyPolicy ??= old?.spec.ipFamilyPolicy ?? (selectorless ? 'RequireDualStack' : 'SingleStack');
  const errors: FieldError[] = [];
  if (spec.ipFamilyPolicy === 'SingleStack') {
    const both = "must be 'RequireDualStack' or 'PreferDualStack' when multiple";
    if (spec.clusterIPs?.length === 2) {
      errors.push(
        invalidValue('spec.ipFamilyPolicy', spec.ipFamilyPolicy, `${both} cluster IPs are specified`),
      );
    }
    if (spec.ipFamilies?.length === 2) {
      errors.push(
        invalidValue('spec.ipFamilyPolicy', spec.ipFamilyPolicy, `${both} IP families are specified`),
      );
    }
  }
  if (errors.length > 0) throw refuse(service, errors);
  if (selectorless) {
    const families = spec.ipFamilies?.length ? spec.ipFamilies : ['IPv4'];
    if (families.length === 1 && spec.ipFamilyPolicy !== 'SingleStack') {
      families.push(families[0] === 'IPv4' ? 'IPv6' : 'IPv4');
    }
    spec.ipFamilies = families;
    return;
  }
  if (spec.ipFamilyPolicy === 'RequireDualStack') {
    const why = 'this cluster is not configured for dual-stack services';
    errors.push(invalidValue('spec.ipFamilyPolicy', spec.ipFamilyPolicy, why));
  }
  for (const [index, family] of (spec.ipFamilies ?? []).entries()) {
    if (family !== 'IPv4')
      errors.push(invalidValue(`spec.ipFamilies[${index}]`, family, 'not configured on this cluster'));
  }
  if (errors.length > 0) throw refuse(service, errors);
  if (!spec.ipFamilies?.length) spec.ipFamilies = ['IPv4'];
}

function takeClusterIp(service: Service, context: RequestContext, taken: Taken): void {
  const { spec } = service;
  if (!needsClusterIp(service) || isHeadless(service)) return;
  const wanted = spec.clusterIPs?.[0];
  if (wanted) {
    // Anything else is left for validation to refuse.
    if (IPV4.test(wanted)) claimIp(service, wanted, context, taken);
    return;
  }
  const ip = context.server.allocators.clusterIp.allocate();
  if (ip === undefined) throw internalError('failed to allocate a serviceIP: range is full');
  taken.ips.push(ip);
  spec.clusterIP = ip;
  spec.clusterIPs = [ip];
}

/** Ports of one number share a node port (TCP and UDP of DNS). Models initNodePorts and updateNodePorts. */
function takeNodePorts(
  service: Service,
  old: Service | undefined,
  context: RequestContext,
  taken: Taken,
): void {
  const { spec } = service;
  if (!needsNodePort(service)) return;
  const allocating = spec.type === 'NodePort' || spec.allocateLoadBalancerNodePorts !== false;
  const ports = context.server.allocators.nodePort;
  const held = new Set((old?.spec.ports ?? []).flatMap((port) => port.nodePort ?? []));
  const byPort = new Map<number, number>();
  for (const [index, port] of (spec.ports ?? []).entries()) {
    if (!port.nodePort && !allocating) continue;
    const shared = byPort.get(port.port);
    if (!port.nodePort && shared !== undefined) {
      port.nodePort = shared;
      continue;
    }
    const wanted = port.nodePort ?? (old ? undefined : requestedFor(port.port, spec.ports ?? []));
    if (wanted === undefined) port.nodePort = nextPort(ports, 'nodePort', taken);
    else {
      port.nodePort = wanted;
      if (!held.has(wanted) && !taken.ports.includes(wanted)) {
        const why = claimPort(wanted, ports, taken);
        if (why) throw refuse(service, [invalidValue(`spec.ports[${index}].nodePort`, wanted, why)]);
      }
    }
    byPort.set(port.port, port.nodePort);
  }
}

function requestedFor(
  number: number,
  ports: readonly { port: number; nodePort?: number }[],
): number | undefined {
  return ports.find((port) => port.port === number && port.nodePort)?.nodePort;
}

function takeHealthCheckPort(
  service: Service,
  old: Service | undefined,
  context: RequestContext,
  taken: Taken,
): void {
  const { spec } = service;
  if (!needsHealthCheckPort(service)) return;
  const ports = context.server.allocators.nodePort;
  if (!spec.healthCheckNodePort) {
    spec.healthCheckNodePort = nextPort(ports, 'HealthCheck NodePort 0', taken);
    return;
  }
  if (old && old.spec.healthCheckNodePort === spec.healthCheckNodePort) return;
  const why = claimPort(spec.healthCheckNodePort, ports, taken);
  if (why) {
    throw internalError(
      `failed to allocate requested HealthCheck NodePort ${spec.healthCheckNodePort}: ${why}`,
    );
  }
}

function giveBack(taken: Taken, context: RequestContext): void {
  for (const ip of taken.ips) context.server.allocators.clusterIp.release(ip);
  for (const port of taken.ports) context.server.allocators.nodePort.release(port);
  taken.ips.length = 0;
  taken.ports.length = 0;
}

/** Gives a new Service its addresses and ports. What it takes goes back through `releaseService` with the same context. */
export function allocateForCreate(service: Service, context: RequestContext): void {
  const taken: Taken = { ips: [], ports: [] };
  takenByCreate.set(context, taken);
  if (!needsClusterIp(service)) return;
  fillFamilies(service, undefined);
  takeClusterIp(service, context, taken);
  takeNodePorts(service, undefined, context, taken);
  takeHealthCheckPort(service, undefined, context, taken);
}

/** Takes what the new state needs and the old did not have; takes nothing when it throws. */
export function allocateForUpdate(service: Service, old: Service, context: RequestContext): void {
  const taken: Taken = { ips: [], ports: [] };
  try {
    if (!needsClusterIp(service)) return;
    fillFamilies(service, old);
    if (!needsClusterIp(old)) takeClusterIp(service, context, taken);
    takeNodePorts(service, old, context, taken);
    takeHealthCheckPort(service, old, context, taken);
  } catch (error) {
    giveBack(taken, context);
    throw error;
  }
}

function heldBy(service: Service): Taken {
  const { spec } = service;
  const ports = (spec.ports ?? []).flatMap((port) => port.nodePort || []);
  if (spec.healthCheckNodePort) ports.push(spec.healthCheckNodePort);
  return { ips: (spec.clusterIPs ?? []).filter((ip) => ip !== 'None'), ports };
}

/** After a failed create: what that create took. After a delete: everything the Service held. */
export function releaseService(service: Service, context: RequestContext): void {
  const created = takenByCreate.get(context);
  giveBack(created ?? heldBy(service), context);
}

/** Gives back what `dropped` holds and `kept` does not. */
export function releaseServiceDifference(dropped: Service, kept: Service, context: RequestContext): void {
  const before = heldBy(dropped);
  const after = heldBy(kept);
  const difference: Taken = {
    ips: before.ips.filter((ip) => !after.ips.includes(ip)),
    ports: before.ports.filter((port) => !after.ports.includes(port)),
  };
  giveBack(difference, context);
}
