import type { UnstructuredObject } from '#server/kube';

/** The image of CoreDNS that kubeadm v1.36 installs. */
const IMAGE = 'registry.k8s.io/coredns/coredns:v1.13.1';

/**
 * The CoreDNS addon of `kubeadm init`. `clusterDns` is the Service address (tenth of the service range).
 * Models kubernetes/cmd/kubeadm/app/phases/addons/dns.
 */
export function coreDnsObjects(options: { clusterDns: string; dnsDomain: string }): UnstructuredObject[] {
  const kubeSystem = { namespace: 'kube-system' };
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'coredns', ...kubeSystem } },
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'coredns', ...kubeSystem },
      data: { Corefile: corefile(options.dnsDomain) },
    },
    clusterRole(),
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: 'system:coredns' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'system:coredns' },
      subjects: [{ kind: 'ServiceAccount', name: 'coredns', namespace: 'kube-system' }],
    },
    dnsService(options.clusterDns),
    deployment(),
  ];
}

function corefile(domain: string): string {
  return `.:53 {
    errors
    health {
       lameduck 5s
    }
    ready
    kubernetes ${domain} in-addr.arpa ip6.arpa {
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }
    prometheus :9153
    forward . /etc/resolv.conf {
       max_concurrent 1000
    }
    cache 30 {
       disable success ${domain}
       disable denial ${domain}
    }
    loop
    reload
    loadbalance
}
`;
}

function clusterRole(): UnstructuredObject {
  const rules = [
    { apiGroups: [''], resources: ['endpoints', 'services', 'pods', 'namespaces'], verbs: ['list', 'watch'] },
    { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list', 'watch'] },
  ];
  return {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: 'system:coredns' },
    rules,
  };
}

function dnsService(clusterIP: string): UnstructuredObject {
  const spec = {
    clusterIP,
    selector: { 'k8s-app': 'kube-dns' },
    ports: [
      { name: 'dns', port: 53, protocol: 'UDP', targetPort: 53 },
      { name: 'dns-tcp', port: 53, protocol: 'TCP', targetPort: 53 },
      { name: 'metrics', port: 9153, protocol: 'TCP', targetPort: 9153 },
    ],
  };
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      name: 'kube-dns',
      namespace: 'kube-system',
      labels: {
        'k8s-app': 'kube-dns',
        'kubernetes.io/cluster-service': 'true',
        'kubernetes.io/name': 'CoreDNS',
      },
      annotations: { 'prometheus.io/port': '9153', 'prometheus.io/scrape': 'true' },
    },
    spec,
  };
}

function deployment(): UnstructuredObject {
  const container = {
    name: 'coredns',
    image: IMAGE,
    imagePullPolicy: 'IfNotPresent',
    args: ['-conf', '/etc/coredns/Corefile'],
    resources: { limits: { memory: '170Mi' }, requests: { cpu: '100m', memory: '70Mi' } },
    ports: [
      { containerPort: 53, name: 'dns', protocol: 'UDP' },
      { containerPort: 53, name: 'dns-tcp', protocol: 'TCP' },
      { containerPort: 9153, name: 'metrics', protocol: 'TCP' },
      { containerPort: 8080, name: 'liveness-probe', protocol: 'TCP' },
      { containerPort: 8181, name: 'readiness-probe', protocol: 'TCP' },
    ],
    livenessProbe: {
      httpGet: { path: '/health', port: 'liveness-probe', scheme: 'HTTP' },
      initialDelaySeconds: 60,
      timeoutSeconds: 5,
      successThreshold: 1,
      failureThreshold: 5,
    },
    readinessProbe: { httpGet: { path: '/ready', port: 'readiness-probe', scheme: 'HTTP' } },
    securityContext: {
      allowPrivilegeEscalation: false,
      capabilities: { add: ['NET_BIND_SERVICE'], drop: ['ALL'] },
      readOnlyRootFilesystem: true,
    },
    volumeMounts: [{ name: 'config-volume', mountPath: '/etc/coredns', readOnly: true }],
  };
  const spec = {
    replicas: 2,
    strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 1 } },
    selector: { matchLabels: { 'k8s-app': 'kube-dns' } },
    template: {
      metadata: { labels: { 'k8s-app': 'kube-dns' } },
      spec: {
        priorityClassName: 'system-cluster-critical',
        serviceAccountName: 'coredns',
        tolerations: [
          { key: 'CriticalAddonsOnly', operator: 'Exists' },
          { key: 'node-role.kubernetes.io/control-plane', effect: 'NoSchedule' },
        ],
        nodeSelector: { 'kubernetes.io/os': 'linux' },
        affinity: {
          podAntiAffinity: {
            preferredDuringSchedulingIgnoredDuringExecution: [
              {
                weight: 100,
                podAffinityTerm: {
                  labelSelector: {
                    matchExpressions: [{ key: 'k8s-app', operator: 'In', values: ['kube-dns'] }],
                  },
                  topologyKey: 'kubernetes.io/hostname',
                },
              },
            ],
          },
        },
        containers: [container],
        dnsPolicy: 'Default',
        volumes: [
          {
            name: 'config-volume',
            configMap: { name: 'coredns', items: [{ key: 'Corefile', path: 'Corefile' }] },
          },
        ],
      },
    },
  };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'coredns', namespace: 'kube-system', labels: { 'k8s-app': 'kube-dns' } },
    spec,
  };
}
