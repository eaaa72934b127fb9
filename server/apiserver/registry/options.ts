import { type FieldError, failure, invalid } from '#server/kube';
import { MAX_MANAGER_LENGTH, type Operation } from './operation.ts';

export interface WriteOptions {
  readonly dryRun: boolean;
  readonly fieldValidation: 'Strict' | 'Warn' | 'Ignore';
  readonly force: boolean | undefined;
}

/**
 * The query parameters of a write, checked. Throws 422 in upstream's words.
 * Models ValidateCreateOptions and its siblings of k8s.io/apimachinery/pkg/apis/meta/v1/validation.
 */
export function writeOptions(
  op: Operation,
  optionsKind: 'CreateOptions' | 'UpdateOptions' | 'PatchOptions',
): WriteOptions {
  const errors: FieldError[] = [];
  const dryRun = checkDryRun(op.query['dryRun'], errors);
  const manager = op.query['fieldManager'] ?? '';
  if (manager.length > MAX_MANAGER_LENGTH) {
    errors.push({
      type: 'FieldValueTooLong',
      field: 'fieldManager',
      value: manager,
      detail: `may not be more than ${MAX_MANAGER_LENGTH} bytes`,
    });
  }
  const unprintable = [...manager].findIndex((character) => character < ' ' || character === '\u007f');
  if (unprintable >= 0) {
    errors.push({
      type: 'FieldValueInvalid',
      field: 'fieldManager',
      value: manager,
      detail: 'should only contain printable characters',
    });
  }
  const fieldValidation = op.query['fieldValidation'] || 'Warn';
  if (fieldValidation !== 'Strict' && fieldValidation !== 'Warn' && fieldValidation !== 'Ignore') {
    errors.push({
      type: 'FieldValueNotSupported',
      field: 'fieldValidation',
      value: fieldValidation,
      detail: 'supported values: "Ignore", "Strict", "Warn"',
    });
    throw invalid({ group: 'meta.k8s.io', kind: optionsKind }, '', errors);
  }
  const force = booleanOf(op.query['force']);
  const isApply = op.contentType?.startsWith('application/apply-patch') ?? false;
  if (optionsKind === 'PatchOptions') {
    if (isApply && manager === '') {
      errors.push({
        type: 'FieldValueRequired',
        field: 'fieldManager',
        detail: 'is required for apply patch',
      });
    }
    if (!isApply && force !== undefined) {
      errors.push({
        type: 'FieldValueForbidden',
        field: 'force',
        detail: 'may not be specified for non-apply patch',
      });
    }
  }
  if (errors.length > 0) throw invalid({ group: 'meta.k8s.io', kind: optionsKind }, '', errors);
  return { dryRun, fieldValidation, force };
}

/** `All` or nothing. */
export function checkDryRun(value: string | undefined, errors: FieldError[]): boolean {
  if (!value) return false;
  if (value === 'All') return true;
  errors.push({ type: 'FieldValueNotSupported', field: 'dryRun', value, detail: 'supported values: "All"' });
  return false;
}

/** A query boolean as upstream reads it: present and not `false` or `0` is true. */
export function booleanOf(value: string | undefined): boolean | undefined {
  if (value === undefined) return undefined;
  return value !== 'false' && value !== '0';
}

/** A revision from a query parameter; undefined when absent or empty. Throws 400 when it is not a number. */
export function revisionOf(value: string | undefined): number | undefined {
  if (value === undefined || value === '') return undefined;
  if (!/^\d{1,15}$/.test(value)) {
    throw invalid({ group: 'meta.k8s.io', kind: 'ListOptions' }, '', [
      {
        type: 'FieldValueInvalid',
        field: 'resourceVersion',
        value,
        detail: `strconv.ParseUint: parsing ${JSON.stringify(value)}: invalid syntax`,
      },
    ]);
  }
  return Number(value);
}

/** The reader asks for a state that does not exist yet. Models storage.NewTooLargeResourceVersionError. */
export function tooLargeResourceVersion(asked: number, current: number): Error {
  return failure(504, 'Timeout', `Timeout: Too large resource version: ${asked}, current: ${current}`, {
    causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
    retryAfterSeconds: 1,
  });
}
