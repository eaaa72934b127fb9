import { stringify } from 'yaml';
import type { FileSystem } from '#server/node';
import { mergeFlags, type NodeRegistration } from './config.ts';

/** Where `kubeadm` leaves the kubelet's environment: the file a curious student reads. */
export const KUBEADM_FLAGS_FILE = '/var/lib/kubelet/kubeadm-flags.env';
export const KUBELET_CONFIG_FILE = '/var/lib/kubelet/config.yaml';
export const KUBELET_KUBECONFIG = '/etc/kubernetes/kubelet.conf';
export const STATIC_PODS_FOLDER = '/etc/kubernetes/manifests';

/** Writes the kubelet's flags and configuration. Models kubernetes/cmd/kubeadm/app/phases/kubelet. */
export function writeKubeletFiles(
  files: FileSystem,
  options: { registration: NodeRegistration; clusterDns: string; dnsDomain: string },
): void {
  files.mkdir('/var/lib/kubelet', { recursive: true });
  const taints = (options.registration.taints ?? [])
    .map((taint) => `${taint.key}${taint.value ? `=${taint.value}` : ''}:${taint.effect}`)
    .join(',');
  const flags = mergeFlags(
    taints ? { 'register-with-taints': taints } : {},
    options.registration.kubeletExtraArgs,
  );
  files.writeFile(KUBEADM_FLAGS_FILE, `KUBELET_KUBEADM_ARGS="${flags.join(' ')}"\n`);
  files.writeFile(KUBELET_CONFIG_FILE, stringify(kubeletConfiguration(options)), { mode: 0o644 });
  files.mkdir(STATIC_PODS_FOLDER, { recursive: true });
}

/** KubeletConfiguration as kubeadm writes it (and uploads it as ConfigMap kubelet-config). */
export function kubeletConfiguration(options: { clusterDns: string; dnsDomain: string }): object {
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    authentication: {
      anonymous: { enabled: false },
      webhook: { cacheTTL: '0s', enabled: true },
      x509: { clientCAFile: '/etc/kubernetes/pki/ca.crt' },
    },
    authorization: { mode: 'Webhook', webhook: { cacheAuthorizedTTL: '0s', cacheUnauthorizedTTL: '0s' } },
    cgroupDriver: 'systemd',
    clusterDNS: [options.clusterDns],
    clusterDomain: options.dnsDomain,
    containerRuntimeEndpoint: 'unix:///var/run/containerd/containerd.sock',
    healthzBindAddress: '127.0.0.1',
    healthzPort: 10248,
    kind: 'KubeletConfiguration',
    rotateCertificates: true,
    staticPodPath: STATIC_PODS_FOLDER,
  };
}

/** The flags of KUBELET_KUBEADM_ARGS in kubeadm-flags.env, as the systemd unit passes them; empty when there is no file. */
export function readKubeletFlags(files: FileSystem): string[] {
  if (!files.exists(KUBEADM_FLAGS_FILE)) return [];
  const text = Buffer.from(files.readFile(KUBEADM_FLAGS_FILE)).toString();
  const value = /^KUBELET_KUBEADM_ARGS="?([^"\n]*)"?/m.exec(text)?.[1] ?? '';
  return value.split(/\s+/).filter(Boolean);
}

/** The file's text, or undefined. */
export function readTextFile(files: FileSystem, path: string): string | undefined {
  return files.exists(path) ? Buffer.from(files.readFile(path)).toString() : undefined;
}

/** The n-th address of a CIDR (`10.96.0.0/12`, 10 → `10.96.0.10`). IPv4. */
export function addressOf(cidr: string, index: number): string {
  const base =
    (cidr.split('/')[0] ?? '').split('.').reduce((sum, octet) => sum * 256 + Number(octet), 0) + index;
  return [24, 16, 8, 0].map((shift) => Math.floor(base / 2 ** shift) % 256).join('.');
}
