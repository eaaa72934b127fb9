import {
  deepEqual,
  type FieldError,
  type LabelSelector,
  matchesLabelSelector,
  type PodTemplateSpec,
} from '#server/kube';
import { labelSelectorErrors } from './affinity-validation.ts';
import { forbiddenField, IMMUTABLE, invalidValue, notSupported, required } from './field-errors.ts';
import { podTemplateErrors } from './pod-validation.ts';

const PERCENT =
  "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";

/** A count or a percentage. Models ValidatePositiveIntOrPercent and IsNotMoreThan100Percent. */
export function countOrPercentErrors(
  value: number | string | undefined,
  field: string,
  atMostAll: boolean,
): FieldError[] {
  if (value === undefined) return [];
  if (typeof value === 'number') {
    return value < 0 ? [invalidValue(field, value, 'must be greater than or equal to 0')] : [];
  }
  if (!/^[0-9]+%$/.test(value)) return [invalidValue(field, value, PERCENT)];
  return atMostAll && Number.parseInt(value, 10) > 100
    ? [invalidValue(field, value, 'must not be greater than 100%')]
    : [];
}

/** `0`, `0%`: nothing. */
export function isZeroCount(value: number | string | undefined): boolean {
  return value === undefined || (typeof value === 'number' ? value === 0 : Number.parseInt(value, 10) === 0);
}

/**
 * A workload's selector and the template that must answer to it. `what` is upstream's word for the workload in the
 * text about empty selectors.
 */
export function selectorAndTemplateErrors(
  selector: LabelSelector | undefined,
  template: PodTemplateSpec,
  what: string,
): FieldError[] {
  const errors: FieldError[] = [];
  if (!selector) errors.push(required('spec.selector'));
  else {
    errors.push(...labelSelectorErrors(selector, 'spec.selector'));
    if (!Object.keys(selector.matchLabels ?? {}).length && !selector.matchExpressions?.length) {
      errors.push(invalidValue('spec.selector', selector, `empty selector is invalid for ${what}`));
    }
  }
  if (errors.length === 0 && !matchesLabelSelector(selector, template.metadata?.labels)) {
    const labels = template.metadata?.labels ?? null;
    errors.push(
      invalidValue('spec.template.metadata.labels', labels, '`selector` does not match template `labels`'),
    );
  }
  errors.push(...podTemplateErrors(template, 'spec.template'));
  const { spec } = template;
  if (spec?.restartPolicy && spec.restartPolicy !== 'Always') {
    errors.push(notSupported('spec.template.spec.restartPolicy', spec.restartPolicy, ['Always']));
  }
  if (spec?.activeDeadlineSeconds !== undefined) {
    const kind = what === 'daemonset' ? 'DaemonSet' : 'ReplicaSet';
    const field = 'spec.template.spec.activeDeadlineSeconds';
    errors.push(forbiddenField(field, `activeDeadlineSeconds in ${kind} is not Supported`));
  }
  return errors;
}

export function selectorUpdateErrors(
  next: LabelSelector | undefined,
  old: LabelSelector | undefined,
): FieldError[] {
  return deepEqual(next, old) ? [] : [invalidValue('spec.selector', next, IMMUTABLE)];
}
