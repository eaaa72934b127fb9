import { deepEqual, invalid, type Pod, type PodCondition, type UnstructuredObject } from '#server/kube';
import { as, type RequestContext, type Strategy } from '../kind.ts';
import { forbiddenField } from './field-errors.ts';
import { defaultPod } from './pod-defaults.ts';
import { MUTABLE_POD_FIELDS, podUpdateErrors } from './pod-update-validation.ts';
import { podErrors } from './pod-validation.ts';
import { podSpecWarnings } from './pod-warnings.ts';
import { qualityOfService } from './quality-of-service.ts';

const KIND = { group: '', kind: 'Pod' };

function gated(pod: Pod): PodCondition[] {
  if (!pod.spec.schedulingGates?.length) return [];
  return [
    {
      type: 'PodScheduled',
      status: 'False',
      reason: 'SchedulingGated',
      message: 'Scheduling is blocked due to non-empty scheduling gates',
    },
  ];
}

function prepareForCreate(object: UnstructuredObject): void {
  const pod = as<Pod>(object);
  const conditions = gated(pod);
  pod.status = {
    phase: 'Pending',
    ...(conditions.length > 0 ? { conditions } : {}),
    qosClass: qualityOfService(pod),
  };
}

function prepareForUpdate(
  object: UnstructuredObject,
  old: UnstructuredObject,
  context: RequestContext,
): void {
  const pod = as<Pod>(object);
  const before = as<Pod>(old);
  if (context.subresource === 'status') {
    keepFromOldStatus(pod, before);
    return;
  }
  if (context.subresource === 'ephemeralcontainers') {
    const errors = [...podErrors(pod), ...podUpdateErrors(pod, before)];
    if (errors.length > 0) throw invalid(KIND, pod.metadata.name, errors);
    return;
  }
  if (context.subresource === 'resize') {
    const errors = podErrors(pod);
    if (errors.length > 0) throw invalid(KIND, pod.metadata.name, errors);
    return;
  }
  if (context.subresource) return;
  if (!deepEqual(pod.spec.ephemeralContainers ?? [], before.spec.ephemeralContainers ?? [])) {
    throw invalid(KIND, pod.metadata.name, [forbiddenField('spec', MUTABLE_POD_FIELDS)]);
  }
}

/** Models podStatusStrategy.PrepareForUpdate: what the status endpoint leaves alone. */
function keepFromOldStatus(pod: Pod, before: Pod): void {
  pod.status ??= {};
  if (before.metadata.ownerReferences) pod.metadata.ownerReferences = before.metadata.ownerReferences;
  else delete pod.metadata.ownerReferences;
  if (!pod.status.qosClass && before.status?.qosClass) pod.status.qosClass = before.status.qosClass;
  if (!pod.status.observedGeneration && before.status?.observedGeneration) {
    pod.status.observedGeneration = before.status.observedGeneration;
  }
  for (const condition of pod.status.conditions ?? []) {
    const known = before.status?.conditions?.find((one) => one.type === condition.type)?.observedGeneration;
    if (!condition.observedGeneration && known) condition.observedGeneration = known;
  }
}

/** Models kubernetes/pkg/registry/core/pod. */
export const podStrategy: Strategy = {
  allowUnconditionalUpdate: true,
  defaults: (object) => defaultPod(as<Pod>(object)),
  prepareForCreate,
  prepareForUpdate,
  validate: (object) => podErrors(as<Pod>(object)),
  validateUpdate: (object, old) => podUpdateErrors(as<Pod>(object), as<Pod>(old)),
  validateStatusUpdate(object, old) {
    const [next, before] = [as<Pod>(object), as<Pod>(old)];
    if ((next.spec.nodeName ?? '') === (before.spec.nodeName ?? '')) return [];
    return [forbiddenField('status.nodeName', 'may not be changed directly')];
  },
  warnings: (object) => podSpecWarnings(as<Pod>(object).spec, 'spec'),
  // Only a Binding sets the node, and it does not count.
  raisesGeneration: (object, old) =>
    !deepEqual({ ...as<Pod>(object).spec, nodeName: '' }, { ...as<Pod>(old).spec, nodeName: '' }),
  gracePeriod(object, asked) {
    const pod = as<Pod>(object);
    const phase = pod.status?.phase;
    if (!pod.spec.nodeName || phase === 'Failed' || phase === 'Succeeded') return 0;
    const period = asked ?? pod.spec.terminationGracePeriodSeconds ?? 0;
    return period < 0 ? 1 : period;
  },
};
