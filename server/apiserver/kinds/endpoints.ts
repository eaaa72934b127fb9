import type { EndpointSlice, Endpoints } from '#server/kube';
import { as, type KindDefinition } from '../kind.ts';
import { ageColumn, column, firstThree, nameColumn } from './cells.ts';
import { defineKind } from './define.ts';
import { endpointSliceStrategy, endpointsStrategy } from './endpoints-strategy.ts';

function hostPort(ip: string, port: number): string {
  return ip.includes(':') ? `[${ip}]:${port}` : `${ip}:${port}`;
}

/** Models formatEndpoints: ready addresses only, without ports when there are none. */
function endpointList(endpoints: Endpoints): string {
  const subsets = endpoints.subsets ?? [];
  if (subsets.length === 0) return '<none>';
  const listed = subsets.flatMap((subset) => {
    const addresses = subset.addresses ?? [];
    const ports = subset.ports ?? [];
    if (ports.length === 0) return addresses.map((address) => address.ip);
    return ports.flatMap((port) => addresses.map((address) => hostPort(address.ip, port.port)));
  });
  return firstThree(listed, '');
}

function slicePorts(slice: EndpointSlice): string {
  return firstThree(
    (slice.ports ?? []).map((port) => String(port.port ?? port.name ?? '*')),
    '<unset>',
  );
}

function sliceEndpoints(slice: EndpointSlice): string {
  return firstThree(
    (slice.endpoints ?? []).flatMap((endpoint) => endpoint.addresses ?? []),
    '<unset>',
  );
}

export const endpointKinds: readonly KindDefinition[] = [
  defineKind({
    group: '',
    kind: 'Endpoints',
    plural: 'endpoints',
    namespaced: true,
    types: 'core/v1',
    shortNames: ['ep'],
    deprecation: 'v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice',
    strategy: endpointsStrategy,
    columns: [
      nameColumn,
      column('Endpoints', 'The addresses and ports that answer.', (object) =>
        endpointList(as<Endpoints>(object)),
      ),
      ageColumn,
    ],
  }),
  defineKind({
    group: 'discovery.k8s.io',
    kind: 'EndpointSlice',
    plural: 'endpointslices',
    namespaced: true,
    types: 'discovery/v1',
    strategy: endpointSliceStrategy,
    columns: [
      nameColumn,
      column(
        'AddressType',
        'What kind of addresses it holds.',
        (object) => as<EndpointSlice>(object).addressType ?? '',
      ),
      column('Ports', 'The ports of every endpoint.', (object) => slicePorts(as<EndpointSlice>(object))),
      column('Endpoints', 'The addresses of the endpoints.', (object) =>
        sliceEndpoints(as<EndpointSlice>(object)),
      ),
      ageColumn,
    ],
  }),
];
