import { type Ids, InternalError } from '#server/base';
import type { KubeObject, Service } from '#server/kube';
import { type Allocator, type Allocators, as } from './kind.ts';

export const DEFAULT_NODE_PORT_RANGE = '30000-32767';

/** Random draws before a crowded range is walked through. */
const DRAWS = 16;

interface SlotAllocator {
  allocate(): number | undefined;
  claim(slot: number): 'ok' | 'taken' | 'out-of-range';
  release(slot: number): void;
}

/**
 * Slots 0…size-1. The lower `staticBand` ones are handed out on their own only when the others are gone, so that people
 * may choose from them without meeting a slot given by chance.
 * Models kubernetes/pkg/registry/core/service/allocator (bitmap with offset); taken slots are kept in a set, so that an
 * empty large range costs nothing.
 */
function createSlotAllocator(size: number, staticBand: number, ids: Ids): SlotAllocator {
  const taken = new Set<number>();
  const takeFrom = (from: number, to: number): number | undefined => {
    const width = to - from;
    if (width <= 0) return undefined;
    let slot = from;
    for (let draw = 0; draw < DRAWS; draw++) {
      slot = from + Math.min(width - 1, Math.floor(ids.random() * width));
      if (!taken.has(slot)) return slot;
    }
    for (let step = 0; step < width; step++) {
      const candidate = from + ((slot - from + step) % width);
      if (!taken.has(candidate)) return candidate;
    }
    return undefined;
  };
  return {
    allocate() {
      if (taken.size >= size) return undefined;
      const slot = takeFrom(staticBand, size) ?? takeFrom(0, staticBand);
      if (slot !== undefined) taken.add(slot);
      return slot;
    },
    claim(slot) {
      if (!Number.isInteger(slot) || slot < 0 || slot >= size) return 'out-of-range';
      if (taken.has(slot)) return 'taken';
      taken.add(slot);
      return 'ok';
    },
    release: (slot) => void taken.delete(slot),
  };
}

function ipv4ToNumber(ip: string): number | undefined {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(ip);
  if (!match) return undefined;
  const parts = match.slice(1).map(Number);
  if (parts.some((part) => part > 255)) return undefined;
  return parts.reduce((sum, part) => sum * 256 + part, 0);
}

function numberToIpv4(value: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join('.');
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(high, Math.max(low, value));
}

/**
 * Addresses of an IPv4 CIDR without its first (the network) and last (broadcast). Throws InternalError on anything else:
 * the service network is the operator's setting. Models pkg/registry/core/service/ipallocator.
 */
function createClusterIpAllocator(cidr: string, ids: Ids): Allocator<string> {
  const [address = '', prefix = ''] = cidr.split('/');
  const given = ipv4ToNumber(address);
  const bits = Number(prefix);
  if (given === undefined || !/^\d{1,2}$/.test(prefix) || bits > 30) {
    throw new InternalError(`not an IPv4 service network: ${cidr}`);
  }
  const range = 2 ** (32 - bits);
  const first = given - (given % range) + 1;
  const size = range - 2;
  const staticBand = size <= 16 ? 0 : clamp(Math.floor(size / 16), 16, 256);
  const slots = createSlotAllocator(size, staticBand, ids);
  return {
    range: cidr,
    allocate() {
      const slot = slots.allocate();
      return slot === undefined ? undefined : numberToIpv4(first + slot);
    },
    claim(ip) {
      const value = ipv4ToNumber(ip);
      return value === undefined ? 'out-of-range' : slots.claim(value - first);
    },
    release(ip) {
      const value = ipv4ToNumber(ip);
      if (value !== undefined) slots.release(value - first);
    },
  };
}

/** Models pkg/registry/core/service/portallocator. `range` is `<first>-<last>`, both included. */
function createNodePortAllocator(range: string, ids: Ids): Allocator<number> {
  const match = /^(\d+)-(\d+)$/.exec(range);
  const first = Number(match?.[1]);
  const last = Number(match?.[2]);
  if (!match || first < 1 || last > 65535 || last < first)
    throw new InternalError(`not a range of ports: ${range}`);
  const size = last - first + 1;
  const staticBand = size <= 16 ? 0 : clamp(Math.floor(size / 32), 16, 128);
  const slots = createSlotAllocator(size, Math.min(staticBand, size), ids);
  return {
    range,
    allocate() {
      const slot = slots.allocate();
      return slot === undefined ? undefined : first + slot;
    },
    claim: (port) => slots.claim(port - first),
    release: (port) => slots.release(port - first),
  };
}

/**
 * Cluster addresses and node ports of one cluster. `existing`: the stored Services, whose addresses and ports are taken
 * from the start; what lies outside the ranges (changed settings) is left alone.
 */
export function createAllocators(options: {
  serviceCidr: string;
  nodePortRange?: string | undefined;
  ids: Ids;
  existing: Iterable<KubeObject>;
}): Allocators {
  const clusterIp = createClusterIpAllocator(options.serviceCidr, options.ids);
  const nodePort = createNodePortAllocator(options.nodePortRange ?? DEFAULT_NODE_PORT_RANGE, options.ids);
  for (const object of options.existing) {
    const spec = as<Service>(object).spec;
    for (const ip of spec?.clusterIPs ?? []) clusterIp.claim(ip);
    for (const port of spec?.ports ?? []) if (port.nodePort) nodePort.claim(port.nodePort);
    if (spec?.healthCheckNodePort) nodePort.claim(spec.healthCheckNodePort);
  }
  return { clusterIp, nodePort };
}
