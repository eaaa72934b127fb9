import type { Duplex } from 'node:stream';
import type { ListenOptions, NetworkNamespace } from '../contract.ts';

/** The simulated network of one cluster: what has an address here can be reached from here, and nothing else exists. */
export interface Network {
  /** Gives a machine or pod its addresses. Throws NetworkError EADDRINUSE when one is taken. */
  attach(options: AttachOptions): AttachedNamespace;
  /** Who holds an address, if anybody. */
  holder(ip: string): { kind: NamespaceKind; nodeName: string | undefined } | undefined;
  /** The short cut for probes of whoever listens there (`ListenOptions.health`). */
  health(ip: string, port: number): ListenOptions['health'] | undefined;
  /** Where a connection would end, by the routers: itself when none decides, undefined when it would be refused or dropped. */
  destination(request: RouteRequest): { ip: string; port: number } | undefined;
  /** Puts a router before delivery (Service addresses); the first that decides wins. */
  addRouter(router: Router): { stop(): void };
  /** Detaches everything. */
  stop(): void;
}

export type NamespaceKind = 'node' | 'pod' | 'external';

export interface AttachOptions {
  kind: NamespaceKind;
  ips: readonly string[];
  /** The node it is, or runs on; none for `external`. */
  nodeName?: string;
  /** How names are resolved; default: only literal addresses and `localhost`. */
  resolver?: ResolverConfig;
  /**
   * Asked for a TCP connection to a port nobody listens on: how a machine of one network is the gateway to another
   * (the virt-launcher pod whose address is the tenant's node). Returns undefined to refuse.
   */
  forward?: (port: number, remote: { ip: string; port: number }) => Promise<Duplex> | undefined;
}

/** What /etc/resolv.conf and /etc/hosts say. */
export interface ResolverConfig {
  readonly nameservers: readonly string[];
  readonly search: readonly string[];
  readonly ndots: number;
  readonly hosts?: Readonly<Record<string, string>>;
}

export interface AttachedNamespace extends NetworkNamespace {
  readonly kind: NamespaceKind;
  readonly nodeName: string | undefined;
  setResolver(resolver: ResolverConfig): void;
  /** Frees the addresses; open connections are reset. Idempotent. */
  detach(): void;
}

/** Where a packet is going and who sends it. */
export interface RouteRequest {
  readonly protocol: 'TCP' | 'UDP';
  readonly ip: string;
  readonly port: number;
  readonly sourceIp: string;
  readonly sourceKind: NamespaceKind;
  readonly sourceNode: string | undefined;
}

/** `undefined`: not mine. `reject`: ECONNREFUSED. `drop`: silence until a timeout. */
export type Route =
  | { readonly ip: string; readonly port: number }
  /** The node itself answers: a Service's health check port. */
  | { readonly serve: (stream: Duplex) => void }
  | 'reject'
  | 'drop'
  | undefined;

export interface Router {
  route(request: RouteRequest): Route;
}
