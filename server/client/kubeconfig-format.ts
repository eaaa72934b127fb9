import { stringify } from 'yaml';

export interface KubeconfigParts {
  cluster: { name: string; server: string; caPem?: string };
  /** `name`: default the part of the context's name before `@`, as kubeadm and Cluster API name theirs. */
  user: { name?: string; certPem?: string; keyPem?: string; token?: string };
  context: { name: string; namespace?: string };
}

function base64(pem: string): string {
  return Buffer.from(pem, 'utf8').toString('base64');
}

/**
 * A kubeconfig of one context, as YAML in the order and layout clientcmd writes it.
 * Models k8s.io/client-go/tools/clientcmd (Write).
 */
export function formatKubeconfig({ cluster, user, context }: KubeconfigParts): string {
  const userName = user.name ?? context.name.split('@')[0] ?? context.name;
  const config = {
    apiVersion: 'v1',
    clusters: [
      {
        cluster: {
          ...(cluster.caPem ? { 'certificate-authority-data': base64(cluster.caPem) } : {}),
          server: cluster.server,
        },
        name: cluster.name,
      },
    ],
    contexts: [
      {
        context: {
          cluster: cluster.name,
          ...(context.namespace ? { namespace: context.namespace } : {}),
          user: userName,
        },
        name: context.name,
      },
    ],
    'current-context': context.name,
    kind: 'Config',
    users: [
      {
        name: userName,
        user: {
          ...(user.certPem ? { 'client-certificate-data': base64(user.certPem) } : {}),
          ...(user.keyPem ? { 'client-key-data': base64(user.keyPem) } : {}),
          ...(user.token ? { token: user.token } : {}),
        },
      },
    ],
  };
  return stringify(config, { lineWidth: 0, indentSeq: false });
}
