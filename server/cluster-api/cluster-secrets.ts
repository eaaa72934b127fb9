import { X509Certificate } from 'node:crypto';
import type { Clock } from '#server/base';
import { type Client, formatKubeconfig, parseKubeconfig } from '#server/client';
import {
  controllerReference,
  isAlreadyExists,
  type KubeObject,
  type OwnerReference,
  type Secret,
  secrets,
} from '#server/kube';
import { type Authority, createAuthority, createKeyPair, issueCertificate } from '#server/pki';
import { find } from './changes.ts';
import type { Cluster } from './core-resources.ts';
import { CLUSTER_NAME_LABEL, CLUSTER_SECRET_TYPE, MANAGER } from './vocabulary.ts';

/** What each Secret of certificates is for, by the end of its name. */
export type Purpose = 'ca' | 'etcd' | 'proxy' | 'sa' | 'kubeconfig';

/** Certificate and key of each authority; for `sa`, public and private key. */
export type ClusterCertificates = Record<'ca' | 'etcd' | 'proxy' | 'sa', Authority>;

/** Where the API server of a cluster is reached, when that is not its controlPlaneEndpoint. */
export type KubeconfigServer = (cluster: { namespace: string; name: string }) => {
  server: string;
  caPem: string;
};

/** A Secret younger than this holds a certificate that needs no rotation yet, milliseconds. */
const YOUNG = 180 * 24 * 60 * 60 * 1000;

interface Context {
  client: Client;
  clock: Clock;
}

export function encode(text: string): string {
  return Buffer.from(text, 'utf8').toString('base64');
}

export function decode(base64: string | undefined): string {
  return Buffer.from(base64 ?? '', 'base64').toString('utf8');
}

/** A Secret as all of Cluster API's are: its type, the cluster's label, an owner. */
export function clusterSecret(
  cluster: Cluster,
  name: string,
  data: Record<string, string>,
  owner: OwnerReference,
): Secret {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name,
      ...(cluster.metadata.namespace ? { namespace: cluster.metadata.namespace } : {}),
      labels: { [CLUSTER_NAME_LABEL]: cluster.metadata.name },
      ownerReferences: [owner],
    },
    type: CLUSTER_SECRET_TYPE,
    data,
  };
}

/** Keys that sign service account tokens: the public one stands where others have a certificate. */
function serviceAccountKeys(): Authority {
  const { publicKeyPem, privateKeyPem } = createKeyPair();
  return { certPem: publicKeyPem, keyPem: privateKeyPem };
}

/** Is more than half of a client certificate's year used? */
function needsRotation(certPem: string, now: number): boolean {
  return Date.parse(new X509Certificate(certPem).validTo) - now < YOUNG;
}

async function findSecret(client: Client, cluster: Cluster, purpose: Purpose): Promise<Secret | undefined> {
  return find(client, secrets, cluster.metadata.namespace, `${cluster.metadata.name}-${purpose}`);
}

function keyPairOf(secret: Secret): Authority {
  return { certPem: decode(secret.data?.['tls.crt']), keyPem: decode(secret.data?.['tls.key']) };
}

/** The certificates of a cluster, or undefined when one of them is missing. */
export async function lookUpCertificates(
  client: Client,
  cluster: Cluster,
): Promise<ClusterCertificates | undefined> {
  const [ca, etcd, proxy, sa] = await Promise.all(
    (['ca', 'etcd', 'proxy', 'sa'] as const).map((purpose) => findSecret(client, cluster, purpose)),
  );
  if (!ca || !etcd || !proxy || !sa) return undefined;
  return { ca: keyPairOf(ca), etcd: keyPairOf(etcd), proxy: keyPairOf(proxy), sa: keyPairOf(sa) };
}

/** Creates the Secret unless somebody was faster; returns what is there. */
async function ensureSecret(
  client: Client,
  cluster: Cluster,
  purpose: Purpose,
  make: () => Promise<Secret>,
): Promise<Secret> {
  const present = await findSecret(client, cluster, purpose);
  if (present) return present;
  try {
    return await client.create(secrets, await make(), MANAGER);
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    return client.get(secrets, {
      namespace: cluster.metadata.namespace,
      name: `${cluster.metadata.name}-${purpose}`,
    });
  }
}

/**
 * Makes the authorities and keys of a cluster that are not there yet: `<cluster>-ca`, `-etcd`, `-proxy`, `-sa`.
 * `owner` is the control plane. Models reconcileClusterCertificates.
 */
export async function ensureCertificates(
  { client, clock }: Context,
  cluster: Cluster,
  owner: KubeObject,
): Promise<ClusterCertificates> {
  const make = async (purpose: keyof ClusterCertificates): Promise<Authority> => {
    const secret = await ensureSecret(client, cluster, purpose, async () => {
      const pair =
        purpose === 'sa'
          ? serviceAccountKeys()
          : await createAuthority({ commonName: 'kubernetes', now: clock.now() });
      const data = { 'tls.crt': encode(pair.certPem), 'tls.key': encode(pair.keyPem) };
      return clusterSecret(cluster, `${cluster.metadata.name}-${purpose}`, data, controllerReference(owner));
    });
    return keyPairOf(secret);
  };
  const [ca, etcd, proxy, sa] = await Promise.all([make('ca'), make('etcd'), make('proxy'), make('sa')]);
  return { ca, etcd, proxy, sa };
}

/** What a cluster's kubeconfig is made of. */
export interface KubeconfigWish {
  cluster: Cluster;
  /** The control plane. */
  owner: KubeObject;
  ca: Authority;
  kubeconfigServer: KubeconfigServer | undefined;
  /** UID of a Secret → resourceVersion that was found right: what has not changed is not read again. */
  checked: Map<string, string>;
}

/**
 * Makes `<cluster>-kubeconfig`; a Secret of ours that points elsewhere than it should (the lab's listener moved) or whose
 * certificate has used half of its year is written anew. Returns whether one was rewritten: clients made from it are
 * of no use then. Models sigs.k8s.io/cluster-api/util/kubeconfig, except that `kubeconfigServer` may name another server
 * than the endpoint.
 */
export async function ensureKubeconfig(context: Context, wish: KubeconfigWish): Promise<boolean> {
  const { client, clock } = context;
  const { cluster, owner, ca, checked } = wish;
  const name = cluster.metadata.name;
  const { host = '', port = 6443 } = cluster.spec.controlPlaneEndpoint ?? {};
  const place = { namespace: cluster.metadata.namespace ?? '', name };
  const { server, caPem } = wish.kubeconfigServer?.(place) ?? {
    server: `https://${host}:${port}`,
    caPem: ca.certPem,
  };
  const issue = (): Promise<Authority> =>
    issueCertificate({
      authority: ca,
      commonName: 'kubernetes-admin',
      organizations: ['system:masters'],
      usages: ['client'],
      now: clock.now(),
    });
  const value = (user: Authority): string =>
    encode(
      formatKubeconfig({
        cluster: { name, server, caPem },
        user: { name: `${name}-admin`, ...user },
        context: { name: `${name}-admin@${name}` },
      }),
    );
  const secret = await ensureSecret(client, cluster, 'kubeconfig', async () =>
    clusterSecret(cluster, `${name}-kubeconfig`, { value: value(await issue()) }, controllerReference(owner)),
  );
  const { uid = '', resourceVersion = '' } = secret.metadata;
  const young = clock.now() - Date.parse(secret.metadata.creationTimestamp ?? '') < YOUNG;
  const foreign = secret.metadata.ownerReferences?.[0]?.uid !== owner.metadata.uid;
  if (foreign || (young && checked.get(uid) === resourceVersion)) return false;
  const config = parseKubeconfig(decode(secret.data?.['value']));
  const { certPem, keyPem } = config;
  const stale = !certPem || !keyPem || (!young && needsRotation(certPem, clock.now()));
  if (!stale && config.server === server && (config.caPem ?? '').trim() === caPem.trim()) {
    checked.set(uid, resourceVersion);
    return false;
  }
  const user = stale ? await issue() : { certPem, keyPem };
  const ref = { namespace: secret.metadata.namespace, name: secret.metadata.name };
  await client.patch(secrets, ref, { type: 'merge', body: { data: { value: value(user) } } }, MANAGER);
  return true;
}
