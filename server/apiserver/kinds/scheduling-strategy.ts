import type { FieldError, PriorityClass } from '#server/kube';
import { as, type Strategy } from '../kind.ts';
import { forbiddenField, IMMUTABLE, invalidValue, notSupported } from './field-errors.ts';

/** Priorities above this one belong to the system. */
export const HIGHEST_USER_PRIORITY = 1_000_000_000;

/** The classes every cluster has: pods may always name them. */
export const SYSTEM_PRIORITIES: Readonly<Record<string, number>> = {
  'system-cluster-critical': 2_000_000_000,
  'system-node-critical': 2_000_001_000,
};

const POLICIES = ['Never', 'PreemptLowerPriority'];

/** Models ValidatePriorityClass of kubernetes/pkg/apis/scheduling/validation. */
function priorityClassErrors(object: PriorityClass): FieldError[] {
  const errors: FieldError[] = [];
  const { name } = object.metadata;
  const value = object.value ?? 0;
  if (name.startsWith('system-')) {
    const known = SYSTEM_PRIORITIES[name];
    const why =
      known === undefined
        ? 'not a known system priority class'
        : known === value
          ? undefined
          : `value of ${name} PriorityClass must be ${known}`;
    if (why) {
      const text = `priority class names with 'system-' prefix are reserved for system use only. error: ${why}`;
      errors.push(forbiddenField('metadata.name', text));
    }
  } else if (value > HIGHEST_USER_PRIORITY) {
    errors.push(
      forbiddenField('value', `maximum allowed value of a user defined priority is ${HIGHEST_USER_PRIORITY}`),
    );
  }
  if (object.preemptionPolicy && !POLICIES.includes(object.preemptionPolicy)) {
    errors.push(notSupported('preemptionPolicy', object.preemptionPolicy, POLICIES));
  }
  return errors;
}

export const priorityClassStrategy: Strategy = {
  allowUnconditionalUpdate: true,
  defaults(object) {
    as<PriorityClass>(object).preemptionPolicy ??= 'PreemptLowerPriority';
  },
  validate: (object) => priorityClassErrors(as<PriorityClass>(object)),
  validateUpdate(object, old) {
    const [next, before] = [as<PriorityClass>(object), as<PriorityClass>(old)];
    const errors: FieldError[] = [];
    if (next.value !== before.value) errors.push(forbiddenField('value', 'may not be changed in an update.'));
    if (next.preemptionPolicy !== before.preemptionPolicy) {
      errors.push(invalidValue('preemptionPolicy', next.preemptionPolicy, IMMUTABLE));
    }
    return errors;
  },
};
