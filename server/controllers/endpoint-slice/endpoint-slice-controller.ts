import { errorMessage, OperationalError } from '#server/base';
import { type Controller, type ControllerContext, createEventRecorder, type WorkQueue } from '#server/client';
import {
  type Arrange,
  canServe,
  createLoop,
  createTriggerTimes,
  ensureIndex,
  isNamespaceTerminating,
  isPublished,
  publishedFactsDiffer,
  servicesSelecting,
} from '#server/controllers/machinery';
import {
  type EndpointSlice,
  endpointSlices,
  isNotFound,
  labels,
  matchesLabels,
  nodes,
  objectKey,
  type Pod,
  pods,
  type Service,
  services,
} from '#server/kube';
import { createOwnWrites } from './own-writes.ts';
import { type AddressType, addressTypes, podEndpoint, podPorts } from './pod-endpoints.ts';
import { type EndpointGroup, MANAGER, planSlices, type SlicePlan } from './slices.ts';

const WORKERS = 2;
/** A write the cache has not shown for this long, milliseconds, was undone before it could: it is waited for no longer. */
const LATE_CACHE_LIMIT = 5000;
const BY_SERVICE = 'endpoint-slices-of-service';

/** `<namespace>/<service>` of a slice this controller manages; undefined of any other. */
function serviceKey({ metadata }: EndpointSlice): string | undefined {
  const service = metadata.labels?.[labels.serviceName];
  if (!service || metadata.labels?.[labels.endpointSliceManagedBy] !== MANAGER) return undefined;
  return `${metadata.namespace}/${service}`;
}

/** Keeps EndpointSlices of Services. Models kubernetes/pkg/controller/endpointslice. */
export function createEndpointSliceController(context: ControllerContext): Controller {
  const { client, informers, clock, ids, log } = context;
  const serviceInformer = informers.informer(services);
  const podInformer = informers.informer(pods);
  const nodeInformer = informers.informer(nodes);
  const sliceInformer = informers.informer(endpointSlices);
  ensureIndex(sliceInformer, BY_SERVICE, (slice) => {
    const key = serviceKey(slice);
    return key ? [key] : [];
  });
  const recorder = createEventRecorder({ client, component: 'endpoint-slice-controller', clock, ids, log });
  const ownWrites = createOwnWrites();
  const triggerTimes = createTriggerTimes();
  /** Services looked at while the cache was late, and since when: looked at again as soon as it has caught up. */
  const waiting = new Map<string, number>();

  const groupsOf = (service: Service, selected: readonly Pod[], types: readonly AddressType[]) => {
    const groups = new Map<string, EndpointGroup>();
    const missingNodes = new Set<string>();
    for (const pod of selected) {
      if (!canServe(pod, true)) continue;
      const node = nodeInformer.get(pod.spec.nodeName ?? '');
      if (!node && !service.spec.publishNotReadyAddresses) {
        missingNodes.add(pod.spec.nodeName ?? '');
        continue;
      }
      const ports = podPorts(service, pod);
      for (const addressType of types) {
        const endpoint = podEndpoint(service, pod, node, addressType);
        if (!endpoint) continue;
        const key = JSON.stringify([addressType, ports]);
        const group = groups.get(key) ?? { addressType, ports, endpoints: [] };
        groups.set(key, group);
        group.endpoints.push(endpoint);
      }
    }
    return { groups: [...groups.values()], missingNodes: [...missingNodes] };
  };
  const write = async (key: string, service: Service, plan: SlicePlan): Promise<void> => {
    for (const slice of plan.create) {
      // What a Service being deleted creates would outlive its collection.
      if (service.metadata.deletionTimestamp) break;
      try {
        ownWrites.written(key, await client.create(endpointSlices, slice));
      } catch (error) {
        if (!isNamespaceTerminating(error)) throw error;
        return;
      }
    }
    for (const slice of plan.update) ownWrites.written(key, await client.update(endpointSlices, slice));
    for (const slice of plan.remove) {
      const { namespace, name } = slice.metadata;
      try {
        // Noted before it is seen gone, or that would look like a foreign change.
        ownWrites.removed(key, slice);
        await client.delete(endpointSlices, { namespace, name });
      } catch (error) {
        if (isNotFound(error)) continue;
        ownWrites.written(key, slice);
        throw error;
      }
    }
  };
  const reconcile = async (key: string) => {
    const service = serviceInformer.get(key);
    if (!service) {
      triggerTimes.forget(key);
      ownWrites.forget(key);
      waiting.delete(key);
      return undefined;
    }
    if (!isPublished(service)) return undefined;
    const cached = sliceInformer.byIndex(BY_SERVICE, key);
    if (ownWrites.isStale(key, cached)) {
      const since = waiting.get(key) ?? clock.now();
      waiting.set(key, since);
      if (clock.now() - since < LATE_CACHE_LIMIT) return { requeueAfter: LATE_CACHE_LIMIT };
      ownWrites.forget(key);
    }
    waiting.delete(key);
    const selector = service.spec.selector ?? {};
    const selected = podInformer
      .list(service.metadata.namespace ?? '')
      .filter((pod) => matchesLabels(selector, pod.metadata.labels));
    const types = addressTypes(service);
    const { groups, missingNodes } = groupsOf(service, selected, types);
    const existing = cached
      .filter((slice) => !slice.metadata.deletionTimestamp)
      .sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
    const triggered = triggerTimes.newest(key, service, selected);
    try {
      await write(key, service, planSlices(service, existing, groups, types, triggered));
    } catch (error) {
      const message = `Error updating Endpoint Slices for Service ${key}: ${errorMessage(error)}`;
      recorder.event(service, 'Warning', 'FailedToUpdateEndpointSlices', message);
      throw error;
    }
    if (missingNodes.length > 0) {
      throw new OperationalError(
        `pods of Service ${key} are not published: no such node: ${missingNodes.join(', ')}`,
      );
    }
    return undefined;
  };
  const watch = (on: Arrange, queue: WorkQueue): void => {
    const enqueueFor = (pod: Pod): void => {
      for (const service of servicesSelecting(serviceInformer, pod)) queue.add(objectKey(service));
    };
    on(serviceInformer, {
      added: (service) => queue.add(objectKey(service)),
      updated: (_, service) => queue.add(objectKey(service)),
      deleted: (service) => queue.add(objectKey(service)),
    });
    on(podInformer, {
      added: enqueueFor,
      updated(old, pod) {
        if (!publishedFactsDiffer(old, pod)) return;
        enqueueFor(pod);
        if (old.metadata.labels !== pod.metadata.labels) enqueueFor(old);
      },
      deleted: enqueueFor,
    });
    on(nodeInformer, {
      added(node) {
        for (const pod of podInformer.list()) if (pod.spec.nodeName === node.metadata.name) enqueueFor(pod);
      },
    });
    const seen = (slice: EndpointSlice, gone: boolean): void => {
      const key = serviceKey(slice);
      if (!key) return;
      if (ownWrites.observed(key, slice, gone) === 'foreign' || waiting.has(key)) queue.add(key);
    };
    on(sliceInformer, {
      added: (slice) => seen(slice, false),
      updated(old, slice) {
        const [before, after] = [serviceKey(old), serviceKey(slice)];
        // Relabelled away: its Service lost a slice.
        if (before && before !== after) queue.add(before);
        seen(slice, false);
      },
      deleted: (slice) => seen(slice, true),
    });
  };
  return createLoop({
    name: 'endpoint-slice',
    context,
    workers: WORKERS,
    watch,
    reconcile,
    onStop: () => recorder.stop(),
  });
}
