import type { Duplex } from 'node:stream';
import type { Clock, Logger } from '#server/base';
import {
  type Connection,
  type DatagramHandler,
  type Listener,
  type ListenOptions,
  NetworkError,
  type NetworkNamespace,
} from '../contract.ts';
import type {
  AttachedNamespace,
  AttachOptions,
  Network,
  ResolverConfig,
  Route,
  RouteRequest,
  Router,
} from './contract.ts';
import { resolveName } from './resolver.ts';
import { createSocketPair } from './socket.ts';

/** Linux gives up a connect that nobody answers after its SYN retries. */
const CONNECT_TIMEOUT = 127_000;
const DATAGRAM_TIMEOUT = 5_000;
const EPHEMERAL_START = 32_768;
const EPHEMERAL_END = 60_999;
/** Open connections one namespace may have; more are refused. */
const MAX_CONNECTIONS = 1024;
const MAX_LISTENERS = 256;
/** Bytes of a datagram. */
const MAX_DATAGRAM = 65_507;

interface Port<T> {
  ip: string | undefined;
  handler: T;
  health?: ListenOptions['health'] | undefined;
}

/** Everything one namespace holds. Maps are made when first needed: most pods listen on one port or none. */
interface State {
  options: AttachOptions;
  tcp: Map<number, Port<(connection: Connection) => void>> | undefined;
  udp: Map<number, Port<DatagramHandler>> | undefined;
  connections: Set<Duplex> | undefined;
  resolver: ResolverConfig | undefined;
  nextPort: number;
  attached: boolean;
}

function isLoopback(ip: string): boolean {
  return ip.startsWith('127.') || ip === '::1';
}

function refused(ip: string, port: number): NetworkError {
  return new NetworkError('ECONNREFUSED', `connect ECONNREFUSED ${ip}:${port}`);
}

/**
 * A network for one cluster. Connections are in-process streams with back-pressure; an address nobody holds is
 * EHOSTUNREACH, a held address without a listener ECONNREFUSED.
 */
export function createNetwork(options: { clock: Clock; log: Logger }): Network {
  const { clock, log } = options;
  const holders = new Map<string, State>();
  const routers: Router[] = [];

  const decide = (request: RouteRequest): Route => {
    for (const router of routers) {
      const decided = router.route(request);
      if (decided !== undefined) return decided;
    }
    return undefined;
  };
  const route = (from: State, protocol: 'TCP' | 'UDP', ip: string, port: number): Route => {
    const sourceIp = from.options.ips[0] ?? '';
    return decide({
      protocol,
      ip: isLoopback(ip) && from.options.kind === 'node' ? sourceIp : ip,
      port,
      sourceIp,
      sourceKind: from.options.kind,
      sourceNode: from.options.nodeName,
    });
  };

  /** Whom a packet reaches: the namespace and port behind Service addresses. */
  const target = async (
    from: State,
    protocol: 'TCP' | 'UDP',
    ip: string,
    port: number,
    wait: { signal: AbortSignal | undefined; timeout: number },
  ): Promise<{ state: State; ip: string; port: number; serve?: (stream: Duplex) => void }> => {
    if (!from.attached) throw new NetworkError('ENETUNREACH', `connect ENETUNREACH ${ip}:${port}`);
    const listening = protocol === 'TCP' ? from.tcp?.has(port) : from.udp?.has(port);
    if (isLoopback(ip) && (from.options.kind !== 'node' || listening)) return { state: from, ip, port };
    const decided = route(from, protocol, ip, port);
    if (decided === 'reject') throw refused(ip, port);
    if (decided === 'drop') {
      await clock.sleep(wait.timeout, wait.signal);
      throw new NetworkError('ETIMEDOUT', `connect ETIMEDOUT ${ip}:${port}`);
    }
    if (!decided && isLoopback(ip)) return { state: from, ip, port };
    const served = decided && 'serve' in decided ? decided.serve : undefined;
    const end = decided && 'ip' in decided ? decided : { ip, port };
    const state = holders.get(end.ip);
    if (!state) throw new NetworkError('EHOSTUNREACH', `connect EHOSTUNREACH ${ip}:${port}`);
    return { state, ip: end.ip, port: end.port, ...(served ? { serve: served } : {}) };
  };

  const track = (state: State, stream: Duplex): void => {
    state.connections ??= new Set();
    state.connections.add(stream);
    stream.once('close', () => state.connections?.delete(stream));
    // A reset nobody waits for is not a crash: whoever uses the stream sees it too.
    stream.on('error', (error) => log.debug({ err: error.message }, 'simulated connection failed'));
  };

  const connect = async (
    from: State,
    ip: string,
    port: number,
    signal: AbortSignal | undefined,
  ): Promise<Duplex> => {
    signal?.throwIfAborted();
    const end = await target(from, 'TCP', ip, port, { signal, timeout: CONNECT_TIMEOUT });
    const source = { ip: isLoopback(ip) ? ip : (from.options.ips[0] ?? ip), port: ephemeralPort(from) };
    const own = end.serve;
    const listener = own
      ? { ip: undefined, handler: ({ stream }: Connection) => own(stream) }
      : end.state.tcp?.get(end.port);
    const bound = listener && (listener.ip === undefined || listener.ip === end.ip);
    if (!bound) {
      const forwarded = end.state.options.forward?.(end.port, source);
      if (!forwarded) throw refused(ip, port);
      const stream = await forwarded;
      track(from, stream);
      return stream;
    }
    if (
      (end.state.connections?.size ?? 0) >= MAX_CONNECTIONS ||
      (from.connections?.size ?? 0) >= MAX_CONNECTIONS
    ) {
      throw refused(ip, port);
    }
    const pair = createSocketPair(source, { ip, port });
    track(from, pair.client);
    track(end.state, pair.server);
    queueMicrotask(() => listener.handler({ stream: pair.server, remote: source }));
    return pair.client;
  };

  const exchange = async (
    from: State,
    ip: string,
    port: number,
    message: Uint8Array,
    exchangeOptions: { signal?: AbortSignal; timeout?: number },
  ): Promise<Uint8Array> => {
    const { signal, timeout = DATAGRAM_TIMEOUT } = exchangeOptions;
    if (message.length > MAX_DATAGRAM) throw new NetworkError('ENETUNREACH', 'message too long');
    const end = await target(from, 'UDP', ip, port, { signal, timeout });
    const listener = end.state.udp?.get(end.port);
    if (!listener) throw refused(ip, port);
    const source = { ip: from.options.ips[0] ?? ip, port: ephemeralPort(from) };
    const waiting = new AbortController();
    const silence = clock
      .sleep(timeout, signal ? AbortSignal.any([signal, waiting.signal]) : waiting.signal)
      .then(() => {
        throw new NetworkError('ETIMEDOUT', `read ETIMEDOUT ${ip}:${port}`);
      });
    silence.catch(() => undefined);
    try {
      const answer = await Promise.race([listener.handler(message, source), silence]);
      return answer ?? (await silence);
    } finally {
      waiting.abort();
    }
  };

  return {
    attach(attachOptions) {
      const taken = attachOptions.ips.find((ip) => holders.has(ip));
      if (taken !== undefined) throw new NetworkError('EADDRINUSE', `address ${taken} is in use`);
      const state: State = {
        options: attachOptions,
        tcp: undefined,
        udp: undefined,
        connections: undefined,
        resolver: attachOptions.resolver,
        nextPort: EPHEMERAL_START,
        attached: true,
      };
      for (const ip of attachOptions.ips) holders.set(ip, state);
      const detach = (): void => {
        if (!state.attached) return;
        state.attached = false;
        for (const ip of attachOptions.ips) if (holders.get(ip) === state) holders.delete(ip);
        state.tcp?.clear();
        state.udp?.clear();
        for (const stream of state.connections ?? [])
          stream.destroy(new NetworkError('EHOSTUNREACH', 'the network is gone'));
        state.connections = undefined;
      };
      return createNamespace(state, { connect, exchange, detach });
    },
    health(ip, port) {
      const listener = holders.get(ip)?.tcp?.get(port);
      return listener && (listener.ip === undefined || listener.ip === ip) ? listener.health : undefined;
    },
    holder(ip) {
      const state = holders.get(ip);
      return state && { kind: state.options.kind, nodeName: state.options.nodeName };
    },
    destination(request) {
      const decided = decide(request);
      if (decided === 'reject' || decided === 'drop') return undefined;
      return decided && 'ip' in decided ? decided : { ip: request.ip, port: request.port };
    },
    addRouter(router) {
      routers.push(router);
      return {
        stop() {
          const index = routers.indexOf(router);
          if (index >= 0) routers.splice(index, 1);
        },
      };
    },
    stop() {
      routers.length = 0;
      for (const state of new Set(holders.values())) {
        state.attached = false;
        for (const stream of state.connections ?? []) stream.destroy();
      }
      holders.clear();
    },
  };
}

function ephemeralPort(state: State): number {
  const port = state.nextPort;
  state.nextPort = port >= EPHEMERAL_END ? EPHEMERAL_START : port + 1;
  return port;
}

function bind<T>(ports: Map<number, Port<T>>, state: State, port: number, entry: Port<T>): Listener {
  if (!state.attached) throw new NetworkError('EADDRINUSE', 'the network is gone');
  let chosen = port;
  for (let tries = 0; chosen === 0 || (port === 0 && ports.has(chosen)); tries += 1) {
    if (tries > MAX_LISTENERS) throw new NetworkError('EADDRINUSE', 'listen EADDRINUSE: no free port');
    chosen = ephemeralPort(state);
  }
  if (ports.has(chosen) || ports.size >= MAX_LISTENERS) {
    throw new NetworkError(
      'EADDRINUSE',
      `listen EADDRINUSE: address already in use ${entry.ip ?? '0.0.0.0'}:${chosen}`,
    );
  }
  ports.set(chosen, entry);
  return {
    port: chosen,
    close() {
      if (ports.get(chosen) === entry) ports.delete(chosen);
    },
  };
}

function createNamespace(
  state: State,
  network: {
    connect(from: State, ip: string, port: number, signal: AbortSignal | undefined): Promise<Duplex>;
    exchange(
      from: State,
      ip: string,
      port: number,
      message: Uint8Array,
      options: { signal?: AbortSignal; timeout?: number },
    ): Promise<Uint8Array>;
    detach(): void;
  },
): AttachedNamespace {
  const namespace: AttachedNamespace = {
    ips: state.options.ips,
    kind: state.options.kind,
    nodeName: state.options.nodeName,
    listen(port, onConnection, listenOptions) {
      state.tcp ??= new Map();
      return bind(state.tcp, state, port, {
        ip: listenOptions?.ip,
        handler: onConnection,
        health: listenOptions?.health,
      });
    },
    listenDatagrams(port, answer, listenOptions) {
      state.udp ??= new Map();
      return bind(state.udp, state, port, { ip: listenOptions?.ip, handler: answer });
    },
    connect: (ip, port, connectOptions) => network.connect(state, ip, port, connectOptions?.signal),
    exchange: (ip, port, message, exchangeOptions) =>
      network.exchange(state, ip, port, message, exchangeOptions ?? {}),
    resolve: (host, resolveOptions) => resolveName(namespace, state.resolver, host, resolveOptions?.signal),
    setResolver(resolver) {
      state.resolver = resolver;
    },
    detach: () => network.detach(),
  };
  return namespace;
}

/** A namespace without any network: nothing can be reached, listening is refused. */
export const noNetwork: NetworkNamespace = {
  ips: [],
  listen: () => {
    throw new NetworkError('EADDRINUSE', 'there is no network');
  },
  listenDatagrams: () => {
    throw new NetworkError('EADDRINUSE', 'there is no network');
  },
  connect: async (ip, port) => {
    throw new NetworkError('ENETUNREACH', `connect ENETUNREACH ${ip}:${port}`);
  },
  exchange: async (ip, port) => {
    throw new NetworkError('ENETUNREACH', `connect ENETUNREACH ${ip}:${port}`);
  },
  resolve: async (host) => {
    throw new NetworkError('EAI_AGAIN', `getaddrinfo EAI_AGAIN ${host}`);
  },
};
