import { hostnameIn, isHeadless, isReady, portOn } from '#server/controllers/machinery';
import {
  type DiscoveryEndpointPort,
  type Endpoint,
  labels,
  type Node,
  type Pod,
  type Service,
} from '#server/kube';

export type AddressType = 'IPv4' | 'IPv6';

/** The address types a Service publishes. */
export function addressTypes({ spec }: Service): AddressType[] {
  if (spec.ipFamilies?.length) return spec.ipFamilies.map((family) => (family === 'IPv6' ? 'IPv6' : 'IPv4'));
  return [spec.clusterIP?.includes(':') ? 'IPv6' : 'IPv4'];
}

function addressesOf(pod: Pod, type: AddressType): string[] {
  const all = pod.status?.podIPs?.map(({ ip }) => ip) ?? [];
  const ips = all.length > 0 ? all : [pod.status?.podIP];
  return ips.filter((ip): ip is string => ip !== undefined && ip.includes(':') === (type === 'IPv6'));
}

/** Tells clients to stay near, as the Service's trafficDistribution wishes. */
function hintsFor(
  { spec }: Service,
  zone: string | undefined,
  nodeName: string | undefined,
): Endpoint['hints'] {
  const forZones = zone ? { forZones: [{ name: zone }] } : undefined;
  switch (spec.trafficDistribution) {
    case 'PreferClose':
    case 'PreferSameZone':
      return forZones;
    case 'PreferSameNode':
      return nodeName ? { ...forZones, forNodes: [{ name: nodeName }] } : forZones;
    default:
      return undefined;
  }
}

/** What a slice says of a pod; undefined when it has no address of the type. Models podToEndpoint. */
export function podEndpoint(
  service: Service,
  pod: Pod,
  node: Node | undefined,
  type: AddressType,
): Endpoint | undefined {
  const addresses = addressesOf(pod, type);
  if (addresses.length === 0) return undefined;
  const serving = isReady(pod);
  const terminating = pod.metadata.deletionTimestamp !== undefined;
  const ready = (service.spec.publishNotReadyAddresses ?? false) || (serving && !terminating);
  const { namespace, name, uid } = pod.metadata;
  const { nodeName } = pod.spec;
  const zone = node?.metadata.labels?.[labels.zone];
  const hostname = hostnameIn(service, pod);
  const hints = ready ? hintsFor(service, zone, nodeName) : undefined;
  return {
    addresses,
    conditions: { ready, serving, terminating },
    ...(hostname ? { hostname } : {}),
    targetRef: { kind: 'Pod', ...(namespace ? { namespace } : {}), name, ...(uid ? { uid } : {}) },
    ...(nodeName ? { nodeName } : {}),
    ...(zone ? { zone } : {}),
    ...(hints ? { hints } : {}),
  };
}

/** The Service's ports as they are on one pod; those the pod does not have are left out. Models getEndpointPorts. */
export function podPorts(service: Service, pod: Pod): DiscoveryEndpointPort[] {
  if (isHeadless(service) && !service.spec.ports?.length) return [];
  return (service.spec.ports ?? []).flatMap((servicePort) => {
    const port = portOn(pod, servicePort);
    if (port === undefined) return [];
    const { name = '', protocol = 'TCP', appProtocol } = servicePort;
    return [{ name, protocol, port, ...(appProtocol ? { appProtocol } : {}) }];
  });
}
