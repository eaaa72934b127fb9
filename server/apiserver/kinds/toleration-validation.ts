import {
  type FieldError,
  labelValueErrors,
  qualifiedNameErrors,
  type Taint,
  type Toleration,
} from '#server/kube';
import { duplicate, eachInvalid, invalidValue, notSupported, required } from './field-errors.ts';

const EFFECTS = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'];
const OPERATORS = ['Equal', 'Exists'];
const KEY_AND_OPERATOR =
  'operator must be Exists when `key` is empty, which means "match all values and all keys"';

/** Models ValidateTolerations of kubernetes/pkg/apis/core/validation. */
export function tolerationErrors(
  tolerations: readonly Toleration[] | undefined,
  field: string,
): FieldError[] {
  return (tolerations ?? []).flatMap((toleration, index) => oneToleration(toleration, `${field}[${index}]`));
}

function oneToleration(toleration: Toleration, field: string): FieldError[] {
  const errors: FieldError[] = [];
  const operator = toleration.operator || 'Equal';
  if (toleration.key)
    errors.push(...eachInvalid(`${field}.key`, toleration.key, qualifiedNameErrors(toleration.key)));
  if (!toleration.key && operator !== 'Exists') {
    errors.push(invalidValue(`${field}.operator`, toleration.operator ?? '', KEY_AND_OPERATOR));
  }
  if (toleration.tolerationSeconds !== undefined && toleration.effect !== 'NoExecute') {
    errors.push(
      invalidValue(
        `${field}.effect`,
        toleration.effect ?? '',
        "effect must be 'NoExecute' when `tolerationSeconds` is set",
      ),
    );
  }
  if (operator === 'Equal') {
    const wrong = labelValueErrors(toleration.value ?? '');
    if (wrong.length > 0) errors.push(invalidValue(`${field}.operator`, toleration.value, wrong.join(';')));
  } else if (operator === 'Exists') {
    if (toleration.value) {
      errors.push(
        invalidValue(`${field}.operator`, toleration, "value must be empty when `operator` is 'Exists'"),
      );
    }
  } else errors.push(notSupported(`${field}.operator`, operator, OPERATORS));
  if (toleration.effect && !EFFECTS.includes(toleration.effect)) {
    errors.push(notSupported(`${field}.effect`, toleration.effect, EFFECTS));
  }
  return errors;
}

/** Models validateNodeTaints: a key and an effect together occur once. */
export function taintErrors(taints: readonly Taint[] | undefined, field: string): FieldError[] {
  const seen = new Set<string>();
  return (taints ?? []).flatMap((taint, index) => {
    const at = `${field}[${index}]`;
    const errors = eachInvalid(`${at}.key`, taint.key, qualifiedNameErrors(taint.key));
    const wrong = labelValueErrors(taint.value ?? '');
    if (wrong.length > 0) errors.push(invalidValue(`${at}.value`, taint.value, wrong.join(';')));
    if (!taint.effect) errors.push(required(`${at}.effect`));
    else if (!EFFECTS.includes(taint.effect))
      errors.push(notSupported(`${at}.effect`, taint.effect, EFFECTS));
    const key = `${taint.effect}\n${taint.key}`;
    if (seen.has(key)) {
      const error = duplicate(at, taint);
      errors.push({ ...error, detail: 'taints must be unique by key and effect pair' });
    }
    seen.add(key);
    return errors;
  });
}
