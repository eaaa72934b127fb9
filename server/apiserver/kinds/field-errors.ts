import { type FieldError, labelValueErrors, portNameErrors, qualifiedNameErrors } from '#server/kube';

// Constructors of the entries of field.ErrorList, and the texts that more than one kind uses.
// Models k8s.io/apimachinery/pkg/util/validation/field and pkg/api/validation.

export const IMMUTABLE = 'field is immutable';

export function required(field: string, detail = ''): FieldError {
  return { type: 'FieldValueRequired', field, detail };
}

export function invalidValue(field: string, value: unknown, detail: string): FieldError {
  return { type: 'FieldValueInvalid', field, value, detail };
}

export function duplicate(field: string, value: unknown): FieldError {
  return { type: 'FieldValueDuplicate', field, value, detail: '' };
}

export function forbiddenField(field: string, detail: string): FieldError {
  return { type: 'FieldValueForbidden', field, detail };
}

export function missing(field: string, value: unknown): FieldError {
  return { type: 'FieldValueNotFound', field, value, detail: '' };
}

/** `supported` is shown sorted, as upstream does where it keeps the values in a set. */
export function notSupported(field: string, value: unknown, supported: readonly string[]): FieldError {
  return notSupportedInOrder(field, value, [...supported].sort());
}

/** The same where upstream lists the values itself. */
export function notSupportedInOrder(field: string, value: unknown, supported: readonly string[]): FieldError {
  const listed = supported.map((one) => JSON.stringify(one));
  return { type: 'FieldValueNotSupported', field, value, detail: `supported values: ${listed.join(', ')}` };
}

export function tooLong(field: string, maximum: number): FieldError {
  return { type: 'FieldValueTooLong', field, detail: `may not be more than ${maximum} bytes` };
}

/** One error for each of the texts a name rule gave. */
export function eachInvalid(field: string, value: unknown, details: readonly string[]): FieldError[] {
  return details.map((detail) => invalidValue(field, value, detail));
}

export function nonNegative(value: number | undefined, field: string): FieldError[] {
  return value !== undefined && value < 0
    ? [invalidValue(field, value, 'must be greater than or equal to 0')]
    : [];
}

export function portNumber(value: number, field: string): FieldError[] {
  return Number.isInteger(value) && value >= 1 && value <= 65535
    ? []
    : [invalidValue(field, value, 'must be between 1 and 65535, inclusive')];
}

/** A port of a service or probe: a number, or an IANA service name. */
export function portNumberOrName(value: number | string, field: string): FieldError[] {
  return typeof value === 'number'
    ? portNumber(value, field)
    : eachInvalid(field, value, portNameErrors(value));
}

/** Errors of a map of labels at `field`: template labels, node selectors. Models metav1validation.ValidateLabels. */
export function labelsAt(labels: Readonly<Record<string, string>> | undefined, field: string): FieldError[] {
  return Object.entries(labels ?? {}).flatMap(([key, value]) => [
    ...eachInvalid(field, key, qualifiedNameErrors(key)),
    ...eachInvalid(field, value, labelValueErrors(value)),
  ]);
}
