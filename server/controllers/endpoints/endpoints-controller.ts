import { errorMessage } from '#server/base';
import { type Controller, type ControllerContext, createEventRecorder, type WorkQueue } from '#server/client';
import {
  type Arrange,
  createLoop,
  createTriggerTimes,
  isHeadless,
  isNamespaceTerminating,
  isPublished,
  publishedFactsDiffer,
  servicesSelecting,
} from '#server/controllers/machinery';
import {
  annotations,
  deepEqual,
  type Endpoints,
  endpoints,
  isNotFound,
  labels,
  matchesLabels,
  objectKey,
  type Pod,
  pods,
  type Service,
  services,
  splitKey,
} from '#server/kube';
import { subsetsOf, truncated } from './subsets.ts';

const WORKERS = 2;
/** The most addresses in one Endpoints object. */
const ADDRESS_LIMIT = 1000;
const MANAGED_BY = 'endpoints.kubernetes.io/managed-by';
const MANAGER = 'endpoint-controller';
const OVER_CAPACITY = 'endpoints.kubernetes.io/over-capacity';
/** Endpoints used as a lock by leader election of old. */
const LEADER = 'control-plane.alpha.kubernetes.io/leader';

/** The Endpoints a Service is to have. `old`: what it has. Models the second half of syncService. */
function nextEndpoints(
  service: Service,
  pods: readonly Pod[],
  old: Endpoints | undefined,
  triggered: string | undefined,
): Endpoints {
  const all = subsetsOf(service, pods);
  const cut = truncated(all, ADDRESS_LIMIT);
  const subsets = cut ?? all;
  const {
    [OVER_CAPACITY]: _,
    [annotations.endpointsLastChangeTriggerTime]: __,
    ...kept
  } = old?.metadata.annotations ?? {};
  const marks = {
    ...kept,
    ...(triggered ? { [annotations.endpointsLastChangeTriggerTime]: triggered } : {}),
    ...(cut ? { [OVER_CAPACITY]: 'truncated' } : {}),
  };
  const { annotations: ___, ...metadata } = old?.metadata ?? {
    name: service.metadata.name,
    namespace: service.metadata.namespace ?? '',
  };
  return {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: {
      ...metadata,
      labels: {
        ...service.metadata.labels,
        [MANAGED_BY]: MANAGER,
        ...(isHeadless(service) ? { [labels.headlessService]: '' } : {}),
      },
      ...(Object.keys(marks).length > 0 ? { annotations: marks } : {}),
    },
    ...(subsets.length > 0 ? { subsets } : {}),
  };
}

function saysTheSame(a: Endpoints, b: Endpoints): boolean {
  const facts = ({ metadata, subsets = [] }: Endpoints) => [
    metadata.labels,
    metadata.annotations?.[OVER_CAPACITY],
    subsets ?? [],
  ];
  return deepEqual(facts(a), facts(b));
}

/** Keeps Endpoints of Services. Models kubernetes/pkg/controller/endpoint. */
export function createEndpointsController(context: ControllerContext): Controller {
  const { client, informers, clock, ids, log } = context;
  const serviceInformer = informers.informer(services);
  const podInformer = informers.informer(pods);
  const endpointsInformer = informers.informer(endpoints);
  const recorder = createEventRecorder({ client, component: 'endpoint-controller', clock, ids, log });
  const triggerTimes = createTriggerTimes();

  const write = async (service: Service, next: Endpoints, exists: boolean): Promise<void> => {
    try {
      if (exists) await client.update(endpoints, next);
      else await client.create(endpoints, next);
    } catch (error) {
      if (!exists && isNamespaceTerminating(error)) return;
      const [reason, verb] = exists
        ? ['FailedToUpdateEndpoint', 'update']
        : ['FailedToCreateEndpoint', 'create'];
      recorder.event(
        service,
        'Warning',
        reason,
        `Failed to ${verb} endpoint for service ${objectKey(service)}: ${errorMessage(error)}`,
      );
      throw error;
    }
  };
  const reconcile = async (key: string): Promise<void> => {
    const service = serviceInformer.get(key);
    const old = endpointsInformer.get(key);
    if (!service) {
      triggerTimes.forget(key);
      const { namespace, name } = splitKey(key);
      if (!old) return;
      try {
        await client.delete(endpoints, { namespace, name });
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
      return;
    }
    if (!isPublished(service)) return;
    const selector = service.spec.selector ?? {};
    const selected = podInformer
      .list(service.metadata.namespace ?? '')
      .filter((pod) => matchesLabels(selector, pod.metadata.labels));
    const triggered = triggerTimes.newest(key, service, selected);
    const next = nextEndpoints(service, selected, old, triggered);
    if (old && saysTheSame(old, next)) return;
    if (!old && service.metadata.deletionTimestamp) return;
    await write(service, next, old !== undefined);
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
    on(endpointsInformer, { deleted: (object) => queue.add(objectKey(object)) });
  };
  /** What a Service deleted while nobody looked has left behind. */
  const onReady = (queue: WorkQueue): void => {
    for (const object of endpointsInformer.list()) {
      if (!object.metadata.annotations?.[LEADER]) queue.add(objectKey(object));
    }
  };
  return createLoop({
    name: 'endpoints',
    context,
    workers: WORKERS,
    watch,
    reconcile,
    onReady,
    onStop: () => recorder.stop(),
  });
}
