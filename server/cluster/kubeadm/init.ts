import { stringify } from 'yaml';
import { type Client, ConnectionError } from '#server/client';
import {
  clusterRoleBindings,
  type KubeObject,
  type Node,
  nodes,
  type UnstructuredObject,
} from '#server/kube';
import type { FileSystem } from '#server/node';
import { publicKeyFromPrivate } from '#server/pki';
import { applyObjects } from '../apply.ts';
import {
  type ClusterConfiguration,
  type InitConfiguration,
  KubeadmConfigError,
  type NodeRegistration,
  parseKubeadmConfig,
} from './config.ts';
import { coreDnsObjects } from './core-dns.ts';
import { kubeconfigFiles } from './kubeconfigs.ts';
import { controlPlaneManifests } from './manifests.ts';
import {
  addressOf,
  kubeletConfiguration,
  readTextFile,
  STATIC_PODS_FOLDER,
  writeKubeletFiles,
} from './node-files.ts';
import { whileNobodyAnswers } from './patience.ts';

/** What kubeadm needs of the machine it runs on. */
export interface KubeadmMachine {
  readonly files: FileSystem;
  readonly hostname: string;
  readonly ip: string;
  /** Wall-clock, milliseconds. */
  now(): number;
  /** Rejects when the machine is switched off meanwhile. */
  sleep(milliseconds: number): Promise<void>;
  /** `systemctl start kubelet`: resolves once its loops run. Harmless when it runs already. */
  startKubelet(): Promise<void>;
  /** A client for a kubeconfig file of the machine. */
  clientFor(kubeconfigPath: string): Client;
  /** A client with a bootstrap token; without one it is nobody in particular. */
  clientFrom(config: { server: string; token?: string; caPem?: string }): Client;
}

const PKI = '/etc/kubernetes/pki';
const FIELD_MANAGER = { fieldManager: 'kubeadm' };
const CONTROL_PLANE_TAINT = { key: 'node-role.kubernetes.io/control-plane', effect: 'NoSchedule' };

/**
 * `kubeadm init --config <path>`. Every phase can be repeated: after a power cut it is simply run again.
 * Throws KubeadmConfigError; StatusError or ConnectionError when the API server cannot be set up.
 * Models kubernetes/cmd/kubeadm/app/cmd/phases/init.
 */
export async function kubeadmInit(
  machine: KubeadmMachine,
  configPath: string,
  print: (text: string) => void,
): Promise<void> {
  const text = readTextFile(machine.files, configPath);
  if (text === undefined)
    throw new KubeadmConfigError(`unable to read config from "${configPath}": no such file or directory`);
  const { cluster = undefined, init } = parseKubeadmConfig(text);
  if (!cluster || !init)
    throw new KubeadmConfigError(
      'no InitConfiguration or ClusterConfiguration kind was found in the YAML file',
    );
  const registration = withDefaults(init, machine.hostname);
  const ip = init.localAPIEndpoint.advertiseAddress ?? machine.ip;
  const server = `https://${ip}:${init.localAPIEndpoint.bindPort}`;
  const clusterDns = addressOf(cluster.networking.serviceSubnet, 10);
  print(`[init] Using Kubernetes version: ${cluster.kubernetesVersion}\n`);

  const authority = readAuthority(machine.files);
  if (!machine.files.exists('/etc/kubernetes/kubelet.conf')) {
    print('[kubeconfig] Using kubeconfig folder "/etc/kubernetes"\n');
    const made = await kubeconfigFiles({
      authority,
      clusterName: cluster.clusterName,
      server,
      nodeName: registration.name,
      now: machine.now(),
    });
    for (const [path, content] of Object.entries(made))
      machine.files.writeFile(path, content, { mode: 0o600 });
  }
  writeKubeletFiles(machine.files, { registration, clusterDns, dnsDomain: cluster.networking.dnsDomain });
  const manifests = controlPlaneManifests(cluster, {
    name: registration.name,
    ip,
    bindPort: init.localAPIEndpoint.bindPort,
  });
  for (const [file, content] of Object.entries(manifests)) {
    machine.files.writeFile(`${STATIC_PODS_FOLDER}/${file}`, content, { mode: 0o600 });
  }
  print('[kubelet-start] Starting the kubelet\n');
  await machine.startKubelet();

  print('[wait-control-plane] Waiting for a healthy kube-apiserver\n');
  const superAdmin = machine.clientFor('/etc/kubernetes/super-admin.conf');
  const admin = machine.clientFor('/etc/kubernetes/admin.conf');
  const uploads = [
    ...uploadedConfiguration(cluster, text, clusterDns),
    ...bootstrapTokenRbac(),
    ...clusterInfo(cluster, authority.certPem, server),
  ];
  const skipsDns = init.skipPhases.includes('addon') || init.skipPhases.includes('addon/coredns');
  const dns = skipsDns ? [] : coreDnsObjects({ clusterDns, dnsDomain: cluster.networking.dnsDomain });
  await whileNobodyAnswers(machine, async () => {
    await applyObjects(superAdmin, [clusterAdminsBinding()], { ...FIELD_MANAGER, onlyCreate: true });
    await Promise.all([
      applyObjects(admin, uploads, FIELD_MANAGER),
      applyObjects(admin, dns, { ...FIELD_MANAGER, onlyCreate: true }),
      markControlPlane(admin, registration),
    ]);
  });
  print('\nYour Kubernetes control-plane has initialized successfully!\n');
}

function withDefaults(init: InitConfiguration, hostname: string): NodeRegistration & { name: string } {
  const { nodeRegistration } = init;
  return {
    ...nodeRegistration,
    name: nodeName(nodeRegistration, hostname),
    taints: nodeRegistration.taints ?? [CONTROL_PLANE_TAINT],
  };
}

/** The node's name: what is configured (a cloud-init template stands for the host name), or the host name. */
export function nodeName(registration: NodeRegistration, hostname: string): string {
  const name = registration.name?.trim();
  return !name || name.includes('{{') ? hostname : name;
}

function readAuthority(files: FileSystem): { certPem: string; keyPem: string } {
  const certPem = readTextFile(files, `${PKI}/ca.crt`);
  const keyPem = readTextFile(files, `${PKI}/ca.key`);
  if (!certPem || !keyPem)
    throw new KubeadmConfigError(
      `${PKI}/ca.crt and ca.key must be there before this machine can start a control plane`,
    );
  const serviceAccountKey = readTextFile(files, `${PKI}/sa.key`);
  if (serviceAccountKey && !files.exists(`${PKI}/sa.pub`))
    files.writeFile(`${PKI}/sa.pub`, publicKeyFromPrivate(serviceAccountKey));
  return { certPem, keyPem };
}

function clusterAdminsBinding(): UnstructuredObject {
  return {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: 'kubeadm:cluster-admins' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'kubeadm:cluster-admins' }],
  };
}

function uploadedConfiguration(
  cluster: ClusterConfiguration,
  text: string,
  clusterDns: string,
): UnstructuredObject[] {
  const clusterConfiguration =
    text.split(/^---$/m).find((document) => /^kind: ClusterConfiguration$/m.test(document)) ?? '';
  return [
    configMap('kube-system', 'kubeadm-config', { ClusterConfiguration: clusterConfiguration.trimStart() }),
    configMap('kube-system', 'kubelet-config', {
      kubelet: stringify(kubeletConfiguration({ clusterDns, dnsDomain: cluster.networking.dnsDomain })),
    }),
    ...reader('kube-system', 'kubeadm:nodes-kubeadm-config', 'kubeadm-config'),
    ...reader('kube-system', 'kubeadm:kubelet-config', 'kubelet-config'),
  ];
}

function configMap(namespace: string, name: string, data: Record<string, string>): UnstructuredObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace }, data };
}

const JOINERS = [
  {
    apiGroup: 'rbac.authorization.k8s.io',
    kind: 'Group',
    name: 'system:bootstrappers:kubeadm:default-node-token',
  },
  { apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'system:nodes' },
];

/** A Role that reads one ConfigMap, for machines that join. */
function reader(namespace: string, name: string, configMapName: string): UnstructuredObject[] {
  return [
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'Role',
      metadata: { name, namespace },
      rules: [{ apiGroups: [''], resources: ['configmaps'], resourceNames: [configMapName], verbs: ['get'] }],
    },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata: { name, namespace },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name },
      subjects: JOINERS,
    },
  ];
}

/** Models phases/bootstraptoken/node: who holds a bootstrap token may ask for a client certificate and gets it. */
function bootstrapTokenRbac(): UnstructuredObject[] {
  const bootstrappers = JOINERS.slice(0, 1);
  const binding = (name: string, clusterRole: string, subjects: readonly object[]): UnstructuredObject => ({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: clusterRoleBindings.kind,
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: clusterRole },
    subjects,
  });
  return [
    binding('kubeadm:kubelet-bootstrap', 'system:node-bootstrapper', bootstrappers),
    binding(
      'kubeadm:node-autoapprove-bootstrap',
      'system:certificates.k8s.io:certificatesigningrequests:nodeclient',
      bootstrappers,
    ),
    binding(
      'kubeadm:node-autoapprove-certificate-rotation',
      'system:certificates.k8s.io:certificatesigningrequests:selfnodeclient',
      JOINERS.slice(1),
    ),
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'kubeadm:get-nodes' },
      rules: [{ apiGroups: [''], resources: ['nodes'], verbs: ['get'] }],
    },
    binding('kubeadm:get-nodes', 'kubeadm:get-nodes', bootstrappers),
  ];
}

/** Models phases/bootstraptoken/clusterinfo: what a machine that joins may read before it trusts anything. */
function clusterInfo(cluster: ClusterConfiguration, caPem: string, server: string): KubeObject[] {
  const kubeconfig = stringify({
    apiVersion: 'v1',
    clusters: [
      { cluster: { 'certificate-authority-data': Buffer.from(caPem).toString('base64'), server }, name: '' },
    ],
    contexts: null,
    'current-context': '',
    kind: 'Config',
    preferences: {},
    users: null,
  });
  const role = 'kubeadm:bootstrap-signer-clusterinfo';
  return [
    configMap('kube-public', 'cluster-info', { kubeconfig }),
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'Role',
      metadata: { name: role, namespace: 'kube-public' },
      rules: [
        { apiGroups: [''], resources: ['configmaps'], resourceNames: ['cluster-info'], verbs: ['get'] },
      ],
    } as UnstructuredObject,
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata: { name: role, namespace: 'kube-public' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: role },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'system:anonymous' }],
    } as UnstructuredObject,
  ];
}

/** Waits for the kubelet's Node, then labels and taints it. Models phases/markcontrolplane. */
async function markControlPlane(
  client: Client,
  registration: NodeRegistration & { name: string },
): Promise<void> {
  const node = await nodeRegistered(client, registration.name);
  const taints = [...(node.spec.taints ?? [])];
  for (const taint of registration.taints ?? []) {
    if (!taints.some((present) => present.key === taint.key && present.effect === taint.effect)) {
      taints.push({ key: taint.key, effect: taint.effect, ...(taint.value ? { value: taint.value } : {}) });
    }
  }
  const body = {
    metadata: {
      labels: {
        'node-role.kubernetes.io/control-plane': '',
        'node.kubernetes.io/exclude-from-external-load-balancers': '',
      },
      annotations: { 'kubeadm.alpha.kubernetes.io/cri-socket': registration.criSocket },
    },
    ...(taints.length > (node.spec.taints ?? []).length ? { spec: { taints } } : {}),
  };
  await client.patch(nodes, { name: registration.name }, { type: 'strategic', body }, FIELD_MANAGER);
}

function nodeRegistered(client: Client, name: string): Promise<Node> {
  return new Promise((resolve, reject) => {
    const watch = client.watch(
      nodes,
      { fieldSelector: `metadata.name=${name}` },
      ({ type, object }) => {
        if (type !== 'ADDED' && type !== 'MODIFIED') return;
        watch.stop();
        resolve(object);
      },
      (error) =>
        reject(
          error ?? new ConnectionError(`the watch for node ${name} ended before the kubelet registered it`),
        ),
    );
  });
}
