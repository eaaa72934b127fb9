import { canServe, hostnameIn, isHeadless, isReady, portOn } from '#server/controllers/machinery';
import type { EndpointAddress, EndpointPort, EndpointSubset, Pod, Service } from '#server/kube';

/** An address on one port (undefined: a headless Service without ports). */
interface Entry {
  address: EndpointAddress;
  ready: boolean;
  port: EndpointPort | undefined;
}

function addressOf(service: Service, pod: Pod): EndpointAddress | undefined {
  const family = service.spec.ipFamilies?.[0] ?? (service.spec.clusterIP?.includes(':') ? 'IPv6' : 'IPv4');
  const ips = pod.status?.podIPs?.map((each) => each.ip) ?? [];
  const ip = (ips.length > 0 ? ips : [pod.status?.podIP]).find(
    (each) => each?.includes(':') === (family === 'IPv6'),
  );
  if (!ip) return undefined;
  const { namespace, name, uid } = pod.metadata;
  const hostname = hostnameIn(service, pod);
  return {
    ip,
    ...(hostname ? { hostname } : {}),
    ...(pod.spec.nodeName ? { nodeName: pod.spec.nodeName } : {}),
    targetRef: { kind: 'Pod', ...(namespace ? { namespace } : {}), name, ...(uid ? { uid } : {}) },
  };
}

function entriesOf(service: Service, pod: Pod): Entry[] {
  const always = service.spec.publishNotReadyAddresses ?? false;
  if (!canServe(pod, always)) return [];
  const address = addressOf(service, pod);
  if (!address) return [];
  const ready = always || isReady(pod);
  if (isHeadless(service) && !service.spec.ports?.length) return [{ address, ready, port: undefined }];
  return (service.spec.ports ?? []).flatMap((servicePort) => {
    const port = portOn(pod, servicePort);
    if (port === undefined) return [];
    const { name, protocol = 'TCP', appProtocol } = servicePort;
    return [
      {
        address,
        ready,
        port: { ...(name ? { name } : {}), port, protocol, ...(appProtocol ? { appProtocol } : {}) },
      },
    ];
  });
}

function compareTexts(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/**
 * The subsets for a Service's pods: ports with the very same addresses share one. Sorted, so that equal pods give equal
 * subsets. Models addEndpointSubset and endpoints.RepackSubsets of kubernetes/pkg/api/v1/endpoints.
 */
export function subsetsOf(service: Service, pods: readonly Pod[]): EndpointSubset[] {
  const byPort = new Map<string, Entry[]>();
  for (const entry of pods.flatMap((pod) => entriesOf(service, pod))) {
    const key = JSON.stringify(entry.port ?? null);
    byPort.set(key, [...(byPort.get(key) ?? []), entry]);
  }
  const byAddresses = new Map<string, { entries: Entry[]; ports: EndpointPort[] }>();
  for (const entries of byPort.values()) {
    entries.sort(
      (a, b) =>
        compareTexts(a.address.ip, b.address.ip) ||
        compareTexts(a.address.targetRef?.uid ?? '', b.address.targetRef?.uid ?? ''),
    );
    const key = JSON.stringify(entries.map(({ address, ready }) => [address, ready]));
    const subset = byAddresses.get(key) ?? { entries, ports: [] };
    byAddresses.set(key, subset);
    const port = entries[0]?.port;
    if (port) subset.ports.push(port);
  }
  const subsets = [...byAddresses.values()].map(({ entries, ports }): EndpointSubset => {
    const addresses = entries.filter(({ ready }) => ready).map(({ address }) => address);
    const notReadyAddresses = entries.filter(({ ready }) => !ready).map(({ address }) => address);
    ports.sort(
      (a, b) =>
        compareTexts(a.name ?? '', b.name ?? '') ||
        a.port - b.port ||
        compareTexts(a.protocol ?? '', b.protocol ?? ''),
    );
    return {
      ...(addresses.length > 0 ? { addresses } : {}),
      ...(notReadyAddresses.length > 0 ? { notReadyAddresses } : {}),
      ...(ports.length > 0 ? { ports } : {}),
    };
  });
  return subsets.sort((a, b) => compareTexts(JSON.stringify(a.ports ?? []), JSON.stringify(b.ports ?? [])));
}

/** The first `limit` addresses, ready ones first; undefined when there are no more than that anyway. */
export function truncated(subsets: readonly EndpointSubset[], limit: number): EndpointSubset[] | undefined {
  const count = (of: 'addresses' | 'notReadyAddresses'): number =>
    subsets.reduce((sum, subset) => sum + (subset[of]?.length ?? 0), 0);
  if (count('addresses') + count('notReadyAddresses') <= limit) return undefined;
  const left = { addresses: limit, notReadyAddresses: Math.max(0, limit - count('addresses')) };
  return subsets.flatMap((subset) => {
    const addresses = subset.addresses?.slice(0, left.addresses) ?? [];
    const notReadyAddresses = subset.notReadyAddresses?.slice(0, left.notReadyAddresses) ?? [];
    left.addresses -= addresses.length;
    left.notReadyAddresses -= notReadyAddresses.length;
    if (addresses.length + notReadyAddresses.length === 0) return [];
    return [
      {
        ...(addresses.length > 0 ? { addresses } : {}),
        ...(notReadyAddresses.length > 0 ? { notReadyAddresses } : {}),
        ...(subset.ports ? { ports: subset.ports } : {}),
      },
    ];
  });
}
