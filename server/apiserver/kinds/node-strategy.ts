import { deepEqual, type FieldError, type Node, type UnstructuredObject } from '#server/kube';
import { as, type Strategy } from '../kind.ts';
import { duplicate, forbiddenField } from './field-errors.ts';
import { taintErrors } from './toleration-validation.ts';

const ONLY =
  'node updates may only change labels, taints, or capacity (or configSource, if the DynamicKubeletConfig feature gate is enabled)';

function defaultNode(object: UnstructuredObject): void {
  const { spec, status } = as<Node>(object);
  if (status?.capacity && !status.allocatable) status.allocatable = { ...status.capacity };
  if (!spec) return;
  // The older name of the field is the first of the newer one.
  if (spec.podCIDR && !spec.podCIDRs?.length) spec.podCIDRs = [spec.podCIDR];
  const first = spec.podCIDRs?.[0];
  if (first) spec.podCIDR = first;
}

function addressErrors(node: Node): FieldError[] {
  const seen = new Set<string>();
  return (node.status?.addresses ?? []).flatMap((address, index) => {
    const key = `${address.type}/${address.address}`;
    if (seen.has(key)) return [duplicate(`status.addresses[${index}]`, address)];
    seen.add(key);
    return [];
  });
}

function nodeErrors(node: Node): FieldError[] {
  return [...taintErrors(node.spec?.taints, 'spec.taints'), ...addressErrors(node)];
}

/** Models ValidateNodeUpdate: pod ranges and the provider's id are set once. */
function nodeUpdateErrors(node: Node, old: Node): FieldError[] {
  const errors = addressErrors(node);
  const before = old.spec ?? {};
  const after = node.spec ?? {};
  if (before.podCIDRs?.length && !deepEqual(after.podCIDRs, before.podCIDRs)) {
    errors.push(
      forbiddenField('spec.podCIDRs', 'node updates may not change podCIDR except from "" to valid'),
    );
  }
  if (before.providerID && after.providerID !== before.providerID) {
    errors.push(
      forbiddenField('spec.providerID', 'node updates may not change providerID except from "" to valid'),
    );
  }
  errors.push(...taintErrors(after.taints, 'spec.taints'));
  const { podCIDR, podCIDRs, providerID, taints, unschedulable } = after;
  const allowed = {
    ...before,
    taints,
    unschedulable,
    ...(before.podCIDRs?.length ? {} : { podCIDR, podCIDRs }),
    ...(before.providerID ? {} : { providerID }),
  };
  if (!deepEqual(after, allowed)) errors.push(forbiddenField('[]', ONLY));
  return errors;
}

/** Models kubernetes/pkg/registry/core/node. */
export const nodeStrategy: Strategy = {
  allowUnconditionalUpdate: true,
  defaults: defaultNode,
  validate: (object) => nodeErrors(as<Node>(object)),
  validateUpdate: (object, old) => nodeUpdateErrors(as<Node>(object), as<Node>(old)),
  validateStatusUpdate: (object) => addressErrors(as<Node>(object)),
};
