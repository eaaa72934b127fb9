import {
  type Binding,
  builtinSchema,
  conflict,
  formatTime,
  invalid,
  type Pod,
  type UnstructuredObject,
} from '#server/kube';
import { as } from '../kind.ts';
import { notSupported, required } from './field-errors.ts';
import { shapeAsGo } from './go-shape.ts';

const RESOURCE = { group: '', plural: 'pods/binding' };

/**
 * Puts a pod on the node a Binding names. Changes the private copy `pod`; `now` is wall-clock milliseconds.
 * Throws 409 when the pod has a node or is going away, 422 when the Binding is not of a node.
 * Models BindingREST of kubernetes/pkg/registry/core/pod/storage.
 */
export function bindPod(pod: Pod, binding: Binding, now: number): void {
  const { target } = binding;
  const { name } = pod.metadata;
  const kind = { group: '', kind: 'Binding' };
  if (target.kind && target.kind !== 'Node') {
    throw invalid(kind, name, [notSupported('target.kind', target.kind, ['Node', '<empty>'])]);
  }
  if (!target.name) throw invalid(kind, name, [required('target.name')]);
  if (pod.metadata.deletionTimestamp) {
    throw conflict(RESOURCE, name, `pod ${name} is being deleted, cannot be assigned to a host`);
  }
  if (pod.spec.nodeName) {
    throw conflict(
      RESOURCE,
      name,
      `pod ${name} is already assigned to node ${JSON.stringify(pod.spec.nodeName)}`,
    );
  }
  if (pod.spec.schedulingGates?.length) {
    throw conflict(RESOURCE, name, `pod ${name} has non-empty .spec.schedulingGates`);
  }
  pod.spec.nodeName = target.name;
  const annotations = binding.metadata?.annotations;
  if (annotations) pod.metadata.annotations = { ...pod.metadata.annotations, ...annotations };
  pod.status ??= {};
  const others = (pod.status.conditions ?? []).filter((condition) => condition.type !== 'PodScheduled');
  pod.status.conditions = [
    ...others,
    { type: 'PodScheduled', status: 'True', lastTransitionTime: formatTime(now) },
  ];
  shapeAsGo(as<UnstructuredObject>(pod), builtinSchema('core/v1#Pod'));
}
