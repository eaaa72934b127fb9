import { stringify } from 'yaml';

const FOLDER = '/etc/kubernetes/addons';

/**
 * The add-ons of a tenant, as files that cloud-init puts on its first control-plane machine and kubeadm's post command
 * applies: the network (Cilium) and the node half of KubeVirt's CSI driver.
 */
export function addOnFiles(): { path: string; owner: string; permissions: string; content: string }[] {
  const files = { 'cilium.yaml': cilium(), 'csi-kubevirt.yaml': csiDriver() };
  return Object.entries(files).map(([name, objects]) => ({
    path: `${FOLDER}/${name}`,
    owner: 'root:root',
    permissions: '0644',
    content: objects.map((object) => stringify(object, { aliasDuplicateObjects: false })).join('---\n'),
  }));
}

const EVERYWHERE = [{ operator: 'Exists' }];

function clusterRoleWithBinding(
  name: string,
  account: { name: string; namespace: string },
  rules: object[],
): object[] {
  return [
    { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name }, rules },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
      subjects: [{ kind: 'ServiceAccount', ...account }],
    },
  ];
}

function daemonSet(options: {
  name: string;
  namespace: string;
  labels: Record<string, string>;
  podSpec: object;
}): object {
  const { name, namespace, labels, podSpec } = options;
  return {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name, namespace, labels },
    spec: {
      selector: { matchLabels: labels },
      updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 2 } },
      template: { metadata: { labels }, spec: podSpec },
    },
  };
}

function cilium(): object[] {
  const account = { name: 'cilium', namespace: 'kube-system' };
  const read = ['get', 'list', 'watch'];
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: account },
    ...clusterRoleWithBinding('cilium', account, [
      { apiGroups: [''], resources: ['namespaces', 'services', 'pods', 'endpoints', 'nodes'], verbs: read },
      { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: read },
    ]),
    daemonSet({
      name: 'cilium',
      namespace: 'kube-system',
      labels: {
        'k8s-app': 'cilium',
        'app.kubernetes.io/name': 'cilium-agent',
        'app.kubernetes.io/part-of': 'cilium',
      },
      podSpec: {
        serviceAccountName: 'cilium',
        hostNetwork: true,
        priorityClassName: 'system-node-critical',
        terminationGracePeriodSeconds: 1,
        tolerations: EVERYWHERE,
        containers: [
          {
            name: 'cilium-agent',
            image: 'quay.io/cilium/cilium:v1.18.4',
            command: ['cilium-agent'],
            args: ['--config-dir=/tmp/cilium/config-map'],
            securityContext: {
              capabilities: { add: ['CHOWN', 'KILL', 'NET_ADMIN', 'NET_RAW', 'SYS_ADMIN'], drop: ['ALL'] },
            },
            volumeMounts: [{ name: 'etc-cni-netd', mountPath: '/host/etc/cni/net.d' }],
          },
        ],
        volumes: [{ name: 'etc-cni-netd', hostPath: { path: '/etc/cni/net.d', type: 'DirectoryOrCreate' } }],
      },
    }),
  ];
}

function csiDriver(): object[] {
  const namespace = 'kubevirt-csi-driver';
  const account = { name: 'kubevirt-csi-node-sa', namespace };
  return [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
    {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'CSIDriver',
      metadata: { name: 'csi.kubevirt.io' },
      spec: { attachRequired: true, podInfoOnMount: true, fsGroupPolicy: 'ReadWriteOnceWithFSType' },
    },
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: account },
    ...clusterRoleWithBinding('kubevirt-csi-node-cr', account, [
      { apiGroups: [''], resources: ['nodes'], verbs: ['get', 'list', 'watch'] },
    ]),
    daemonSet({
      name: 'kubevirt-csi-node',
      namespace,
      labels: { app: 'kubevirt-csi-driver' },
      podSpec: {
        serviceAccountName: account.name,
        hostNetwork: true,
        priorityClassName: 'system-node-critical',
        tolerations: EVERYWHERE,
        containers: [csiContainer(), registrarContainer(), livenessContainer()],
        volumes: [
          { name: 'kubelet-dir', hostPath: { path: '/var/lib/kubelet', type: 'Directory' } },
          {
            name: 'plugin-dir',
            hostPath: { path: '/var/lib/kubelet/plugins/csi.kubevirt.io', type: 'DirectoryOrCreate' },
          },
          {
            name: 'registration-dir',
            hostPath: { path: '/var/lib/kubelet/plugins_registry', type: 'DirectoryOrCreate' },
          },
        ],
      },
    }),
  ];
}

function csiContainer(): object {
  return {
    name: 'csi-driver',
    image: 'quay.io/kubevirt/kubevirt-csi-driver:v0.2.0',
    args: [
      '--endpoint=unix:/csi/csi.sock',
      '--node-name=$(KUBE_NODE_NAME)',
      '--run-node-service=true',
      '--run-controller-service=false',
    ],
    env: [{ name: 'KUBE_NODE_NAME', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } }],
    securityContext: { privileged: true, allowPrivilegeEscalation: true },
    volumeMounts: [
      { name: 'kubelet-dir', mountPath: '/var/lib/kubelet', mountPropagation: 'Bidirectional' },
      { name: 'plugin-dir', mountPath: '/csi' },
    ],
  };
}

function registrarContainer(): object {
  return {
    name: 'csi-node-driver-registrar',
    image: 'registry.k8s.io/sig-storage/csi-node-driver-registrar:v2.15.0',
    args: [
      '--csi-address=/csi/csi.sock',
      '--kubelet-registration-path=/var/lib/kubelet/plugins/csi.kubevirt.io/csi.sock',
    ],
    securityContext: { privileged: true },
    volumeMounts: [
      { name: 'plugin-dir', mountPath: '/csi' },
      { name: 'registration-dir', mountPath: '/registration' },
    ],
  };
}

function livenessContainer(): object {
  return {
    name: 'csi-liveness-probe',
    image: 'registry.k8s.io/sig-storage/livenessprobe:v2.17.0',
    args: ['--csi-address=/csi/csi.sock', '--probe-timeout=3s', '--http-endpoint=:10300'],
    volumeMounts: [{ name: 'plugin-dir', mountPath: '/csi' }],
  };
}
