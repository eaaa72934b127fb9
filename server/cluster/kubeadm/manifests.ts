import { stringify } from 'yaml';
import { type ClusterConfiguration, mergeFlags } from './config.ts';

const PKI = '/etc/kubernetes/pki';

/** Images of the control plane, as `kubeadm config images list` names them for v1.36. */
export const CONTROL_PLANE_IMAGES = {
  'kube-apiserver': 'registry.k8s.io/kube-apiserver',
  'kube-controller-manager': 'registry.k8s.io/kube-controller-manager',
  'kube-scheduler': 'registry.k8s.io/kube-scheduler',
  etcd: 'registry.k8s.io/etcd:3.6.6-0',
} as const;

type Component = keyof typeof CONTROL_PLANE_IMAGES;

interface StaticPod {
  component: Component;
  image: string;
  command: string[];
  cpu: string;
  memory?: string;
  mounts: {
    name: string;
    path: string;
    type: 'Directory' | 'DirectoryOrCreate' | 'FileOrCreate';
    writable?: boolean;
  }[];
  annotations?: Record<string, string>;
}

/**
 * The static pod manifests of a control plane, by file name, for /etc/kubernetes/manifests.
 * Models kubernetes/cmd/kubeadm/app/phases/controlplane and phases/etcd.
 */
export function controlPlaneManifests(
  config: ClusterConfiguration,
  node: { name: string; ip: string; bindPort: number },
): Record<string, string> {
  const version = config.kubernetesVersion;
  const pods: StaticPod[] = [
    apiServerPod(config, node, version),
    controllerManagerPod(config, version),
    schedulerPod(config, version),
    etcdPod(node),
  ];
  return Object.fromEntries(
    pods.map((pod) => [
      `${pod.component}.yaml`,
      stringify(manifest(pod), { lineWidth: 0, aliasDuplicateObjects: false }),
    ]),
  );
}

function apiServerPod(
  config: ClusterConfiguration,
  node: { ip: string; bindPort: number },
  version: string,
): StaticPod {
  const flags = mergeFlags(
    {
      'advertise-address': node.ip,
      'allow-privileged': 'true',
      'authorization-mode': 'Node,RBAC',
      'client-ca-file': `${PKI}/ca.crt`,
      'enable-admission-plugins': 'NodeRestriction',
      'enable-bootstrap-token-auth': 'true',
      'etcd-cafile': `${PKI}/etcd/ca.crt`,
      'etcd-certfile': `${PKI}/apiserver-etcd-client.crt`,
      'etcd-keyfile': `${PKI}/apiserver-etcd-client.key`,
      'etcd-servers': 'https://127.0.0.1:2379',
      'kubelet-client-certificate': `${PKI}/apiserver-kubelet-client.crt`,
      'kubelet-client-key': `${PKI}/apiserver-kubelet-client.key`,
      'kubelet-preferred-address-types': 'InternalIP,ExternalIP,Hostname',
      'proxy-client-cert-file': `${PKI}/front-proxy-client.crt`,
      'proxy-client-key-file': `${PKI}/front-proxy-client.key`,
      'requestheader-allowed-names': 'front-proxy-client',
      'requestheader-client-ca-file': `${PKI}/front-proxy-ca.crt`,
      'requestheader-extra-headers-prefix': 'X-Remote-Extra-',
      'requestheader-group-headers': 'X-Remote-Group',
      'requestheader-username-headers': 'X-Remote-User',
      'secure-port': String(node.bindPort),
      'service-account-issuer': `https://kubernetes.default.svc.${config.networking.dnsDomain}`,
      'service-account-key-file': `${PKI}/sa.pub`,
      'service-account-signing-key-file': `${PKI}/sa.key`,
      'service-cluster-ip-range': config.networking.serviceSubnet,
      'tls-cert-file': `${PKI}/apiserver.crt`,
      'tls-private-key-file': `${PKI}/apiserver.key`,
    },
    config.apiServer.extraArgs,
  );
  return {
    component: 'kube-apiserver',
    image: `${CONTROL_PLANE_IMAGES['kube-apiserver']}:${version}`,
    command: ['kube-apiserver', ...flags],
    cpu: '250m',
    annotations: {
      'kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint': `${node.ip}:${node.bindPort}`,
    },
    mounts: [
      { name: 'ca-certs', path: '/etc/ssl/certs', type: 'DirectoryOrCreate' },
      { name: 'k8s-certs', path: PKI, type: 'DirectoryOrCreate' },
    ],
  };
}

function controllerManagerPod(config: ClusterConfiguration, version: string): StaticPod {
  const conf = '/etc/kubernetes/controller-manager.conf';
  const flags = mergeFlags(
    {
      'allocate-node-cidrs': 'true',
      'authentication-kubeconfig': conf,
      'authorization-kubeconfig': conf,
      'bind-address': '127.0.0.1',
      'client-ca-file': `${PKI}/ca.crt`,
      'cluster-cidr': config.networking.podSubnet,
      'cluster-name': config.clusterName,
      'cluster-signing-cert-file': `${PKI}/ca.crt`,
      'cluster-signing-key-file': `${PKI}/ca.key`,
      controllers: '*,bootstrapsigner,tokencleaner',
      kubeconfig: conf,
      'leader-elect': 'true',
      'requestheader-client-ca-file': `${PKI}/front-proxy-ca.crt`,
      'root-ca-file': `${PKI}/ca.crt`,
      'service-account-private-key-file': `${PKI}/sa.key`,
      'service-cluster-ip-range': config.networking.serviceSubnet,
      'use-service-account-credentials': 'true',
    },
    config.controllerManager.extraArgs,
  );
  return {
    component: 'kube-controller-manager',
    image: `${CONTROL_PLANE_IMAGES['kube-controller-manager']}:${version}`,
    command: ['kube-controller-manager', ...flags],
    cpu: '200m',
    mounts: [
      { name: 'ca-certs', path: '/etc/ssl/certs', type: 'DirectoryOrCreate' },
      { name: 'k8s-certs', path: PKI, type: 'DirectoryOrCreate' },
      { name: 'kubeconfig', path: conf, type: 'FileOrCreate' },
    ],
  };
}

function schedulerPod(config: ClusterConfiguration, version: string): StaticPod {
  const conf = '/etc/kubernetes/scheduler.conf';
  const flags = mergeFlags(
    {
      'authentication-kubeconfig': conf,
      'authorization-kubeconfig': conf,
      'bind-address': '127.0.0.1',
      kubeconfig: conf,
      'leader-elect': 'true',
    },
    config.scheduler.extraArgs,
  );
  return {
    component: 'kube-scheduler',
    image: `${CONTROL_PLANE_IMAGES['kube-scheduler']}:${version}`,
    command: ['kube-scheduler', ...flags],
    cpu: '100m',
    mounts: [{ name: 'kubeconfig', path: conf, type: 'FileOrCreate' }],
  };
}

function etcdPod(node: { name: string; ip: string }): StaticPod {
  const flags = mergeFlags(
    {
      'advertise-client-urls': `https://${node.ip}:2379`,
      'cert-file': `${PKI}/etcd/server.crt`,
      'client-cert-auth': 'true',
      'data-dir': '/var/lib/etcd',
      'initial-advertise-peer-urls': `https://${node.ip}:2380`,
      'initial-cluster': `${node.name}=https://${node.ip}:2380`,
      'key-file': `${PKI}/etcd/server.key`,
      'listen-client-urls': `https://127.0.0.1:2379,https://${node.ip}:2379`,
      'listen-metrics-urls': 'http://127.0.0.1:2381',
      'listen-peer-urls': `https://${node.ip}:2380`,
      name: node.name,
      'peer-cert-file': `${PKI}/etcd/peer.crt`,
      'peer-client-cert-auth': 'true',
      'peer-key-file': `${PKI}/etcd/peer.key`,
      'peer-trusted-ca-file': `${PKI}/etcd/ca.crt`,
      'snapshot-count': '10000',
      'trusted-ca-file': `${PKI}/etcd/ca.crt`,
    },
    [],
  );
  return {
    component: 'etcd',
    image: CONTROL_PLANE_IMAGES.etcd,
    command: ['etcd', ...flags],
    cpu: '100m',
    memory: '100Mi',
    annotations: { 'kubeadm.kubernetes.io/etcd.advertise-client-urls': `https://${node.ip}:2379` },
    mounts: [
      { name: 'etcd-certs', path: `${PKI}/etcd`, type: 'DirectoryOrCreate' },
      { name: 'etcd-data', path: '/var/lib/etcd', type: 'DirectoryOrCreate', writable: true },
    ],
  };
}

function manifest(pod: StaticPod): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      ...(pod.annotations ? { annotations: pod.annotations } : {}),
      labels: { component: pod.component, tier: 'control-plane' },
      name: pod.component,
      namespace: 'kube-system',
    },
    spec: {
      containers: [
        {
          command: pod.command,
          image: pod.image,
          imagePullPolicy: 'IfNotPresent',
          name: pod.component,
          resources: { requests: { cpu: pod.cpu, ...(pod.memory ? { memory: pod.memory } : {}) } },
          volumeMounts: pod.mounts.map((mount) => ({
            mountPath: mount.path,
            name: mount.name,
            ...(mount.writable ? {} : { readOnly: true }),
          })),
        },
      ],
      hostNetwork: true,
      priority: 2000001000,
      priorityClassName: 'system-node-critical',
      securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
      volumes: pod.mounts.map((mount) => ({
        hostPath: { path: mount.path, type: mount.type },
        name: mount.name,
      })),
    },
    status: {},
  };
}
