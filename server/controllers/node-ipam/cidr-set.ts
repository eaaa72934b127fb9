import { OperationalError } from '#server/base';

/** Hands out equal ranges of one IPv4 range. */
export interface CidrSet {
  /** The next free range, or undefined when all are taken. Round robin, as upstream does, so that a range rests after use. */
  next(): string | undefined;
  /** Marks a range as taken; false when it is not one of this set's. */
  occupy(cidr: string): boolean;
  release(cidr: string): void;
}

const IPV4_BITS = 32;

function parse(cidr: string): { address: number; mask: number } {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\/(\d{1,2})$/.exec(cidr);
  const parts = match?.slice(1).map(Number) ?? [];
  const mask = parts[4] ?? -1;
  if (parts.length !== 5 || parts.slice(0, 4).some((part) => part > 255) || mask < 0 || mask > IPV4_BITS) {
    throw new OperationalError(`not an IPv4 range: ${JSON.stringify(cidr)}`, {
      remedy: 'write it as 10.244.0.0/16',
    });
  }
  const address = parts.slice(0, 4).reduce((sum, part) => sum * 256 + part, 0);
  return { address: address - (address % 2 ** (IPV4_BITS - mask)), mask };
}

function format(address: number, mask: number): string {
  return `${[24, 16, 8, 0].map((shift) => Math.floor(address / 2 ** shift) % 256).join('.')}/${mask}`;
}

/** Throws OperationalError when the range is none, or the node mask is wider than it. Models nodeipam/ipam/cidrset. */
export function createCidrSet(clusterCidr: string, nodeMask: number): CidrSet {
  const { address: base, mask } = parse(clusterCidr);
  if (nodeMask < mask || nodeMask > IPV4_BITS) {
    throw new OperationalError(`a node's range /${nodeMask} does not fit into ${clusterCidr}`);
  }
  const size = 2 ** (IPV4_BITS - nodeMask);
  const count = 2 ** (nodeMask - mask);
  const taken = new Set<number>();
  let candidate = 0;
  const indexOf = (cidr: string): number | undefined => {
    const { address, mask: itsMask } = parse(cidr);
    const index = (address - base) / size;
    return itsMask === nodeMask && Number.isInteger(index) && index >= 0 && index < count ? index : undefined;
  };
  return {
    next() {
      if (taken.size >= count) return undefined;
      while (taken.has(candidate)) candidate = (candidate + 1) % count;
      const index = candidate;
      taken.add(index);
      candidate = (candidate + 1) % count;
      return format(base + index * size, nodeMask);
    },
    occupy(cidr) {
      const index = indexOf(cidr);
      if (index === undefined) return false;
      taken.add(index);
      return true;
    },
    release(cidr) {
      const index = indexOf(cidr);
      if (index !== undefined) taken.delete(index);
    },
  };
}
