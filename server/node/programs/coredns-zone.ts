import { isIP } from 'node:net';
import type { Informer } from '#server/client';
import type { EndpointSlice, Service } from '#server/kube';
import { type DnsQuestion, type DnsRecord, RECORD_TYPES, RESPONSE_CODES } from '../network/dns-message.ts';

export const BY_SERVICE = 'coredns/service';
const TXT_VERSION = '1.1.0';
const MAX_ANSWERS = 200;

export interface ZoneData {
  readonly zone: string;
  readonly ttl: number;
  readonly services: Informer<Service>;
  readonly slices: Informer<EndpointSlice>;
  readonly startedAt: number;
}

export interface ZoneAnswer {
  readonly code: number;
  readonly answers: readonly DnsRecord[];
  readonly authorities: readonly DnsRecord[];
  readonly authoritative: boolean;
}

interface Target {
  readonly name: string;
  readonly ip: string;
  readonly ports: readonly { name: string; protocol: string; port: number }[];
}

/**
 * What the cluster's zone says to a question; undefined when the name is not in it.
 * Models coredns/plugin/kubernetes (DNS-based service discovery specification 1.1.0).
 */
export function answerFromZone(question: DnsQuestion, data: ZoneData): ZoneAnswer | undefined {
  const { zone } = data;
  if (question.name.endsWith('.in-addr.arpa')) return reverse(question, data);
  if (question.name !== zone && !question.name.endsWith(`.${zone}`)) return undefined;
  const found = look(question, data);
  if (found === undefined) return negative(RESPONSE_CODES.NXDOMAIN, data);
  const answers = found
    .filter((record) => record.type === question.type || record.type === RECORD_TYPES.CNAME)
    .slice(0, MAX_ANSWERS);
  if (answers.length === 0) return negative(RESPONSE_CODES.NOERROR, data);
  return { code: RESPONSE_CODES.NOERROR, answers, authorities: [], authoritative: true };
}

function negative(code: number, { zone, ttl, startedAt }: ZoneData): ZoneAnswer {
  const soa = `ns.dns.${zone} hostmaster.${zone} ${Math.floor(startedAt / 1000)} 7200 1800 86400 ${ttl}`;
  return {
    code,
    answers: [],
    authorities: [{ name: zone, type: RECORD_TYPES.SOA, ttl, data: soa }],
    authoritative: true,
  };
}

/** All records of a name; undefined: no such name. */
function look(question: DnsQuestion, data: ZoneData): DnsRecord[] | undefined {
  const { name } = question;
  const { zone, ttl } = data;
  const record = (type: number, value: string): DnsRecord => ({ name, type, ttl, data: value });
  if (name === zone) return [record(RECORD_TYPES.NS, `ns.dns.${zone}`)];
  if (name === `dns-version.${zone}`) return [record(RECORD_TYPES.TXT, TXT_VERSION)];
  const labels = name.slice(0, -(zone.length + 1)).split('.');
  const kind = labels.pop();
  if (kind === 'svc' && labels.length === 0) return [];
  const namespace = labels.pop();
  if (kind === 'pod' && labels.length === 1) {
    const ip = (labels[0] ?? '').replaceAll('-', '.');
    return isIP(ip) === 4 ? [record(RECORD_TYPES.A, ip)] : undefined;
  }
  if (kind !== 'svc' || namespace === undefined) return undefined;
  const serviceName = labels.pop();
  if (serviceName === undefined) return data.services.list(namespace).length > 0 ? [] : undefined;
  const service = data.services.get(`${namespace}/${serviceName}`);
  if (!service) return undefined;
  const { spec } = service;
  if (spec?.type === 'ExternalName')
    return labels.length === 0 ? [record(RECORD_TYPES.CNAME, spec.externalName ?? '')] : undefined;
  const headless = spec?.clusterIP === 'None';
  const targets = headless ? endpointTargets(service, data) : clusterTargets(service, data);
  if (labels.length === 2 && labels.every((label) => label.startsWith('_'))) {
    const [port, protocol] = labels.map((label) => label.slice(1));
    const fits = targets.flatMap((target) =>
      target.ports
        .filter((one) => one.name === port && one.protocol.toLowerCase() === protocol)
        .map((one) => record(RECORD_TYPES.SRV, `0 100 ${one.port} ${target.name}`)),
    );
    return fits.length > 0 ? fits : undefined;
  }
  if (labels.length === 1) {
    const own = headless ? targets.filter((target) => target.name === name) : [];
    return own.length > 0 ? own.map((target) => record(RECORD_TYPES.A, target.ip)) : undefined;
  }
  if (labels.length > 1) return undefined;
  if (headless && targets.length === 0) return undefined;
  return [
    ...targets.map((target) => record(RECORD_TYPES.A, target.ip)),
    ...targets.flatMap((target) =>
      target.ports.map((port) => record(RECORD_TYPES.SRV, `0 100 ${port.port} ${target.name}`)),
    ),
  ];
}

function nameOf(service: Service, zone: string): string {
  return `${service.metadata.name}.${service.metadata.namespace}.svc.${zone}`;
}

function clusterTargets(service: Service, { zone }: ZoneData): Target[] {
  const ports = (service.spec?.ports ?? []).map((port) => ({
    name: port.name ?? '',
    protocol: port.protocol ?? 'TCP',
    port: port.port,
  }));
  return (service.spec?.clusterIPs ?? [service.spec?.clusterIP ?? ''])
    .filter((ip) => isIP(ip) === 4)
    .map((ip) => ({ name: nameOf(service, zone), ip, ports }));
}

function endpointTargets(service: Service, data: ZoneData): Target[] {
  const base = nameOf(service, data.zone);
  const everybody = service.spec?.publishNotReadyAddresses === true;
  return data.slices
    .byIndex(BY_SERVICE, `${service.metadata.namespace}/${service.metadata.name}`)
    .flatMap((slice) => {
      const ports = (slice.ports ?? []).flatMap((port) =>
        port.port === undefined
          ? []
          : [{ name: port.name ?? '', protocol: port.protocol ?? 'TCP', port: port.port }],
      );
      return (slice.endpoints ?? [])
        .filter((endpoint) => everybody || endpoint.conditions?.ready !== false)
        .flatMap((endpoint) =>
          endpoint.addresses.map((ip) => ({
            name: `${endpoint.hostname ?? ip.replaceAll('.', '-')}.${base}`,
            ip,
            ports,
          })),
        );
    });
}

function reverse(question: DnsQuestion, data: ZoneData): ZoneAnswer {
  const ip = question.name
    .replace(/\.in-addr\.arpa$/, '')
    .split('.')
    .reverse()
    .join('.');
  const service = data.services
    .list()
    .find((one) => (one.spec?.clusterIPs ?? [one.spec?.clusterIP]).includes(ip));
  let target = service ? nameOf(service, data.zone) : undefined;
  for (const headless of service ? [] : data.services.list()) {
    target ??= endpointTargets(headless, data).find((one) => one.ip === ip)?.name;
  }
  if (target === undefined) return negative(RESPONSE_CODES.NXDOMAIN, data);
  return {
    code: RESPONSE_CODES.NOERROR,
    answers: [{ name: question.name, type: RECORD_TYPES.PTR, ttl: data.ttl, data: target }],
    authorities: [],
    authoritative: true,
  };
}
