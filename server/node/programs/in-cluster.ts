import { OperationalError } from '#server/base';
import { type RestConfig } from '#server/client';
import type { Process } from '../contract.ts';
import { readText } from '../files/mounted-files.ts';

const ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';

/**
 * How a program in a pod reaches its own API server. Models client-go rest.InClusterConfig: the KUBERNETES_SERVICE_*
 * variables and the mounted token. Throws OperationalError outside a cluster.
 */
export function inClusterConfig(process: Pick<Process, 'env' | 'files'>): RestConfig {
  const host = process.env.KUBERNETES_SERVICE_HOST;
  const port = process.env.KUBERNETES_SERVICE_PORT;
  if (!host || !port) {
    throw new OperationalError(
      'unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined',
    );
  }
  const token = readText(process.files, `${ACCOUNT}/token`);
  if (token === undefined) throw new OperationalError(`open ${ACCOUNT}/token: no such file or directory`);
  const caPem = readText(process.files, `${ACCOUNT}/ca.crt`);
  const namespace = readText(process.files, `${ACCOUNT}/namespace`);
  return {
    server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
    token,
    ...(caPem === undefined ? {} : { caPem }),
    ...(namespace === undefined ? {} : { namespace }),
  };
}
