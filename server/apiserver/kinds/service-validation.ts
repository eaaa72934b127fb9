import { isIP } from 'node:net';
import {
  dnsLabelErrors,
  dnsSubdomainErrors,
  type FieldError,
  qualifiedNameErrors,
  type Service,
  type ServicePort,
} from '#server/kube';
import {
  duplicate,
  eachInvalid,
  forbiddenField,
  invalidValue,
  labelsAt,
  notSupported,
  portNumber,
  portNumberOrName,
  required,
} from './field-errors.ts';

const TYPES = ['ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName'];
const PROTOCOLS = ['SCTP', 'TCP', 'UDP'];
const AFFINITIES = ['ClientIP', 'None'];
const POLICIES = ['Cluster', 'Local'];
const DISTRIBUTIONS = ['PreferClose', 'PreferSameNode', 'PreferSameZone'];
const MAX_AFFINITY_SECONDS = 86400;
const NOT_AN_IP = 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)';
const NOT_A_CIDR = 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)';
const HINTS = 'service.kubernetes.io/topology-aware-hints';
const BALANCER_ONLY = "may only be used when `type` is 'LoadBalancer'";
const NOT_EXTERNAL_NAME = 'may not be set for ExternalName services';

function isCidr(text: string): boolean {
  const [ip = '', bits = ''] = text.split('/');
  const family = isIP(ip);
  return family > 0 && /^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128);
}

function onePortErrors(
  port: ServicePort,
  field: string,
  nameRequired: boolean,
  names: Set<string>,
): FieldError[] {
  const errors: FieldError[] = [];
  if (!port.name) {
    if (nameRequired) errors.push(required(`${field}.name`));
  } else {
    errors.push(...eachInvalid(`${field}.name`, port.name, dnsLabelErrors(port.name)));
    if (names.has(port.name)) errors.push(duplicate(`${field}.name`, port.name));
    names.add(port.name);
  }
  errors.push(...portNumber(port.port, `${field}.port`));
  if (!port.protocol) errors.push(required(`${field}.protocol`));
  else if (!PROTOCOLS.includes(port.protocol))
    errors.push(notSupported(`${field}.protocol`, port.protocol, PROTOCOLS));
  if (port.targetPort !== undefined) errors.push(...portNumberOrName(port.targetPort, `${field}.targetPort`));
  if (port.appProtocol)
    errors.push(
      ...eachInvalid(`${field}.appProtocol`, port.appProtocol, qualifiedNameErrors(port.appProtocol)),
    );
  return errors;
}

function portsErrors(service: Service): FieldError[] {
  const { spec } = service;
  const ports = spec.ports ?? [];
  const errors: FieldError[] = [];
  if (ports.length === 0 && spec.clusterIP !== 'None' && spec.type !== 'ExternalName')
    errors.push(required('spec.ports'));
  const names = new Set<string>();
  for (const [index, port] of ports.entries()) {
    errors.push(...onePortErrors(port, `spec.ports[${index}]`, ports.length > 1, names));
  }
  if (spec.type === 'ClusterIP') {
    for (const [index, port] of ports.entries()) {
      if (port.nodePort) {
        errors.push(
          forbiddenField(`spec.ports[${index}].nodePort`, "may not be used when `type` is 'ClusterIP'"),
        );
      }
    }
  }
  return [...errors, ...repeatedPorts(ports)];
}

function repeatedPorts(ports: readonly ServicePort[]): FieldError[] {
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  const seenNodePorts = new Set<string>();
  for (const [index, port] of ports.entries()) {
    if (port.nodePort) {
      const key = `${port.protocol}/${port.nodePort}`;
      if (seenNodePorts.has(key)) errors.push(duplicate(`spec.ports[${index}].nodePort`, port.nodePort));
      seenNodePorts.add(key);
    }
    const key = `${port.protocol}/${port.port}`;
    if (seen.has(key)) {
      // Upstream shows its internal type, with the two members that count set.
      const shown = {
        Name: '',
        Protocol: port.protocol,
        AppProtocol: null,
        Port: port.port,
        TargetPort: 0,
        NodePort: 0,
      };
      errors.push(duplicate(`spec.ports[${index}]`, shown));
    }
    seen.add(key);
  }
  return errors;
}

function typeErrors({ spec }: Service): FieldError[] {
  const errors: FieldError[] = [];
  const none = spec.clusterIP === 'None';
  switch (spec.type) {
    case 'NodePort':
    case 'LoadBalancer':
      if (none) {
        errors.push(
          invalidValue('spec.clusterIPs[0]', 'None', `may not be set to 'None' for ${spec.type} services`),
        );
      }
      break;
    case 'ExternalName':
      if (spec.clusterIPs?.length) errors.push(forbiddenField('spec.clusterIPs', NOT_EXTERNAL_NAME));
      if (spec.ipFamilies?.length) errors.push(forbiddenField('spec.ipFamilies', NOT_EXTERNAL_NAME));
      if (spec.ipFamilyPolicy) errors.push(forbiddenField('spec.ipFamilyPolicy', NOT_EXTERNAL_NAME));
      if (spec.externalName) {
        const cname = spec.externalName.replace(/\.$/, '');
        errors.push(...eachInvalid('spec.externalName', cname, dnsSubdomainErrors(cname)));
      } else errors.push(required('spec.externalName'));
      break;
    case undefined:
      errors.push(required('spec.type'));
      break;
    case 'ClusterIP':
      break;
    default:
      errors.push(notSupported('spec.type', spec.type, TYPES));
  }
  return errors;
}

function clusterIpErrors({ spec }: Service): FieldError[] {
  const errors: FieldError[] = [];
  const ips = spec.clusterIPs ?? [];
  if (spec.type === 'ExternalName') return errors;
  if (!spec.clusterIP && ips.length > 0) {
    errors.push(invalidValue('spec.clusterIPs', ips, 'must be empty when `clusterIP` is not specified'));
  } else if (spec.clusterIP && ips.length > 0 && ips[0] !== spec.clusterIP) {
    errors.push(invalidValue('spec.clusterIPs', ips, 'first value must match `clusterIP`'));
  }
  for (const [index, ip] of ips.entries()) {
    if (index > 0 && ip === 'None') {
      errors.push(invalidValue(`spec.clusterIPs[${index}]`, ips, "'None' must be the first and only value"));
    } else if (ip !== 'None' && isIP(ip) === 0)
      errors.push(invalidValue(`spec.clusterIPs[${index}]`, ip, NOT_AN_IP));
  }
  if (ips.length > 2) errors.push(invalidValue('spec.clusterIPs', ips, 'may only hold up to 2 values'));
  return errors;
}

function trafficErrors({ spec }: Service): FieldError[] {
  const errors: FieldError[] = [];
  const external =
    spec.type === 'LoadBalancer' ||
    spec.type === 'NodePort' ||
    (spec.type === 'ClusterIP' && !!spec.externalIPs?.length);
  const policy = spec.externalTrafficPolicy;
  if (policy && !external) {
    errors.push(
      invalidValue(
        'spec.externalTrafficPolicy',
        policy,
        'may only be set for externally-accessible services',
      ),
    );
  } else if (policy && !POLICIES.includes(policy)) {
    errors.push(notSupported('spec.externalTrafficPolicy', policy, POLICIES));
  }
  const health = spec.healthCheckNodePort ?? 0;
  const why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
  if (health !== 0 && !(spec.type === 'LoadBalancer' && policy === 'Local')) {
    errors.push(invalidValue('spec.healthCheckNodePort', health, why));
  }
  if (spec.internalTrafficPolicy && !POLICIES.includes(spec.internalTrafficPolicy)) {
    errors.push(notSupported('spec.internalTrafficPolicy', spec.internalTrafficPolicy, POLICIES));
  }
  if (spec.trafficDistribution && !DISTRIBUTIONS.includes(spec.trafficDistribution)) {
    errors.push(notSupported('spec.trafficDistribution', spec.trafficDistribution, DISTRIBUTIONS));
  }
  return errors;
}

function balancerErrors({ spec }: Service): FieldError[] {
  const errors: FieldError[] = [];
  const balanced = spec.type === 'LoadBalancer';
  for (const [index, range] of (spec.loadBalancerSourceRanges ?? []).entries()) {
    if (!balanced) {
      errors.push(forbiddenField('spec.LoadBalancerSourceRanges', BALANCER_ONLY));
      break;
    }
    if (!isCidr(range.trim()))
      errors.push(invalidValue(`spec.loadBalancerSourceRanges[${index}]`, range, NOT_A_CIDR));
  }
  if (balanced && spec.allocateLoadBalancerNodePorts === undefined)
    errors.push(required('spec.allocateLoadBalancerNodePorts'));
  if (!balanced && spec.allocateLoadBalancerNodePorts !== undefined) {
    errors.push(forbiddenField('spec.allocateLoadBalancerNodePorts', BALANCER_ONLY));
  }
  if (spec.loadBalancerClass !== undefined) {
    if (!balanced) errors.push(forbiddenField('spec.loadBalancerClass', BALANCER_ONLY));
    else
      errors.push(
        ...eachInvalid(
          'spec.loadBalancerClass',
          spec.loadBalancerClass,
          qualifiedNameErrors(spec.loadBalancerClass),
        ),
      );
  }
  return errors;
}

function affinityErrors({ spec }: Service): FieldError[] {
  const errors: FieldError[] = [];
  if (!spec.sessionAffinity) errors.push(required('spec.sessionAffinity'));
  else if (!AFFINITIES.includes(spec.sessionAffinity)) {
    errors.push(notSupported('spec.sessionAffinity', spec.sessionAffinity, AFFINITIES));
  }
  const seconds = spec.sessionAffinityConfig?.clientIP?.timeoutSeconds;
  if (seconds !== undefined && (seconds <= 0 || seconds > MAX_AFFINITY_SECONDS)) {
    const field = 'spec.sessionAffinityConfig.clientIP.timeoutSeconds';
    errors.push(invalidValue(field, seconds, `must be greater than 0 and less than ${MAX_AFFINITY_SECONDS}`));
  }
  return errors;
}

/** Models ValidateService of kubernetes/pkg/apis/core/validation. */
export function serviceErrors(service: Service): FieldError[] {
  const { spec } = service;
  const errors = [
    ...portsErrors(service),
    ...typeErrors(service),
    ...labelsAt(spec.selector, 'spec.selector'),
  ];
  errors.push(...affinityErrors(service), ...clusterIpErrors(service));
  for (const [index, ip] of (spec.externalIPs ?? []).entries()) {
    if (isIP(ip) === 0) errors.push(invalidValue(`spec.externalIPs[${index}]`, ip, NOT_AN_IP));
  }
  errors.push(...balancerErrors(service), ...trafficErrors(service));
  return errors;
}

/** Models ValidateServiceUpdate: the first address never changes while the Service has one. */
export function serviceUpdateErrors(service: Service, old: Service): FieldError[] {
  const errors: FieldError[] = [];
  const before = old.spec.clusterIPs ?? [];
  const after = service.spec.clusterIPs ?? [];
  if (old.spec.type !== 'ExternalName' && service.spec.type !== 'ExternalName' && before.length > 0) {
    if (after.length === 0) {
      errors.push(invalidValue('spec.clusterIPs[0]', after, 'primary clusterIP can not be unset'));
    } else if (before[0] !== after[0])
      errors.push(invalidValue('spec.clusterIPs[0]', after, 'may not change once set'));
  }
  if (
    old.spec.type === 'LoadBalancer' &&
    service.spec.type === 'LoadBalancer' &&
    old.spec.loadBalancerClass !== service.spec.loadBalancerClass
  ) {
    errors.push(
      invalidValue(
        'spec.loadBalancerClass',
        service.spec.loadBalancerClass ?? null,
        'may not change once set',
      ),
    );
  }
  return [...errors, ...serviceErrors(service)];
}

/** Models GetWarningsForService of kubernetes/pkg/api/service. */
export function serviceWarnings({ metadata, spec }: Service): string[] {
  const warnings: string[] = [];
  const headless = spec.type === 'ClusterIP' && spec.clusterIP === 'None';
  if (metadata.annotations && HINTS in metadata.annotations) {
    warnings.push(
      `annotation ${HINTS} is deprecated, please use service.kubernetes.io/topology-mode instead`,
    );
  }
  if (headless) {
    if (spec.loadBalancerIP) warnings.push('spec.loadBalancerIP is ignored for headless services');
    if (spec.externalIPs?.length) warnings.push('spec.externalIPs is ignored for headless services');
    if (spec.sessionAffinity !== 'None')
      warnings.push('spec.SessionAffinity is ignored for headless services');
  } else if (spec.externalIPs?.length && spec.type !== 'ExternalName') {
    warnings.push('spec.externalIPs is deprecated and may no longer be implemented in some clusters');
  }
  if (spec.type === 'ExternalName' && spec.externalIPs?.length) {
    warnings.push('spec.externalIPs is ignored when spec.type is "ExternalName"');
  }
  if (spec.type !== 'ExternalName' && spec.externalName) {
    warnings.push('spec.externalName is ignored when spec.type is not "ExternalName"');
  }
  if (spec.trafficDistribution === 'PreferClose') {
    warnings.push('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"');
  }
  return warnings;
}
