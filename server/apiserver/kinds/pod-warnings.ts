import {
  type Container,
  type ContainerPort,
  type PodSpec,
  quantityToMilli,
  type TopologySpreadConstraint,
} from '#server/kube';

interface Placed {
  container: Container;
  path: string;
}

function containersOf(spec: PodSpec, field: string): Placed[] {
  const place = (name: 'initContainers' | 'containers' | 'ephemeralContainers'): Placed[] =>
    (spec[name] ?? []).map((container, index) => ({ container, path: `${field}.${name}[${index}]` }));
  return [...place('initContainers'), ...place('containers'), ...place('ephemeralContainers')];
}

function portWarnings(placed: readonly Placed[]): string[] {
  const warnings: string[] = [];
  const known = new Map<string, { path: string; port: ContainerPort }[]>();
  for (const { container, path } of placed) {
    for (const [index, port] of (container.ports ?? []).entries()) {
      const at = `${path}.ports[${index}]`;
      const key = `${port.containerPort}/${port.protocol}`;
      const others = known.get(key) ?? [];
      for (const other of others) {
        const relation = portRelation(port, other.port);
        if (relation) warnings.push(`${at}: ${relation} port definition with ${other.path}`);
      }
      known.set(key, [...others, { path: at, port }]);
    }
  }
  return warnings;
}

function portRelation(a: ContainerPort, b: ContainerPort): string | undefined {
  const [hostA, hostB] = [a.hostPort ?? 0, b.hostPort ?? 0];
  if ((a.hostIP ?? '') === (b.hostIP ?? '') && hostA === hostB) return 'duplicate';
  if (hostA === 0 || hostB === 0) return 'overlapping';
  return hostA === hostB && !a.hostIP !== !b.hostIP ? 'dangerously ambiguous' : undefined;
}

function environmentWarnings({ container, path }: Placed): string[] {
  const seen = new Set<string>();
  return (container.env ?? []).flatMap((variable, index) => {
    if (!seen.has(variable.name)) {
      seen.add(variable.name);
      return [];
    }
    const reference = `$(${variable.name})`;
    const extends_ =
      !variable.valueFrom && variable.value !== reference && variable.value?.includes(reference);
    if (extends_) return [];
    return [
      `${path}.env[${index}]: hides previous definition of "${variable.name}", which may be dropped when using apply`,
    ];
  });
}

function fractionWarnings({ container, path }: Placed): string[] {
  const warnings: string[] = [];
  for (const resource of ['memory', 'ephemeral-storage']) {
    for (const list of ['limits', 'requests'] as const) {
      const quantity = container.resources?.[list]?.[resource];
      if (quantity === undefined || quantityToMilli(quantity) % 1000n === 0n) continue;
      warnings.push(
        `${path}.resources.${list}[${resource}]: fractional byte value "${quantity}" is invalid, must be an integer`,
      );
    }
  }
  return warnings;
}

function repeated(items: readonly string[], field: string, member: string, what: string): string[] {
  return items.flatMap((item, index) =>
    items.indexOf(item) < index
      ? [`${field}[${index}].${member}: duplicate ${what} ${JSON.stringify(item)}`]
      : [],
  );
}

function spreadWarnings(constraints: readonly TopologySpreadConstraint[], field: string): string[] {
  return constraints.flatMap((constraint, index) =>
    constraint.labelSelector
      ? []
      : [
          `${field}.topologySpreadConstraints[${index}].labelSelector: a null labelSelector results in matching no pod`,
        ],
  );
}

/**
 * What works but is most likely a mistake. `field` is the path of the pod spec: `spec`, or `spec.template.spec`.
 * Models kubernetes/pkg/api/pod/warnings.go.
 */
export function podSpecWarnings(spec: PodSpec, field: string): string[] {
  const placed = containersOf(spec, field);
  const warnings = [
    ...spreadWarnings(spec.topologySpreadConstraints ?? [], field),
    ...repeated(
      (spec.hostAliases ?? []).map((alias) => alias.ip),
      `${field}.hostAliases`,
      'ip',
      'ip',
    ),
    ...repeated(
      (spec.imagePullSecrets ?? []).map((secret) => secret.name ?? ''),
      `${field}.imagePullSecrets`,
      'name',
      'name',
    ),
    ...placed.flatMap((one) => [...fractionWarnings(one), ...environmentWarnings(one)]),
    ...portWarnings(placed),
  ];
  if ((spec.terminationGracePeriodSeconds ?? 0) < 0) {
    warnings.push(
      `${field}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1`,
    );
  }
  return warnings;
}
