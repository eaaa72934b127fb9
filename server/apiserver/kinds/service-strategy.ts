import { deepEqual, type Service, type UnstructuredObject } from '#server/kube';
import { as, type Strategy } from '../kind.ts';
import {
  allocateForCreate,
  allocateForUpdate,
  needsClusterIp,
  needsHealthCheckPort,
  needsNodePort,
  releaseService,
  releaseServiceDifference,
} from './service-allocation.ts';
import { serviceErrors, serviceUpdateErrors, serviceWarnings } from './service-validation.ts';

/** Three hours: how long ClientIP affinity lasts. */
const AFFINITY_SECONDS = 10800;

/** Models SetDefaults_Service of kubernetes/pkg/apis/core/v1/defaults.go. */
function defaultService(object: UnstructuredObject): void {
  const { spec, status } = as<Service>(object);
  spec.sessionAffinity ||= 'None';
  if (spec.sessionAffinity === 'None') delete spec.sessionAffinityConfig;
  else if (
    spec.sessionAffinity === 'ClientIP' &&
    spec.sessionAffinityConfig?.clientIP?.timeoutSeconds === undefined
  ) {
    spec.sessionAffinityConfig = { clientIP: { timeoutSeconds: AFFINITY_SECONDS } };
  }
  spec.type ||= 'ClusterIP';
  for (const port of spec.ports ?? []) {
    port.protocol ||= 'TCP';
    if (!port.targetPort) port.targetPort = port.port;
  }
  if (isExternallyAccessible(as<Service>(object))) spec.externalTrafficPolicy ||= 'Cluster';
  if (spec.type !== 'ExternalName') spec.internalTrafficPolicy ??= 'Cluster';
  if (spec.type !== 'LoadBalancer') return;
  spec.allocateLoadBalancerNodePorts ??= true;
  for (const ingress of status?.loadBalancer?.ingress ?? []) if (ingress.ip) ingress.ipMode ??= 'VIP';
}

/** Models service.ExternallyAccessible. */
function isExternallyAccessible({ spec }: Service): boolean {
  if (spec.type === 'LoadBalancer' || spec.type === 'NodePort') return true;
  return spec.type === 'ClusterIP' && (spec.externalIPs?.length ?? 0) > 0;
}

/** `clusterIPs` follows `clusterIP` where only one of them was given or changed. Models normalizeClusterIPs. */
function alignClusterIps(service: Service, old: Service | undefined): void {
  const { spec } = service;
  if (!old) {
    if (spec.clusterIP && !spec.clusterIPs?.length) spec.clusterIPs = [spec.clusterIP];
    return;
  }
  const sameIp = (spec.clusterIP ?? '') === (old.spec.clusterIP ?? '');
  const sameIps = deepEqual(spec.clusterIPs ?? [], old.spec.clusterIPs ?? []);
  if (!sameIp && sameIps) {
    if (spec.clusterIP) spec.clusterIPs = [spec.clusterIP];
    else delete spec.clusterIPs;
  } else if (sameIp && !sameIps && !spec.clusterIPs?.length && spec.clusterIP) {
    delete spec.clusterIP;
  }
  if (spec.clusterIP && !spec.clusterIPs?.length) spec.clusterIPs = [spec.clusterIP];
}

/** What the server chose stays when a client's object does not mention it. Models patchAllocatedValues. */
function keepAllocated(service: Service, old: Service): void {
  const { spec } = service;
  if (needsClusterIp(old) && needsClusterIp(service)) {
    if (!spec.clusterIP && old.spec.clusterIP) spec.clusterIP = old.spec.clusterIP;
    if (!spec.clusterIPs?.length && spec.clusterIP === old.spec.clusterIP && old.spec.clusterIPs) {
      spec.clusterIPs = [...old.spec.clusterIPs];
    }
  }
  if (needsNodePort(old) && needsNodePort(service)) {
    const mine = new Set((spec.ports ?? []).map((port) => port.nodePort));
    const used = new Set(
      (old.spec.ports ?? []).map((port) => port.nodePort).filter((port) => port && mine.has(port)),
    );
    const byName = new Map((old.spec.ports ?? []).map((port) => [port.name ?? '', port.nodePort]));
    for (const port of spec.ports ?? []) {
      const known = byName.get(port.name ?? '');
      if (port.nodePort || !known || used.has(known)) continue;
      port.nodePort = known;
      used.add(known);
    }
  }
  if (
    needsHealthCheckPort(old) &&
    needsHealthCheckPort(service) &&
    !spec.healthCheckNodePort &&
    old.spec.healthCheckNodePort
  ) {
    spec.healthCheckNodePort = old.spec.healthCheckNodePort;
  }
}

/** A change of type drops what the new type has no use for, when it was merely carried along. Models dropTypeDependentFields. */
function dropUnneeded(service: Service, old: Service): void {
  const { spec } = service;
  const before = old.spec;
  if (
    needsClusterIp(old) &&
    !needsClusterIp(service) &&
    deepEqual(spec.clusterIPs ?? [], before.clusterIPs ?? [])
  ) {
    delete spec.clusterIP;
    delete spec.clusterIPs;
  }
  if (needsClusterIp(old) && !needsClusterIp(service)) {
    if (deepEqual(spec.ipFamilies, before.ipFamilies)) delete spec.ipFamilies;
    if (spec.ipFamilyPolicy === before.ipFamilyPolicy) delete spec.ipFamilyPolicy;
    if (spec.internalTrafficPolicy === before.internalTrafficPolicy) delete spec.internalTrafficPolicy;
  }
  const nodePorts = (of: Service): unknown => (of.spec.ports ?? []).map((port) => port.nodePort ?? 0);
  if (needsNodePort(old) && !needsNodePort(service) && deepEqual(nodePorts(service), nodePorts(old))) {
    for (const port of spec.ports ?? []) delete port.nodePort;
  }
  if (
    needsHealthCheckPort(old) &&
    !needsHealthCheckPort(service) &&
    spec.healthCheckNodePort === before.healthCheckNodePort
  ) {
    delete spec.healthCheckNodePort;
  }
  if (before.type === 'LoadBalancer' && spec.type !== 'LoadBalancer') {
    if (spec.allocateLoadBalancerNodePorts === before.allocateLoadBalancerNodePorts)
      delete spec.allocateLoadBalancerNodePorts;
    if (spec.loadBalancerClass === before.loadBalancerClass) delete spec.loadBalancerClass;
  }
  if (
    isExternallyAccessible(old) &&
    !isExternallyAccessible(service) &&
    spec.externalTrafficPolicy === before.externalTrafficPolicy
  ) {
    delete spec.externalTrafficPolicy;
  }
}

/** A balancer's addresses are not kept when nothing is balanced any more. */
function dropBalancer(object: UnstructuredObject, old: Service): void {
  const service = as<Service>(object);
  if (old.spec.type !== 'LoadBalancer' || service.spec.type === 'LoadBalancer') return;
  service.status = { ...service.status, loadBalancer: {} };
}

/** Models kubernetes/pkg/registry/core/service. */
export const serviceStrategy: Strategy = {
  nameRule: 'dns1035-label',
  allowUnconditionalUpdate: true,
  allowCreateOnUpdate: true,
  defaults: defaultService,
  prepareForCreate(object, context) {
    const service = as<Service>(object);
    service.status = { loadBalancer: {} };
    alignClusterIps(service, undefined);
    allocateForCreate(service, context);
  },
  prepareForUpdate(object, old, context) {
    if (context.subresource === 'status') return;
    const service = as<Service>(object);
    const before = as<Service>(old);
    alignClusterIps(service, before);
    keepAllocated(service, before);
    dropUnneeded(service, before);
    dropBalancer(object, before);
    allocateForUpdate(service, before, context);
  },
  validate: (object) => serviceErrors(as<Service>(object)),
  validateUpdate: (object, old) => serviceUpdateErrors(as<Service>(object), as<Service>(old)),
  warnings: (object) => serviceWarnings(as<Service>(object)),
  release: (object, context) => releaseService(as<Service>(object), context),
  releaseDifference: (dropped, kept, context) =>
    releaseServiceDifference(as<Service>(dropped), as<Service>(kept), context),
};
