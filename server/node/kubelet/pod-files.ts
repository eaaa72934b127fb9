import type { Clock } from '#server/base';
import type { Container, Node, Pod } from '#server/kube';
import type { FileSystem, Image } from '../contract.ts';
import { createMemoryFileSystem } from '../files/memory-files.ts';
import { createLazyFiles, createMountedFiles, type Mount } from '../files/mounted-files.ts';
import { joinPath, normalisePath, parentPath } from '../files/path.ts';
import type { ResolverConfig } from '../network/contract.ts';
import type { KubeletConfig } from './contract.ts';
import type { PodVolumes } from './pod-volumes.ts';

/** What one container may write to its own layer. */
const LAYER_LIMIT = 32 * 1024 * 1024;
export const TERMINATION_LOG = '/dev/termination-log';
/** What a program's file holds: nobody executes it, `ls` and `file` see a binary. */
const BINARY = Buffer.from(
  '\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x03\x00\x3e\x00',
  'latin1',
);
const DIRECTORIES = ['/dev', '/etc', '/home', '/proc', '/root', '/run', '/sys', '/tmp', '/usr', '/var'];
const DEVICES = ['null', 'zero', 'full', 'random', 'urandom', 'tty', 'stdin', 'stdout', 'stderr'];

/** `hostname`, `resolv.conf` and `hosts` of a pod. Models pkg/kubelet/network/dns and managed hosts files. */
export interface PodNames {
  readonly hostname: string;
  readonly resolver: ResolverConfig;
  readonly resolvConf: string;
  readonly hosts: string;
}

export function podNames(options: {
  pod: Pod;
  config: KubeletConfig;
  nodeHostname: string;
  podIPs: readonly string[];
  hostResolver: ResolverConfig;
}): PodNames {
  const { pod, config, podIPs, hostResolver } = options;
  const namespace = pod.metadata.namespace ?? 'default';
  const onHost = pod.spec.hostNetwork === true;
  const hostname = onHost ? options.nodeHostname : (pod.spec.hostname ?? pod.metadata.name).slice(0, 63);
  const clusterSearch = [
    `${namespace}.svc.${config.clusterDomain}`,
    `svc.${config.clusterDomain}`,
    config.clusterDomain,
  ];
  const policy = pod.spec.dnsPolicy ?? 'ClusterFirst';
  const cluster = policy === 'ClusterFirstWithHostNet' || (policy === 'ClusterFirst' && !onHost);
  const base: ResolverConfig =
    policy === 'None'
      ? { nameservers: [], search: [], ndots: 1 }
      : cluster && config.clusterDNS.length > 0
        ? { nameservers: config.clusterDNS, search: clusterSearch, ndots: 5 }
        : { ...hostResolver, hosts: {} };
  const extra = pod.spec.dnsConfig;
  const ndots = extra?.options?.find((option) => option.name === 'ndots')?.value;
  const aliases: Record<string, string> = {};
  for (const alias of pod.spec.hostAliases ?? [])
    for (const name of alias.hostnames ?? []) aliases[name] = alias.ip;
  const own = podIPs[0];
  const resolver: ResolverConfig = {
    nameservers: [...base.nameservers, ...(extra?.nameservers ?? [])],
    search: [...base.search, ...(extra?.searches ?? [])],
    ndots: ndots === undefined ? base.ndots : Number(ndots),
    hosts: { ...(own ? { [hostname]: own } : {}), ...(onHost ? hostResolver.hosts : {}), ...aliases },
  };
  const lines = [
    ...(resolver.search.length > 0 ? [`search ${resolver.search.join(' ')}`] : []),
    ...resolver.nameservers.map((server) => `nameserver ${server}`),
    ...(resolver.ndots !== 1 ? [`options ndots:${resolver.ndots}`] : []),
  ];
  const fqdn = pod.spec.subdomain
    ? `${hostname}.${pod.spec.subdomain}.${namespace}.svc.${config.clusterDomain}\t${hostname}`
    : hostname;
  const hosts = [
    onHost ? '# Kubernetes-managed hosts file (host network).' : '# Kubernetes-managed hosts file.',
    '127.0.0.1\tlocalhost',
    '::1\tlocalhost ip6-localhost ip6-loopback',
    'fe00::0\tip6-localnet',
    'fe00::0\tip6-mcastprefix',
    'fe00::1\tip6-allnodes',
    'fe00::2\tip6-allrouters',
    ...(own ? [`${own}\t${fqdn}`] : []),
    ...(aliasLines(pod).length > 0 ? ['', '# Entries added by HostAliases.', ...aliasLines(pod)] : []),
  ];
  return { hostname, resolver, resolvConf: `${lines.join('\n')}\n`, hosts: `${hosts.join('\n')}\n` };
}

function aliasLines(pod: Pod): string[] {
  return (pod.spec.hostAliases ?? []).map((alias) => `${alias.ip}\t${(alias.hostnames ?? []).join('\t')}`);
}

/** A container's tree: the image with a layer of its own, the pod's names, its volumes. */
export function containerFiles(options: {
  container: Container;
  image: Image;
  /** The main process. */
  argv: readonly string[];
  /** The node's `status.nodeInfo`; undefined before the node is known. */
  machine: MachineFacts | undefined;
  names: PodNames;
  volumes: PodVolumes;
  env: Readonly<Record<string, string>>;
  expand: (text: string) => string;
  clock: Clock;
}): FileSystem {
  const { container, image, names, volumes, clock } = options;
  const root = createLazyFiles(() => {
    const files = imageFiles(image, names, container, clock);
    writeProcFiles(files, options.argv, options.machine);
    return files;
  });
  const mounts: Mount[] = [
    { at: '/', files: root, readOnly: container.securityContext?.readOnlyRootFilesystem === true },
  ];
  if (container.securityContext?.readOnlyRootFilesystem) {
    mounts.push({
      at: TERMINATION_LOG,
      files: createMemoryFileSystem({ '/log': '' }, { clock, limitBytes: 64 * 1024 }),
      source: '/log',
    });
  }
  for (const mount of container.volumeMounts ?? []) {
    const volume = volumes.mount(mount.name);
    if (!volume) continue;
    const below = mount.subPathExpr ? options.expand(mount.subPathExpr) : (mount.subPath ?? '');
    const source = joinPath(volume.source ?? '/', below || '.');
    if (below && !volume.readOnly && !volume.files.exists(source))
      volume.files.mkdir(source, { recursive: true });
    mounts.push({
      at: normalisePath(mount.mountPath),
      files: volume.files,
      source,
      readOnly: (mount.readOnly ?? false) || (volume.readOnly ?? false),
    });
  }
  return createMountedFiles(mounts);
}

type MachineFacts = Pick<
  NonNullable<NonNullable<Node['status']>['nodeInfo']>,
  'kernelVersion' | 'architecture'
>;

/** GOARCH as `uname -m` words it. */
const MACHINES: Readonly<Record<string, string>> = { amd64: 'x86_64', arm64: 'aarch64' };

/** What `ps` and `uname` read: the main process and the machine's kernel. */
function writeProcFiles(files: FileSystem, argv: readonly string[], machine: MachineFacts | undefined): void {
  files.mkdir('/proc/1', { recursive: true });
  files.writeFile('/proc/1/cmdline', argv.map((argument) => `${argument}\0`).join(''));
  files.mkdir('/proc/sys/kernel', { recursive: true });
  files.writeFile('/proc/sys/kernel/osrelease', `${machine?.kernelVersion ?? ''}\n`);
  const architecture = machine?.architecture ?? '';
  files.writeFile('/proc/sys/kernel/arch', `${MACHINES[architecture] ?? architecture}\n`);
}

function imageFiles(image: Image, names: PodNames, container: Container, clock: Clock): FileSystem {
  const files = createMemoryFileSystem(undefined, { clock, limitBytes: LAYER_LIMIT });
  for (const directory of DIRECTORIES) files.mkdir(directory, { recursive: true });
  for (const device of DEVICES) files.writeFile(`/dev/${device}`, '', { mode: 0o666 });
  files.writeFile(TERMINATION_LOG, '');
  for (const path of Object.keys(image.programs)) {
    files.mkdir(parentPath(path), { recursive: true });
    files.writeFile(path, BINARY, { mode: 0o755 });
  }
  for (const [path, content] of Object.entries(image.files ?? {})) {
    files.mkdir(parentPath(path), { recursive: true });
    files.writeFile(path, content);
  }
  files.writeFile('/etc/hostname', `${names.hostname}\n`);
  files.writeFile('/etc/resolv.conf', names.resolvConf);
  files.writeFile('/etc/hosts', names.hosts);
  // A volume needs a directory to be seen at.
  for (const mount of container.volumeMounts ?? []) {
    const at = normalisePath(mount.mountPath);
    if (!files.exists(at)) files.mkdir(at, { recursive: true });
  }
  return files;
}
