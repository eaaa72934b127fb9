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

/**
 * Makes `<cluster>-kubeconfig`, and its client certificate anew once half of its year is used. Models
 * sigs.k8s.io/cluster-api/util/kubeconfig, except that `kubeconfigServer` may name another server than the endpoint.
 */
export async function ensureKubeconfig(
  context: Context,
  cluster: Cluster,
  owner: KubeObject,
  ca: Authority,
  kubeconfigServer: KubeconfigServer | undefined,
): Promise<void> {
  const { client, clock } = context;
  const name = cluster.metadata.name;
  const endpoint = cluster.spec.controlPlaneEndpoint;
  const { server, caPem } = kubeconfigServer?.({ namespace: cluster.metadata.namespace ?? '', name }) ?? {
    server: `https://${endpoint?.host ?? ''}:${endpoint?.port ?? 6443}`,
    caPem: ca.certPem,
  };
  const text = async (): Promise<string> => {
    const user = await issueCertificate({
      authority: ca,
      commonName: 'kubernetes-admin',
      organizations: ['system:masters'],
      usages: ['client'],
      now: clock.now(),
    });
    return formatKubeconfig({
      cluster: { name, server, caPem },
      user: { name: `${name}-admin`, ...user },
      context: { name: `${name}-admin@${name}` },
    });
  };
  const secret = await ensureSecret(client, cluster, 'kubeconfig', async () =>
    clusterSecret(cluster, `${name}-kubeconfig`, { value: encode(await text()) }, controllerReference(owner)),
  );
  if (
    clock.now() - Date.parse(secret.metadata.creationTimestamp ?? '') < YOUNG ||
    secret.metadata.ownerReferences?.[0]?.uid !== owner.metadata.uid
  )
    return;
  const { certPem } = parseKubeconfig(decode(secret.data?.['value']));
  if (!certPem || !needsRotation(certPem, clock.now())) return;
  await client.patch(
    secrets,
    { namespace: secret.metadata.namespace, name: secret.metadata.name },
    { type: 'merge', body: { data: { value: encode(await text()) } } },
    MANAGER,
  );
}
