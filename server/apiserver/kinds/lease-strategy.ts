import type { FieldError, Lease } from '#server/kube';
import { as, type Strategy } from '../kind.ts';
import { invalidValue } from './field-errors.ts';

/** Models ValidateLeaseSpec of kubernetes/pkg/apis/coordination/validation. */
function leaseErrors({ spec }: Lease): FieldError[] {
  const errors: FieldError[] = [];
  if (spec.leaseDurationSeconds !== undefined && spec.leaseDurationSeconds <= 0) {
    errors.push(
      invalidValue('spec.leaseDurationSeconds', spec.leaseDurationSeconds, 'must be greater than 0'),
    );
  }
  if (spec.leaseTransitions !== undefined && spec.leaseTransitions < 0) {
    errors.push(
      invalidValue('spec.leaseTransitions', spec.leaseTransitions, 'must be greater than or equal to 0'),
    );
  }
  return errors;
}

export const leaseStrategy: Strategy = {
  allowCreateOnUpdate: true,
  validate: (object) => leaseErrors(as<Lease>(object)),
  validateUpdate: (object) => leaseErrors(as<Lease>(object)),
};
