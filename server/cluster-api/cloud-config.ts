import { stringify } from 'yaml';
import type { ClusterCertificates } from './cluster-secrets.ts';
import type { BootstrapFile, KubeadmConfigSpec } from './kubeadm-resources.ts';

/** How a machine becomes a node: the files of cloud-init's `write_files`, and kubeadm's command line. */
export interface Bootstrap {
  spec: KubeadmConfigSpec;
  /** `spec.files` with their contents. */
  files: readonly BootstrapFile[];
  /** Certificates to put under /etc/kubernetes/pki; none on workers. */
  certificates?: ClusterCertificates;
  /** Where kubeadm's configuration goes, and what it is. */
  configPath: string;
  configuration: string;
  command: 'init' | 'join';
}

const HEADER = '## template: jinja\n#cloud-config\n\n';
const PKI = '/etc/kubernetes/pki';
const SENTINEL_COMMAND = 'echo success > /run/cluster-api/bootstrap-success.complete';

interface WrittenFile {
  path: string;
  owner?: string;
  permissions?: string;
  encoding?: string;
  append?: boolean;
  content: string;
}

function pkiFiles(certificates: ClusterCertificates): WrittenFile[] {
  const pair = (
    crt: string,
    key: string,
    { certPem, keyPem }: { certPem: string; keyPem: string },
  ): WrittenFile[] => [
    { path: `${PKI}/${crt}`, owner: 'root:root', permissions: '0640', content: certPem },
    { path: `${PKI}/${key}`, owner: 'root:root', permissions: '0600', content: keyPem },
  ];
  return [
    ...pair('ca.crt', 'ca.key', certificates.ca),
    ...pair('etcd/ca.crt', 'etcd/ca.key', certificates.etcd),
    ...pair('front-proxy-ca.crt', 'front-proxy-ca.key', certificates.proxy),
    ...pair('sa.pub', 'sa.key', certificates.sa),
  ];
}

function ownFile(file: BootstrapFile): WrittenFile {
  return {
    path: file.path,
    ...(file.encoding ? { encoding: file.encoding } : {}),
    ...(file.owner ? { owner: file.owner } : {}),
    ...(file.permissions ? { permissions: file.permissions } : {}),
    ...(file.append ? { append: true } : {}),
    content: file.content ?? '',
  };
}

function users(spec: KubeadmConfigSpec): object {
  if (!spec.users?.length) return {};
  const list = spec.users.map(({ name, gecos, groups, shell, sudo, sshAuthorizedKeys, lockPassword }) => ({
    name,
    ...(gecos ? { gecos } : {}),
    ...(groups ? { groups } : {}),
    ...(shell ? { shell } : {}),
    ...(sudo ? { sudo } : {}),
    ...(lockPassword === undefined ? {} : { lock_passwd: lockPassword }),
    ...(sshAuthorizedKeys?.length ? { ssh_authorized_keys: sshAuthorizedKeys } : {}),
  }));
  return { users: list };
}

/** Renders user data. Models bootstrap/kubeadm/pkg/cloudinit (control plane init and join, node join). */
export function renderCloudConfig(bootstrap: Bootstrap): string {
  const { spec } = bootstrap;
  const verbosity = spec.verbosity === undefined ? '' : ` --v ${spec.verbosity}`;
  const config = {
    write_files: [
      ...(bootstrap.certificates ? pkiFiles(bootstrap.certificates) : []),
      ...bootstrap.files.map(ownFile),
      {
        path: bootstrap.configPath,
        owner: 'root:root',
        permissions: '0640',
        content: `---\n${bootstrap.configuration}`,
      },
      {
        path: '/run/cluster-api/placeholder',
        owner: 'root:root',
        permissions: '0640',
        content: 'Makes the directory /run/cluster-api.',
      },
    ],
    ...(spec.bootCommands?.length ? { bootcmd: spec.bootCommands } : {}),
    runcmd: [
      ...(spec.preKubeadmCommands ?? []),
      `kubeadm ${bootstrap.command} --config ${bootstrap.configPath}${verbosity} && ${SENTINEL_COMMAND}`,
      ...(spec.postKubeadmCommands ?? []),
    ],
    ...(spec.ntp
      ? {
          ntp: {
            enabled: spec.ntp.enabled ?? true,
            ...(spec.ntp.servers ? { servers: spec.ntp.servers } : {}),
          },
        }
      : {}),
    ...users(spec),
    ...(spec.mounts?.length ? { mounts: spec.mounts } : {}),
  };
  return `${HEADER}${stringify(config, { lineWidth: 0, aliasDuplicateObjects: false })}`;
}

const CLOUD_CONFIG = /^#cloud-config\b/m;
const USERS = /^users:[ \t]*\n/m;

/**
 * The user data with the user `capk` and its key, through whom the provider looks into the machine. What is not a
 * cloud-config stays as it is. Models addCapkUserToCloudInitConfig.
 */
export function withCapkUser(userData: string, publicKey: string): string {
  if (!CLOUD_CONFIG.test(userData)) return userData;
  const user = [
    '  - name: capk',
    '    gecos: CAPK User',
    '    sudo: ALL=(ALL) NOPASSWD:ALL',
    '    groups: users, admin',
    '    ssh_authorized_keys:',
    `      - ${publicKey}`,
    '',
  ].join('\n');
  // The text was rendered by `renderCloudConfig`, or by another bootstrap provider in block style.
  if (USERS.test(userData)) return userData.replace(USERS, (match) => `${match}${user}`);
  return `${userData}${userData.endsWith('\n') ? '' : '\n'}users:\n${user}`;
}
