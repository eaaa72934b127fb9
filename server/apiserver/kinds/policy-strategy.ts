import type { FieldError, PodDisruptionBudget } from '#server/kube';
import { as, type Strategy } from '../kind.ts';
import { labelSelectorErrors } from './affinity-validation.ts';
import { invalidValue } from './field-errors.ts';
import { countOrPercentErrors } from './workload-validation.ts';

/** Models ValidatePodDisruptionBudgetSpec of kubernetes/pkg/apis/policy/validation. */
function budgetErrors({ spec }: PodDisruptionBudget): FieldError[] {
  if (!spec) return [];
  const errors: FieldError[] = [];
  if (spec.minAvailable !== undefined && spec.maxUnavailable !== undefined) {
    errors.push(invalidValue('spec', spec, 'minAvailable and maxUnavailable cannot be both set'));
  }
  errors.push(...countOrPercentErrors(spec.minAvailable, 'spec.minAvailable', true));
  errors.push(...countOrPercentErrors(spec.maxUnavailable, 'spec.maxUnavailable', true));
  errors.push(...labelSelectorErrors(spec.selector, 'spec.selector'));
  return errors;
}

export const podDisruptionBudgetStrategy: Strategy = {
  allowUnconditionalUpdate: false,
  prepareForCreate(object) {
    as<PodDisruptionBudget>(object).status = {
      currentHealthy: 0,
      desiredHealthy: 0,
      disruptionsAllowed: 0,
      expectedPods: 0,
    };
  },
  validate: (object) => budgetErrors(as<PodDisruptionBudget>(object)),
  validateUpdate: (object) => budgetErrors(as<PodDisruptionBudget>(object)),
};
