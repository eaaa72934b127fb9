import { errorMessage, OperationalError } from '#server/base';
import { type Client, parseKubeconfig, type RestConfig } from '#server/client';
import { inClusterConfig, type Process, readText } from '#server/node';
import type { Klog } from '../klog.ts';
import { userAgent } from './identity.ts';

/** Makes clients of one cluster, told apart by the component in their User-Agent. */
export type DialCluster = (component?: string) => Client;

type Dialling = Pick<Process, 'dialer' | 'env' | 'files' | 'clock'>;

/** Milliseconds a mounted token is used before the file is looked at again. */
const TOKEN_AGE = 60_000;

/** The cluster the process runs in. Throws OperationalError outside one. */
export function dialInCluster(process: Dialling): DialCluster {
  inClusterConfig(process);
  return (component) => renewingClient(process, userAgent(component));
}

/** A cluster by its configuration. */
export function dialConfig({ dialer }: Dialling, config: RestConfig): DialCluster {
  return (component) => dialer.dial(config, { userAgent: userAgent(component) });
}

/**
 * The cluster to serve: `--kubeconfig`, its server replaced by `--master`; without either the one the process runs in.
 * Throws OperationalError when there is none, or no readable one.
 * Models client-go clientcmd.BuildConfigFromFlags.
 */
export function dialServedCluster(
  process: Dialling,
  { kubeconfig, master }: { kubeconfig: string; master: string },
  log: Klog,
): DialCluster {
  if (kubeconfig === '' && master === '') {
    const text =
      'Neither --kubeconfig nor --master was specified.  Using the inClusterConfig.  This might not work.';
    log.warning('client_config.go:667', text);
    try {
      return dialInCluster(process);
    } catch (error) {
      const why = errorMessage(error);
      log.warning(
        'client_config.go:672',
        `error creating inClusterConfig, falling back to default config: ${why}`,
      );
      throw new OperationalError(
        'invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable',
      );
    }
  }
  if (kubeconfig === '') return dialConfig(process, { server: master });
  const text = readText(process.files, kubeconfig);
  if (text === undefined) throw new OperationalError(`stat ${kubeconfig}: no such file or directory`);
  const config = readKubeconfig(kubeconfig, text);
  return dialConfig(process, master === '' ? config : { ...config, server: master });
}

function readKubeconfig(path: string, text: string): RestConfig {
  try {
    return parseKubeconfig(text);
  } catch (error) {
    throw new OperationalError(`error loading config file "${path}": ${errorMessage(error)}`);
  }
}

/** A client that follows the mounted token: the kubelet replaces it long before it runs out. */
function renewingClient(process: Dialling, agent: string): Client {
  const dial = (config: RestConfig): Client => process.dialer.dial(config, { userAgent: agent });
  let config = inClusterConfig(process);
  let client = dial(config);
  let readAt = process.clock.now();
  const current = (): Client => {
    const now = process.clock.now();
    if (now - readAt < TOKEN_AGE) return client;
    readAt = now;
    const next = inClusterConfig(process);
    if (next.token !== config.token) {
      config = next;
      client = dial(config);
    }
    return client;
  };
  return {
    get: (...call) => current().get(...call),
    list: (...call) => current().list(...call),
    create: (...call) => current().create(...call),
    update: (...call) => current().update(...call),
    patch: (...call) => current().patch(...call),
    delete: (...call) => current().delete(...call),
    deleteCollection: (...call) => current().deleteCollection(...call),
    createSubresource: (...call) => current().createSubresource(...call),
    watch: (...call) => current().watch(...call),
    raw: (path) => current().raw(path),
  };
}
