import { type FieldError, type Namespace, qualifiedNameErrors } from '#server/kube';
import { as, type Strategy } from '../kind.ts';
import { eachInvalid, invalidValue } from './field-errors.ts';

const NAME_LABEL = 'kubernetes.io/metadata.name';
const FINALIZER = 'kubernetes';
const STANDARD_FINALIZERS: readonly string[] = [FINALIZER, 'orphan', 'foregroundDeletion'];

function labelWithName(namespace: Namespace): void {
  if (!namespace.metadata.name) return;
  namespace.metadata.labels = { ...namespace.metadata.labels, [NAME_LABEL]: namespace.metadata.name };
}

function finalizerErrors(namespace: Namespace): FieldError[] {
  return (namespace.spec.finalizers ?? []).flatMap((finalizer) => {
    const errors = eachInvalid('spec.finalizers', finalizer, qualifiedNameErrors(finalizer));
    if (!finalizer.includes('/') && !STANDARD_FINALIZERS.includes(finalizer)) {
      const why = 'name is neither a standard finalizer name nor is it fully qualified';
      errors.push(invalidValue('spec.finalizers', finalizer, why));
    }
    return errors;
  });
}

/** Models kubernetes/pkg/registry/core/namespace. */
export const namespaceStrategy: Strategy = {
  nameRule: 'dns-label',
  allowUnconditionalUpdate: true,
  defaults(object) {
    const namespace = as<Namespace>(object);
    labelWithName(namespace);
    if (namespace.status && !namespace.status.phase) namespace.status.phase = 'Active';
  },
  prepareForCreate(object) {
    const namespace = as<Namespace>(object);
    labelWithName(namespace);
    namespace.status = { phase: 'Active' };
    const finalizers = namespace.spec.finalizers ?? [];
    namespace.spec.finalizers = finalizers.includes(FINALIZER) ? finalizers : [...finalizers, FINALIZER];
  },
  prepareForUpdate(object, old, context) {
    if (context.subresource === 'finalize') return;
    const namespace = as<Namespace>(object);
    const { finalizers } = as<Namespace>(old).spec;
    if (finalizers) namespace.spec = { finalizers: [...finalizers] };
    else namespace.spec = {};
  },
  validate: (object) => finalizerErrors(as<Namespace>(object)),
};
