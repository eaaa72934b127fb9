import type { Service } from '#server/kube';
import { as, type Column } from '../kind.ts';
import { ageColumn, column, formatLabels, nameColumn, wideColumn } from './cells.ts';

function balancerAddresses(service: Service): string[] {
  const found = new Set<string>();
  for (const ingress of service.status?.loadBalancer?.ingress ?? []) {
    if (ingress.ip) found.add(ingress.ip);
    else if (ingress.hostname) found.add(ingress.hostname);
  }
  return [...found].sort();
}

function externalAddress(service: Service): string {
  const own = service.spec?.externalIPs ?? [];
  switch (service.spec?.type) {
    case 'ClusterIP':
    case 'NodePort':
      return own.join(',') || '<none>';
    case 'LoadBalancer':
      return [...balancerAddresses(service), ...own].join(',') || '<pending>';
    case 'ExternalName':
      return service.spec.externalName ?? '';
    default:
      return '<unknown>';
  }
}

function ports(service: Service): string {
  const listed = (service.spec?.ports ?? []).map((port) =>
    port.nodePort ? `${port.port}:${port.nodePort}/${port.protocol}` : `${port.port}/${port.protocol}`,
  );
  return listed.join(',') || '<none>';
}

/** Models printService of kubernetes/pkg/printers/internalversion. */
export const serviceColumns: Column[] = [
  nameColumn,
  column('Type', 'How the service is reached.', (object) => as<Service>(object).spec?.type ?? ''),
  column(
    'Cluster-IP',
    'The address inside the cluster.',
    (object) => as<Service>(object).spec?.clusterIPs?.[0] ?? '<none>',
  ),
  column('External-IP', 'The addresses outside the cluster.', (object) =>
    externalAddress(as<Service>(object)),
  ),
  column('Port(s)', 'The ports offered, and the node ports leading to them.', (object) =>
    ports(as<Service>(object)),
  ),
  ageColumn,
  wideColumn('Selector', 'The labels of the pods behind it.', (object) =>
    formatLabels(as<Service>(object).spec?.selector),
  ),
];
