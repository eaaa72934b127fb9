/** Hands out the addresses of a node's pod CIDR, in turn, so that a freed one is not taken again at once. */
export interface PodAddresses {
  /** Undefined while the node has no CIDR, or when it is full. */
  allocate(): string | undefined;
  release(ip: string): void;
  /** `10.244.0.0/24`; later calls with the same are ignored. */
  setCidr(cidr: string): void;
  readonly cidr: string | undefined;
}

/** The first address is the node's own (the bridge, or cilium_host). */
const RESERVED = 2;

export function createPodAddresses(): PodAddresses {
  let range: { cidr: string; base: number; size: number } | undefined;
  let next = RESERVED;
  const taken = new Set<number>();
  return {
    get cidr() {
      return range?.cidr;
    },
    setCidr(cidr) {
      if (range?.cidr === cidr) return;
      const [address = '', bits = '24'] = cidr.split('/');
      const base = address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
      range = { cidr, base, size: 2 ** (32 - Number(bits)) };
      next = RESERVED;
    },
    allocate() {
      if (!range) return undefined;
      const usable = range.size - 1;
      for (let tries = 0; tries < usable; tries += 1) {
        const offset = next;
        next = next + 1 >= usable ? RESERVED : next + 1;
        if (taken.has(offset)) continue;
        taken.add(offset);
        return format(range.base + offset);
      }
      return undefined;
    },
    release(ip) {
      if (!range) return;
      taken.delete(ip.split('.').reduce((sum, part) => sum * 256 + Number(part), 0) - range.base);
    },
  };
}

function format(value: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join('.');
}
