import { X509Certificate } from 'node:crypto';
import {
  type ApiBackend,
  type Client,
  ConnectionError,
  createInProcessClient,
  type Dialer,
  type RestConfig,
} from '#server/client';
import { type UserInfo, unauthorized } from '#server/kube';
import type { ClusterDirectory, ClusterEntry } from './directory.ts';

export interface DialerOptions {
  directory: ClusterDirectory;
  /** `https://127.0.0.1:6443`: the listener whose prefixed URLs kubeconfigs carry. */
  listenerUrl: string;
  /** PEM of the authority behind the listener's certificate. */
  listenerCaPem: string;
  /** The cluster in whose network the caller lives, for in-cluster addresses; with the address of its `kubernetes` Service. */
  home?: { path: string; serviceAddress: string };
  /** Where a connection to an address really ends (Services of the network the caller lives in); default: there. */
  translate?: (address: string) => string | undefined;
}

/**
 * Reaches the API servers of this process by what a kubeconfig says, without a socket. Everything else is as over
 * HTTPS: the credential is checked at every request, for the cluster that is asked; a server that does not run refuses
 * the connection; a CA that did not sign is an error; an address that belongs to no cluster does not exist.
 */
export function createDialer(options: DialerOptions): Dialer {
  const { directory, home } = options;
  const listenerHost = new URL(options.listenerUrl).hostname;
  const locate: Locate = async (server) => {
    const path = prefixedPath(server, listenerHost);
    const address = addressOf(server);
    const find = (): ClusterEntry | undefined => {
      if (path !== undefined) return directory.get(path);
      if (home && address === home.serviceAddress) return directory.get(home.path);
      const end = options.translate ? options.translate(address) : address;
      return end === undefined ? undefined : directory.byAddress(end);
    };
    const entry = await directory.waitFor(find, DIAL_TIMEOUT);
    return { entry, caPem: path !== undefined ? options.listenerCaPem : (entry?.caPem ?? '') };
  };
  return {
    dial(config, dialOptions = {}) {
      const userAgent = dialOptions.userAgent ?? 'Go-http-client/2.0';
      const backend = dialledBackend(config, locate);
      return createInProcessClient({
        backend,
        user: NOBODY,
        userAgent,
        ...(dialOptions.fieldManager === undefined ? {} : { fieldManager: dialOptions.fieldManager }),
      }) satisfies Client;
    },
  };
}

/**
 * The cluster that a prefixed URL of this listener names, whatever its port: a kubeconfig that was read before the
 * listener moved to another port still means this cluster. Undefined for any other URL.
 */
function prefixedPath(server: string, listenerHost: string): string | undefined {
  const { hostname, pathname } = new URL(server);
  return hostname === listenerHost && pathname.startsWith(PREFIX) ? pathname.slice(PREFIX.length) : undefined;
}

const PREFIX = '/clusters/';

/** `host:port` of an URL without a path; 443 is what https leaves out. */
function addressOf(server: string): string {
  const { hostname, port } = new URL(server);
  return `${hostname}:${port || '443'}`;
}

type Locate = (server: string) => Promise<{ entry: ClusterEntry | undefined; caPem: string }>;

/** How long a connection attempt waits for a machine that does not answer, milliseconds. */
const DIAL_TIMEOUT = 10_000;

/** Replaced at every request by whom the credential proves. */
const NOBODY: UserInfo = { name: 'system:anonymous', groups: ['system:unauthenticated'] };

function dialledBackend(config: RestConfig, locate: Locate): ApiBackend {
  const peerCertificate = config.certPem ? new X509Certificate(config.certPem) : undefined;
  const host = config.server.replace(/^https:\/\//, '').split('/')[0] ?? '';

  const connect = async (): Promise<{ backend: ApiBackend; user: UserInfo }> => {
    const { entry, caPem } = await locate(config.server);
    if (!entry) throw new ConnectionError(`dial tcp ${host}: i/o timeout`);
    if (config.caPem !== undefined && !config.caPem.includes(caPem.trim())) {
      throw new ConnectionError(
        'tls: failed to verify certificate: x509: certificate signed by unknown authority',
      );
    }
    if (!peerCertificate && config.token === undefined)
      return { backend: entry.server.backend, user: NOBODY };
    const user = await entry.server.authenticate({
      ...(peerCertificate ? { peerCertificate } : {}),
      ...(config.token === undefined ? {} : { bearerToken: config.token }),
    });
    if (!user) throw unauthorized();
    return { backend: entry.server.backend, user };
  };

  return {
    async request(request) {
      const { backend, user } = await connect();
      return backend.request({ ...request, user });
    },
    watch(request, onEvent, onEnd) {
      let stopped = false;
      let running: { stop(): void } | undefined;
      connect().then(
        ({ backend, user }) => {
          if (!stopped) running = backend.watch({ ...request, user }, onEvent, onEnd);
        },
        (error: unknown) => {
          if (!stopped) onEnd(error);
        },
      );
      return {
        stop() {
          stopped = true;
          running?.stop();
        },
      };
    },
    async raw(_user, path) {
      const { backend, user } = await connect();
      return backend.raw(user, path);
    },
  };
}
