import { isIP } from 'node:net';
import {
  dnsLabelErrors,
  dnsSubdomainErrors,
  type EndpointSlice,
  type Endpoints,
  type FieldError,
} from '#server/kube';
import { as, type Strategy } from '../kind.ts';
import {
  duplicate,
  eachInvalid,
  IMMUTABLE,
  invalidValue,
  labelsAt,
  notSupported,
  portNumber,
  required,
} from './field-errors.ts';

const NOT_AN_IP = 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)';
const PROTOCOLS = ['SCTP', 'TCP', 'UDP'];
const ADDRESS_TYPES = ['FQDN', 'IPv4', 'IPv6'];
const MAX_ENDPOINTS = 1000;
const MAX_ADDRESSES = 100;
const MAX_PORTS = 20000;

function specialAddress(ip: string): string | undefined {
  if (ip === '0.0.0.0' || ip === '::') return 'may not be unspecified (0.0.0.0 or ::)';
  if (ip.startsWith('127.') || ip === '::1') return 'may not be in the loopback range (127.0.0.0/8, ::1/128)';
  if (ip.startsWith('169.254.')) return 'may not be in the link-local range (169.254.0.0/16, fe80::/10)';
  if (ip.startsWith('224.0.0.'))
    return 'may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)';
  return undefined;
}

function addressErrors(ip: string, field: string): FieldError[] {
  if (isIP(ip) === 0) return [invalidValue(field, ip, NOT_AN_IP)];
  const special = specialAddress(ip);
  return special ? [invalidValue(field, ip, special)] : [];
}

/** Models ValidateEndpoints of kubernetes/pkg/apis/core/validation. */
function endpointsErrors(endpoints: Endpoints): FieldError[] {
  return (endpoints.subsets ?? []).flatMap((subset, index) => {
    const field = `subsets[${index}]`;
    const errors: FieldError[] = [];
    if (!subset.addresses?.length && !subset.notReadyAddresses?.length) {
      errors.push(required(field, 'must specify `addresses` or `notReadyAddresses`'));
    }
    for (const list of ['addresses', 'notReadyAddresses'] as const) {
      for (const [i, address] of (subset[list] ?? []).entries()) {
        errors.push(...addressErrors(address.ip, `${field}.${list}[${i}].ip`));
      }
    }
    const ports = subset.ports ?? [];
    for (const [i, port] of ports.entries()) {
      const at = `${field}.ports[${i}]`;
      if (!port.name && ports.length > 1) errors.push(required(`${at}.name`));
      else if (port.name) errors.push(...eachInvalid(`${at}.name`, port.name, dnsLabelErrors(port.name)));
      errors.push(...portNumber(port.port, `${at}.port`));
      if (port.protocol && !PROTOCOLS.includes(port.protocol)) {
        errors.push(notSupported(`${at}.protocol`, port.protocol, PROTOCOLS));
      }
    }
    return errors;
  });
}

export const endpointsStrategy: Strategy = {
  allowCreateOnUpdate: true,
  allowUnconditionalUpdate: true,
  defaults(object) {
    for (const subset of as<Endpoints>(object).subsets ?? []) {
      for (const port of subset.ports ?? []) port.protocol ||= 'TCP';
    }
  },
  validate: (object) => endpointsErrors(as<Endpoints>(object)),
  validateUpdate: (object) => endpointsErrors(as<Endpoints>(object)),
};

function sliceAddressErrors(address: string, type: string, field: string): FieldError[] {
  if (type === 'FQDN') return eachInvalid(field, address, dnsSubdomainErrors(address));
  const family = isIP(address);
  if (family === 0) return [invalidValue(field, address, NOT_AN_IP)];
  if (family !== (type === 'IPv4' ? 4 : 6))
    return [invalidValue(field, address, `must be an ${type} address`)];
  return addressErrors(address, field);
}

function slicePortErrors(slice: EndpointSlice): FieldError[] {
  const names = new Set<string>();
  const ports = slice.ports ?? [];
  if (ports.length > MAX_PORTS)
    return [
      {
        type: 'FieldValueTooMany',
        field: 'ports',
        value: ports.length,
        detail: `must have at most ${MAX_PORTS} items`,
      },
    ];
  return ports.flatMap((port, index) => {
    const at = `ports[${index}]`;
    const errors: FieldError[] = [];
    if (port.name) errors.push(...eachInvalid(`${at}.name`, port.name, dnsLabelErrors(port.name)));
    if (names.has(port.name ?? '')) errors.push(duplicate(`${at}.name`, port.name ?? ''));
    names.add(port.name ?? '');
    if (!port.protocol) errors.push(required(`${at}.protocol`));
    else if (!PROTOCOLS.includes(port.protocol))
      errors.push(notSupported(`${at}.protocol`, port.protocol, PROTOCOLS));
    return errors;
  });
}

/** Models ValidateEndpointSlice of kubernetes/pkg/apis/discovery/validation. */
function sliceErrors(slice: EndpointSlice): FieldError[] {
  const errors: FieldError[] = [];
  if (!slice.addressType) return [required('addressType')];
  if (!ADDRESS_TYPES.includes(slice.addressType))
    return [notSupported('addressType', slice.addressType, ADDRESS_TYPES)];
  const endpoints = slice.endpoints ?? [];
  if (endpoints.length > MAX_ENDPOINTS) {
    errors.push({
      type: 'FieldValueTooMany',
      field: 'endpoints',
      value: endpoints.length,
      detail: `must have at most ${MAX_ENDPOINTS} items`,
    });
    return errors;
  }
  for (const [index, endpoint] of endpoints.entries()) {
    const at = `endpoints[${index}]`;
    const addresses = endpoint.addresses ?? [];
    if (addresses.length === 0) errors.push(required(`${at}.addresses`, 'must contain at least 1 address'));
    if (addresses.length > MAX_ADDRESSES) {
      errors.push({
        type: 'FieldValueTooMany',
        field: `${at}.addresses`,
        value: addresses.length,
        detail: `must have at most ${MAX_ADDRESSES} items`,
      });
    }
    for (const [i, address] of addresses.entries()) {
      errors.push(...sliceAddressErrors(address, slice.addressType, `${at}.addresses[${i}]`));
    }
    if (endpoint.nodeName)
      errors.push(...eachInvalid(`${at}.nodeName`, endpoint.nodeName, dnsSubdomainErrors(endpoint.nodeName)));
    if (endpoint.hostname)
      errors.push(...eachInvalid(`${at}.hostname`, endpoint.hostname, dnsLabelErrors(endpoint.hostname)));
    errors.push(...labelsAt(endpoint.deprecatedTopology, `${at}.deprecatedTopology`));
  }
  return [...errors, ...slicePortErrors(slice)];
}

export const endpointSliceStrategy: Strategy = {
  allowUnconditionalUpdate: true,
  defaults(object) {
    for (const port of as<EndpointSlice>(object).ports ?? []) {
      port.name ??= '';
      port.protocol ??= 'TCP';
    }
  },
  validate: (object) => sliceErrors(as<EndpointSlice>(object)),
  validateUpdate(object, old) {
    const [slice, before] = [as<EndpointSlice>(object), as<EndpointSlice>(old)];
    const errors = sliceErrors(slice);
    if (slice.addressType !== before.addressType)
      errors.push(invalidValue('addressType', slice.addressType, IMMUTABLE));
    return errors;
  },
};
