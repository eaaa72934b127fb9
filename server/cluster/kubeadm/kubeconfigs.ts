import { formatKubeconfig } from '#server/client';
import { type Authority, issueCertificate } from '#server/pki';

interface Identity {
  file: string;
  user: string;
  commonName: string;
  organizations: string[];
}

/** The kubeconfig files `kubeadm init` writes into /etc/kubernetes, and whom each one proves. */
function identities(nodeName: string): Identity[] {
  return [
    {
      file: 'admin.conf',
      user: 'kubernetes-admin',
      commonName: 'kubernetes-admin',
      organizations: ['kubeadm:cluster-admins'],
    },
    {
      file: 'super-admin.conf',
      user: 'kubernetes-super-admin',
      commonName: 'kubernetes-super-admin',
      organizations: ['system:masters'],
    },
    {
      file: 'kubelet.conf',
      user: `system:node:${nodeName}`,
      commonName: `system:node:${nodeName}`,
      organizations: ['system:nodes'],
    },
    {
      file: 'controller-manager.conf',
      user: 'system:kube-controller-manager',
      commonName: 'system:kube-controller-manager',
      organizations: [],
    },
    {
      file: 'scheduler.conf',
      user: 'system:kube-scheduler',
      commonName: 'system:kube-scheduler',
      organizations: [],
    },
  ];
}

/**
 * Makes the kubeconfig files, by absolute path. Models kubernetes/cmd/kubeadm/app/phases/kubeconfig.
 * `server` is the control-plane endpoint (`https://10.0.1.11:6443`).
 */
export async function kubeconfigFiles(options: {
  authority: Authority;
  clusterName: string;
  server: string;
  nodeName: string;
  now: number;
}): Promise<Record<string, string>> {
  const files = await Promise.all(
    identities(options.nodeName).map(async ({ file, user, commonName, organizations }) => {
      const { certPem, keyPem } = await issueCertificate({
        authority: options.authority,
        commonName,
        organizations,
        usages: ['client'],
        now: options.now,
      });
      const text = formatKubeconfig({
        cluster: { name: options.clusterName, server: options.server, caPem: options.authority.certPem },
        user: { name: user, certPem, keyPem },
        context: { name: `${user}@${options.clusterName}` },
      });
      return [`/etc/kubernetes/${file}`, text] as const;
    }),
  );
  return Object.fromEntries(files);
}
