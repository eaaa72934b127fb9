// Names that the parts of Kubernetes agree on: labels, annotations, taints, finalizers, namespaces, condition types.
// Models k8s.io/api/core/v1/well_known_labels.go, well_known_taints.go, annotation_key_constants.go and their like.

export const labels = {
  hostname: 'kubernetes.io/hostname',
  os: 'kubernetes.io/os',
  arch: 'kubernetes.io/arch',
  betaOs: 'beta.kubernetes.io/os',
  betaArch: 'beta.kubernetes.io/arch',
  zone: 'topology.kubernetes.io/zone',
  region: 'topology.kubernetes.io/region',
  betaZone: 'failure-domain.beta.kubernetes.io/zone',
  betaRegion: 'failure-domain.beta.kubernetes.io/region',
  instanceType: 'node.kubernetes.io/instance-type',
  betaInstanceType: 'beta.kubernetes.io/instance-type',
  controlPlane: 'node-role.kubernetes.io/control-plane',
  excludeBalancers: 'node.kubernetes.io/exclude-from-external-load-balancers',
  namespaceName: 'kubernetes.io/metadata.name',
  serviceName: 'kubernetes.io/service-name',
  endpointSliceManagedBy: 'endpointslice.kubernetes.io/managed-by',
  skipEndpointSliceMirror: 'endpointslice.kubernetes.io/skip-mirror',
  headlessService: 'service.kubernetes.io/headless',
  serviceProxyName: 'service.kubernetes.io/service-proxy-name',
  podTemplateHash: 'pod-template-hash',
  controllerRevisionHash: 'controller-revision-hash',
  podTemplateGeneration: 'pod-template-generation',
} as const;

export const annotations = {
  lastApplied: 'kubectl.kubernetes.io/last-applied-configuration',
  deploymentRevision: 'deployment.kubernetes.io/revision',
  deploymentRevisionHistory: 'deployment.kubernetes.io/revision-history',
  desiredReplicas: 'deployment.kubernetes.io/desired-replicas',
  maxReplicas: 'deployment.kubernetes.io/max-replicas',
  changeCause: 'kubernetes.io/change-cause',
  daemonSetTemplateGeneration: 'deprecated.daemonset.template.generation',
  endpointsLastChangeTriggerTime: 'endpoints.kubernetes.io/last-change-trigger-time',
  nodeTtl: 'node.alpha.kubernetes.io/ttl',
  providedNodeIp: 'alpha.kubernetes.io/provided-node-ip',
  configSource: 'kubernetes.io/config.source',
  configHash: 'kubernetes.io/config.hash',
  configSeen: 'kubernetes.io/config.seen',
  configMirror: 'kubernetes.io/config.mirror',
  serviceAccountName: 'kubernetes.io/service-account.name',
  serviceAccountUid: 'kubernetes.io/service-account.uid',
  initialEventsEnd: 'k8s.io/initial-events-end',
  defaultContainer: 'kubectl.kubernetes.io/default-container',
  autoUpdateRbac: 'rbac.authorization.kubernetes.io/autoupdate',
} as const;

export const taints = {
  uninitialized: 'node.cloudprovider.kubernetes.io/uninitialized',
  shutdown: 'node.cloudprovider.kubernetes.io/shutdown',
  notReady: 'node.kubernetes.io/not-ready',
  unreachable: 'node.kubernetes.io/unreachable',
  unschedulable: 'node.kubernetes.io/unschedulable',
  memoryPressure: 'node.kubernetes.io/memory-pressure',
  diskPressure: 'node.kubernetes.io/disk-pressure',
  pidPressure: 'node.kubernetes.io/pid-pressure',
  networkUnavailable: 'node.kubernetes.io/network-unavailable',
  outOfService: 'node.kubernetes.io/out-of-service',
  controlPlane: 'node-role.kubernetes.io/control-plane',
} as const;

export const finalizers = {
  foregroundDeletion: 'foregroundDeletion',
  orphan: 'orphan',
  kubernetes: 'kubernetes',
  serviceLoadBalancer: 'service.kubernetes.io/load-balancer-cleanup',
} as const;

export const wellKnownNamespaces = {
  default: 'default',
  system: 'kube-system',
  public: 'kube-public',
  nodeLease: 'kube-node-lease',
} as const;
