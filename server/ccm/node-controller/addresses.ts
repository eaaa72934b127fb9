import { annotations, deepEqual, type Node, type NodeAddress } from '#server/kube';
import { NodeSyncError } from './errors.ts';
import { canonicalIp, isIpv6 } from './ip.ts';

/**
 * The cloud's addresses of a node in the order and selection the kubelet's `--node-ip` asks for, which it left in the
 * annotation `alpha.kubernetes.io/provided-node-ip`. Throws NodeSyncError when the cloud does not know that address.
 * Models k8s.io/cloud-provider/node/helpers/address.go.
 */
export function preferProvidedIp(node: Node, addresses: readonly NodeAddress[]): readonly NodeAddress[] {
  const provided = node.metadata.annotations?.[annotations.providedNodeIp];
  if (provided === undefined) return addresses;
  const enforced: NodeAddress[] = [];
  for (const ip of providedIps(provided)) {
    const matching = addresses.filter(({ address }) => canonicalIp(address) === ip);
    if (matching.length === 0) {
      throw new NodeSyncError(`failed to get node address from cloud provider that matches ip: ${ip}`);
    }
    enforced.push(...matching);
  }
  const settled = new Set(enforced.map(({ type }) => type));
  return [...enforced, ...addresses.filter(({ type }) => !settled.has(type))];
}

function providedIps(annotation: string): string[] {
  const fail = (why: string): NodeSyncError =>
    new NodeSyncError(`failed to parse node IP ${JSON.stringify(annotation)}: ${why}`);
  const ips = annotation.split(',').map((part) => {
    const ip = canonicalIp(part);
    if (ip === undefined) throw fail(`could not parse ${JSON.stringify(part)}`);
    return ip;
  });
  const [first, second] = ips;
  const pair = first !== undefined && second !== undefined;
  if (ips.length > 2 || (pair && isIpv6(first) === isIpv6(second))) {
    throw fail('must contain either a single IP or a dual-stack pair of IPs');
  }
  if (pair && ips.some((ip) => ip === '0.0.0.0' || ip === '::')) {
    throw fail("dual-stack node IP cannot include '0.0.0.0' or '::'");
  }
  return ips;
}

/** The cloud's addresses, with the host name the kubelet reported when the cloud has none to offer. */
export function withHostname(node: Node, addresses: readonly NodeAddress[]): readonly NodeAddress[] {
  if (addresses.some(({ type }) => type === 'Hostname')) return addresses;
  return [...addresses, ...(node.status?.addresses ?? []).filter(({ type }) => type === 'Hostname')];
}

/**
 * Whether a write is due. Upstream compares by type, the last address of a type counting: a list with two addresses of
 * one type always looks changed, and its write then changes nothing.
 */
export function addressesChanged(before: readonly NodeAddress[], now: readonly NodeAddress[]): boolean {
  if (before.length !== now.length) return true;
  const byType = new Map(before.map(({ type, address }) => [type, address]));
  return now.some(({ type, address }) => byType.get(type) !== address);
}

/**
 * The strategic merge patch of the status that leaves exactly these addresses: the list says `replace`, because its
 * declared merge key (the type) would keep addresses that are gone.
 * Models k8s.io/component-helpers/node/util/status.go.
 */
export function addressPatch(before: readonly NodeAddress[], now: readonly NodeAddress[]): object {
  if (before.length === 0) return { status: { addresses: now } };
  if (deepEqual(before, now)) return {};
  return { status: { addresses: [...now, { $patch: 'replace' }] } };
}
