import { parse } from 'yaml';
import { z } from 'zod';
import { type Client, ConnectionError, formatKubeconfig } from '#server/client';
import { type CertificateSigningRequest, certificateSigningRequests, configMaps } from '#server/kube';
import { certificateFingerprint, createKeyPair, signRequest } from '#server/pki';
import { type JoinConfiguration, KubeadmConfigError, parseKubeadmConfig } from './config.ts';
import { type KubeadmMachine, nodeName } from './init.ts';
import { KUBELET_KUBECONFIG, readTextFile, writeKubeletFiles } from './node-files.ts';
import { whileNobodyAnswers } from './patience.ts';

/**
 * `kubeadm join --config <path>` for a worker: trusts the cluster by the pin of its CA's key, reads the uploaded
 * configuration, lets the kubelet ask for its certificate with the bootstrap token, starts it.
 * Throws KubeadmConfigError; StatusError when the token is refused. Models kubernetes/cmd/kubeadm/app/cmd/phases/join
 * and, for the certificate, kubernetes/pkg/kubelet/certificate/bootstrap.
 */
export async function kubeadmJoin(
  machine: KubeadmMachine,
  configPath: string,
  print: (text: string) => void,
): Promise<void> {
  const text = readTextFile(machine.files, configPath);
  if (text === undefined)
    throw new KubeadmConfigError(`unable to read config from "${configPath}": no such file or directory`);
  const { join } = parseKubeadmConfig(text);
  if (!join) throw new KubeadmConfigError('no JoinConfiguration kind was found in the YAML file');
  await whileNobodyAnswers(machine, () => joinCluster(machine, join, print));
  await machine.startKubelet();
  print('\nThis node has joined the cluster\n');
}

/** Everything before the kubelet starts; can be repeated. */
async function joinCluster(
  machine: KubeadmMachine,
  join: JoinConfiguration,
  print: (text: string) => void,
): Promise<void> {
  const { token, apiServerEndpoint, caCertHashes, unsafeSkipCAVerification } = join.discovery.bootstrapToken;
  const server = `https://${apiServerEndpoint}`;
  const name = nodeName(join.nodeRegistration, machine.hostname);

  print('[preflight] Reading configuration from the cluster...\n');
  const stranger = machine.clientFrom({ server });
  const info = await stranger.get(configMaps, { namespace: 'kube-public', name: 'cluster-info' });
  const caPem = authorityOf(info.data?.kubeconfig ?? '');
  const pin = `sha256:${certificateFingerprint(caPem)}`;
  if (!unsafeSkipCAVerification && !caCertHashes.includes(pin)) {
    throw new KubeadmConfigError(
      `cluster CA found in cluster-info ConfigMap is invalid: none of the public keys "${pin}" are pinned`,
    );
  }
  machine.files.mkdir('/etc/kubernetes/pki', { recursive: true });
  machine.files.writeFile('/etc/kubernetes/pki/ca.crt', caPem);

  const client = machine.clientFrom({ server, token, caPem });
  const { clusterDNS = [], clusterDomain = 'cluster.local' } = await uploadedKubeletConfig(client);
  writeKubeletFiles(machine.files, {
    registration: { ...join.nodeRegistration, name },
    clusterDns: clusterDNS[0] ?? '10.96.0.10',
    dnsDomain: clusterDomain,
  });
  if (!machine.files.exists(KUBELET_KUBECONFIG)) {
    print('[kubelet-start] Waiting for the kubelet to perform the TLS Bootstrap\n');
    const { certPem, keyPem } = await requestClientCertificate(client, name);
    const user = `system:node:${name}`;
    const kubeconfig = formatKubeconfig({
      cluster: { name: 'default-cluster', server, caPem },
      user: { name: user, certPem, keyPem },
      context: { name: 'default-context' },
    });
    machine.files.writeFile(KUBELET_KUBECONFIG, kubeconfig, { mode: 0o600 });
  }
}

/** The CA of a cluster-info kubeconfig: a file with one nameless cluster and no user. */
function authorityOf(clusterInfo: string): string {
  const parsed = clusterInfoSchema.safeParse(parse(clusterInfo, { maxAliasCount: 0 }));
  const data = parsed.data?.clusters[0]?.cluster['certificate-authority-data'];
  if (!data) throw new KubeadmConfigError('there is no CA in the cluster-info ConfigMap');
  return Buffer.from(data, 'base64').toString();
}

const clusterInfoSchema = z.object({
  clusters: z.array(z.object({ cluster: z.object({ 'certificate-authority-data': z.string() }) })),
});

async function uploadedKubeletConfig(
  client: Client,
): Promise<{ clusterDNS?: string[]; clusterDomain?: string }> {
  const uploaded = await client.get(configMaps, { namespace: 'kube-system', name: 'kubelet-config' });
  return parse(uploaded.data?.kubelet ?? '{}') as { clusterDNS?: string[]; clusterDomain?: string };
}

/** Creates a CertificateSigningRequest and waits until kube-controller-manager has approved and signed it. */
async function requestClientCertificate(
  client: Client,
  name: string,
): Promise<{ certPem: string; keyPem: string }> {
  const keys = createKeyPair();
  const request = await signRequest({
    keys,
    commonName: `system:node:${name}`,
    organizations: ['system:nodes'],
  });
  const created = await client.create(certificateSigningRequests, {
    metadata: { generateName: 'csr-' },
    spec: {
      request: Buffer.from(`${request}\n`).toString('base64'),
      signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
      usages: ['digital signature', 'client auth'],
    },
  });
  const certificate = await issued(client, created);
  return { certPem: Buffer.from(certificate, 'base64').toString(), keyPem: keys.privateKeyPem };
}

function issued(client: Client, request: CertificateSigningRequest): Promise<string> {
  return new Promise((resolve, reject) => {
    const watch = client.watch(
      certificateSigningRequests,
      { fieldSelector: `metadata.name=${request.metadata.name}` },
      ({ type, object }) => {
        const bad = object.status?.conditions?.find(
          (condition) => condition.type === 'Denied' || condition.type === 'Failed',
        );
        if (type === 'DELETED' || bad) {
          watch.stop();
          reject(
            new KubeadmConfigError(
              `certificate signing request ${request.metadata.name} is not approved: ${bad?.message ?? 'deleted'}`,
            ),
          );
        } else if (object.status?.certificate) {
          watch.stop();
          resolve(object.status.certificate);
        }
      },
      (error) =>
        reject(error ?? new ConnectionError('the watch for the certificate ended before it was issued')),
    );
  });
}
