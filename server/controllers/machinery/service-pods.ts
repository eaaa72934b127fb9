import type { Informer } from '#server/client';
import { deepEqual, matchesLabels, type Pod, type Service } from '#server/kube';
import { isFinished, isReady, podCondition } from './pods.ts';

/** The services of the pod's namespace that select it by labels. */
export function servicesSelecting(services: Informer<Service>, pod: Pod): Service[] {
  return services.list(pod.metadata.namespace ?? '').filter(({ spec }) => {
    return (
      spec.selector !== undefined &&
      Object.keys(spec.selector).length > 0 &&
      matchesLabels(spec.selector, pod.metadata.labels)
    );
  });
}

/** Services whose pods nobody publishes: they point elsewhere or are filled by others. */
export function isPublished({ spec }: Service): boolean {
  return spec.type !== 'ExternalName' && spec.selector !== undefined && Object.keys(spec.selector).length > 0;
}

/** The pod has an address and may serve now or again. Models endpointutil.ShouldPodBeInEndpoints. */
export function canServe(pod: Pod, includeTerminating: boolean): boolean {
  if (isFinished(pod)) return false;
  if (!pod.status?.podIP && !pod.status?.podIPs?.length) return false;
  return includeTerminating || !pod.metadata.deletionTimestamp;
}

/** The DNS name of the pod under the service, if it is to have one. Models endpointutil.ShouldSetHostname. */
export function hostnameIn(service: Service, pod: Pod): string | undefined {
  const { hostname, subdomain } = pod.spec;
  return hostname &&
    subdomain === service.metadata.name &&
    service.metadata.namespace === pod.metadata.namespace
    ? hostname
    : undefined;
}

/** Services without a cluster address: names lead to the pods themselves. */
export function isHeadless({ spec }: Service): boolean {
  return spec.clusterIP === undefined || spec.clusterIP === '' || spec.clusterIP === 'None';
}

/**
 * The number a service port means on a pod: itself, or the container port of that name; undefined when the pod has none.
 * Models podutil.FindPort.
 */
export function portOn(pod: Pod, port: NonNullable<Service['spec']['ports']>[number]): number | undefined {
  const target = port.targetPort ?? port.port;
  if (typeof target === 'number') return target === 0 ? port.port : target;
  const sidecars = pod.spec.initContainers?.filter(({ restartPolicy }) => restartPolicy === 'Always') ?? [];
  for (const container of [...pod.spec.containers, ...sidecars]) {
    for (const { name, protocol = 'TCP', containerPort } of container.ports ?? []) {
      if (name === target && protocol === (port.protocol ?? 'TCP')) return containerPort;
    }
  }
  return undefined;
}

/** Whether what services publish of a pod may differ between two of its versions. */
export function publishedFactsDiffer(a: Pod, b: Pod): boolean {
  const facts = ({ metadata, spec, status }: Pod) => [
    metadata.labels,
    metadata.deletionTimestamp !== undefined,
    spec.nodeName,
    status?.podIP,
    status?.podIPs,
  ];
  if (isReady(a) !== isReady(b) || isFinished(a) !== isFinished(b)) return true;
  return !deepEqual(facts(a), facts(b));
}

/** Which times of a service and its pods were seen already, to tell what changed since the last look. */
export interface TriggerTimes {
  /**
   * The earliest new moment (RFC 3339) that makes the service's endpoints change: its creation or a change of a pod's
   * readiness; undefined when nothing new is known.
   */
  newest(key: string, service: Service, pods: readonly Pod[]): string | undefined;
  forget(key: string): void;
}

/** Models endpointutil.TriggerTimeTracker. */
export function createTriggerTimes(): TriggerTimes {
  const seen = new Map<string, { service: string; pods: Map<string, string> }>();
  return {
    newest(key, service, pods) {
      const before = seen.get(key);
      const now = { service: service.metadata.creationTimestamp ?? '', pods: new Map<string, string>() };
      const changes: string[] = [];
      if (now.service > (before?.service ?? '')) changes.push(now.service);
      for (const pod of pods) {
        const time = podCondition(pod, 'Ready')?.lastTransitionTime;
        if (!time) continue;
        now.pods.set(pod.metadata.name, time);
        if (time > (before?.pods.get(pod.metadata.name) ?? '')) changes.push(time);
      }
      seen.set(key, now);
      return changes.sort()[0];
    },
    forget: (key) => {
      seen.delete(key);
    },
  };
}
