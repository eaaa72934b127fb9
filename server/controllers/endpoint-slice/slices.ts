import { isHeadless } from '#server/controllers/machinery';
import {
  annotations,
  controllerOf,
  controllerReference,
  type DiscoveryEndpointPort,
  deepEqual,
  type Endpoint,
  type EndpointSlice,
  labels,
  type Service,
} from '#server/kube';
import type { AddressType } from './pod-endpoints.ts';

/** The most endpoints in one slice. */
export const SLICE_LIMIT = 100;
export const MANAGER = 'endpointslice-controller.k8s.io';

/** Endpoints that share their ports and address type: they may share slices. */
export interface EndpointGroup {
  addressType: AddressType;
  ports: DiscoveryEndpointPort[];
  endpoints: Endpoint[];
}

/** Slices without a name are to be created, named ones updated. */
export interface SlicePlan {
  create: SliceDraft[];
  update: EndpointSlice[];
  remove: EndpointSlice[];
}

export type SliceDraft = Omit<EndpointSlice, 'metadata'> & {
  metadata: Omit<EndpointSlice['metadata'], 'name'>;
};

const RESERVED: ReadonlySet<string> = new Set([
  labels.serviceName,
  labels.endpointSliceManagedBy,
  labels.headlessService,
]);

/** The labels of the Service's slices: its own, and who it is. Models setEndpointSliceLabels. */
export function sliceLabels(service: Service): Record<string, string> {
  const own = Object.entries(service.metadata.labels ?? {}).filter(([name]) => !RESERVED.has(name));
  return {
    ...Object.fromEntries(own),
    ...(isHeadless(service) ? { [labels.headlessService]: '' } : {}),
    [labels.serviceName]: service.metadata.name,
    [labels.endpointSliceManagedBy]: MANAGER,
  };
}

function identity({ addresses, hostname, targetRef }: Endpoint): string {
  return JSON.stringify([addresses, hostname, targetRef?.namespace, targetRef?.name, targetRef?.uid]);
}

function portsKey(addressType: string, ports: readonly DiscoveryEndpointPort[] | null | undefined): string {
  const texts = (ports ?? []).map(({ name = '', protocol, port, appProtocol }) =>
    JSON.stringify([name, protocol, port, appProtocol]),
  );
  return `${addressType} ${texts.sort().join()}`;
}

function newSlice(
  service: Service,
  { addressType, ports }: Omit<EndpointGroup, 'endpoints'>,
  endpoints: Endpoint[],
): SliceDraft {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      generateName: `${service.metadata.name}-`,
      namespace: service.metadata.namespace ?? '',
      labels: sliceLabels(service),
      ownerReferences: [controllerReference({ ...service, apiVersion: 'v1', kind: 'Service' })],
    },
    addressType,
    endpoints,
    ports,
  };
}

/** The smallest room among slices that takes `count` endpoints more. */
function bestFit(slices: readonly EndpointSlice[], count: number): EndpointSlice | undefined {
  const size = (slice: EndpointSlice): number => slice.endpoints?.length ?? 0;
  return slices.filter((slice) => size(slice) + count <= SLICE_LIMIT).sort((a, b) => size(b) - size(a))[0];
}

/** Fits the slices of one group to its endpoints. Models reconcileByPortMapping. */
function planGroup(service: Service, existing: readonly EndpointSlice[], group: EndpointGroup): SlicePlan {
  const missing = new Map(group.endpoints.map((endpoint) => [identity(endpoint), endpoint]));
  const wantedLabels = sliceLabels(service);
  const plan: SlicePlan = { create: [], update: [], remove: [] };
  const unchanged: EndpointSlice[] = [];
  for (const slice of existing) {
    const kept: Endpoint[] = [];
    for (const endpoint of slice.endpoints ?? []) {
      const next = missing.get(identity(endpoint));
      if (!next) continue;
      missing.delete(identity(endpoint));
      kept.push(deepEqual(next, endpoint) ? endpoint : next);
    }
    const same = deepEqual(kept, slice.endpoints ?? []) && deepEqual(wantedLabels, slice.metadata.labels);
    if (same && kept.length > 0) unchanged.push(slice);
    else if (kept.length === 0) plan.remove.push(slice);
    else
      plan.update.push({
        ...slice,
        metadata: { ...slice.metadata, labels: wantedLabels },
        endpoints: kept,
        ports: group.ports,
      });
  }
  const rest = [...missing.values()];
  for (const slice of plan.update) {
    slice.endpoints = [
      ...(slice.endpoints ?? []),
      ...rest.splice(0, SLICE_LIMIT - (slice.endpoints?.length ?? 0)),
    ];
  }
  while (rest.length > 0) {
    const fit = rest.length < SLICE_LIMIT ? bestFit(unchanged, rest.length) : undefined;
    if (fit) plan.update.push({ ...fit, endpoints: [...(fit.endpoints ?? []), ...rest.splice(0)] });
    else plan.create.push(newSlice(service, group, rest.splice(0, SLICE_LIMIT)));
  }
  return plan;
}

/** Rather than deleting one slice and creating another, the first becomes the second. */
function reuse(service: Service, plan: SlicePlan): SlicePlan {
  const remove: EndpointSlice[] = [];
  const create = [...plan.create];
  const update = [...plan.update];
  for (const slice of plan.remove) {
    const draft = create.findIndex(({ addressType }) => addressType === slice.addressType);
    const [next] =
      draft >= 0 && controllerOf(slice)?.uid === service.metadata.uid ? create.splice(draft, 1) : [];
    if (!next) remove.push(slice);
    else
      update.push({
        ...slice,
        metadata: { ...slice.metadata, labels: next.metadata.labels ?? {} },
        endpoints: next.endpoints ?? [],
        ports: next.ports ?? [],
      });
  }
  return { create, update, remove };
}

/** A Service none of whose pods can be published keeps one empty slice of each address type. */
function withPlaceholder(
  service: Service,
  existing: readonly EndpointSlice[],
  addressType: AddressType,
  plan: SlicePlan,
): SlicePlan {
  if (plan.create.length > 0 || existing.length > plan.remove.length) return plan;
  const draft = newSlice(service, { addressType, ports: [] }, []);
  const [only] = plan.remove;
  const isIt = only && plan.remove.length === 1 && !only.endpoints?.length && !only.ports?.length;
  if (isIt && deepEqual(only.metadata.labels, draft.metadata.labels)) return { ...plan, remove: [] };
  return { ...plan, create: [draft] };
}

/**
 * What to write so that the Service's slices (`existing`: all it has) hold exactly the endpoints of `groups`. Endpoints
 * stay in their slice and in their order. `triggered` (RFC 3339) is noted on everything written.
 * Models reconcile, reconcileByAddressType and finalize of k8s.io/endpointslice/reconciler.go.
 */
export function planSlices(
  service: Service,
  existing: readonly EndpointSlice[],
  groups: readonly EndpointGroup[],
  types: readonly AddressType[],
  triggered?: string,
): SlicePlan {
  const total: SlicePlan = { create: [], update: [], remove: [] };
  const add = (plan: SlicePlan): void => {
    total.create.push(...plan.create);
    total.update.push(...plan.update);
    total.remove.push(...plan.remove);
  };
  for (const type of types) {
    const ofType = existing.filter(({ addressType }) => addressType === type);
    const plan: SlicePlan = { create: [], update: [], remove: [] };
    const wanted = groups.filter(({ addressType }) => addressType === type);
    const keys = new Set(wanted.map(({ ports }) => portsKey(type, ports)));
    for (const group of wanted) {
      const key = portsKey(type, group.ports);
      const part = planGroup(
        service,
        ofType.filter((slice) => portsKey(type, slice.ports) === key),
        group,
      );
      plan.create.push(...part.create);
      plan.update.push(...part.update);
      plan.remove.push(...part.remove);
    }
    plan.remove.push(...ofType.filter((slice) => !keys.has(portsKey(type, slice.ports))));
    add(reuse(service, withPlaceholder(service, ofType, type, plan)));
  }
  total.remove.push(...existing.filter(({ addressType }) => !types.some((type) => type === addressType)));
  const mark = <M extends { annotations?: Record<string, string> }>(metadata: M): M => {
    const { [annotations.endpointsLastChangeTriggerTime]: _, ...others } = metadata.annotations ?? {};
    const marks = triggered ? { ...others, [annotations.endpointsLastChangeTriggerTime]: triggered } : others;
    const { annotations: __, ...rest } = metadata;
    return { ...rest, ...(Object.keys(marks).length > 0 ? { annotations: marks } : {}) } as M;
  };
  return {
    create: total.create.map((slice) => ({ ...slice, metadata: mark(slice.metadata) })),
    update: total.update.map((slice) => ({ ...slice, metadata: mark(slice.metadata) })),
    remove: total.remove,
  };
}
