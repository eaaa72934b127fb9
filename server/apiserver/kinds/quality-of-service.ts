import { compareQuantities, type Pod, type PodSpec, type ResourceRequirements } from '#server/kube';

const COUNTED = ['cpu', 'memory'] as const;

function positive(quantity: string | undefined): quantity is string {
  return quantity !== undefined && compareQuantities(quantity, '0') > 0;
}

function consumers(spec: PodSpec): ResourceRequirements[] {
  if (spec.resources && (spec.resources.limits || spec.resources.requests)) return [spec.resources];
  return [...(spec.containers ?? []), ...(spec.initContainers ?? [])].map(
    (container) => container.resources ?? {},
  );
}

/**
 * `Guaranteed` when every container limits cpu and memory and asks for exactly that much, `BestEffort` when none asks
 * for anything, else `Burstable`. Models kubernetes/pkg/apis/core/helper/qos.ComputePodQOS.
 */
export function qualityOfService(pod: Pod): string {
  const all = consumers(pod.spec);
  const asksForSome = all.some(({ limits, requests }) =>
    COUNTED.some((resource) => positive(limits?.[resource]) || positive(requests?.[resource])),
  );
  if (!asksForSome) return 'BestEffort';
  const guaranteed = all.every(({ limits, requests }) =>
    COUNTED.every((resource) => {
      const limit = limits?.[resource];
      const request = requests?.[resource] ?? limit;
      return positive(limit) && request !== undefined && compareQuantities(limit, request) === 0;
    }),
  );
  return guaranteed ? 'Guaranteed' : 'Burstable';
}
