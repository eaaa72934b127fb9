import type { Status } from './object.ts';
import { groupResource } from './resources.ts';
import type { StatusCause, StatusDetails } from './types.generated.ts';

/**
 * A refusal in Kubernetes' own words: what the API server answers and what a client throws on reading it.
 * Models k8s.io/apimachinery/pkg/api/errors. The constructors below are the only places that word the texts.
 */
export class StatusError extends Error {
  override readonly name = 'StatusError';
  readonly status: Status;
  constructor(status: Status) {
    super(status.message ?? status.reason ?? `status ${status.code}`);
    this.status = status;
  }
  get code(): number {
    return this.status.code;
  }
  get reason(): string {
    return this.status.reason ?? '';
  }
}

interface Named {
  group: string;
  plural: string;
}

/** A Failure Status with the given parts. */
export function failure(code: number, reason: string, message: string, details?: StatusDetails): StatusError {
  return new StatusError({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    reason,
    ...(details ? { details } : {}),
    code,
  });
}

function about(resource: Named, name: string): StatusDetails {
  return {
    ...(name ? { name } : {}),
    ...(resource.group ? { group: resource.group } : {}),
    kind: resource.plural,
  };
}

export function notFound(resource: Named, name: string): StatusError {
  return failure(404, 'NotFound', `${groupResource(resource)} "${name}" not found`, about(resource, name));
}

export function alreadyExists(resource: Named, name: string): StatusError {
  return failure(
    409,
    'AlreadyExists',
    `${groupResource(resource)} "${name}" already exists`,
    about(resource, name),
  );
}

export function conflict(resource: Named, name: string, why: string): StatusError {
  return failure(
    409,
    'Conflict',
    `Operation cannot be fulfilled on ${groupResource(resource)} "${name}": ${why}`,
    about(resource, name),
  );
}

/** The stale write: the text every controller author knows. */
export const STALE_WRITE =
  'the object has been modified; please apply your changes to the latest version and try again';

export function forbidden(resource: Named, name: string, why: string): StatusError {
  const message = name
    ? `${groupResource(resource)} "${name}" is forbidden: ${why}`
    : `${groupResource(resource)} is forbidden: ${why}`;
  return failure(403, 'Forbidden', message, about(resource, name));
}

export function badRequest(message: string): StatusError {
  return failure(400, 'BadRequest', message);
}

export function unauthorized(): StatusError {
  return failure(401, 'Unauthorized', 'Unauthorized');
}

/** 422 with upstream's aggregate wording; `causes` as field.ErrorList renders them. */
export function invalid(
  gk: { group: string; kind: string },
  name: string,
  causes: readonly FieldError[],
): StatusError {
  const listed = causes.map(renderFieldError);
  const unique = [...new Set(listed)];
  const text = unique.length === 1 ? (unique[0] ?? '') : `[${unique.join(', ')}]`;
  const qualified = gk.group ? `${gk.kind}.${gk.group}` : gk.kind;
  const statusCauses: StatusCause[] = causes.map((cause) => ({
    reason: cause.type,
    message: renderFieldErrorBody(cause),
    field: cause.field,
  }));
  return failure(422, 'Invalid', `${qualified} "${name}" is invalid: ${text}`, {
    ...(name ? { name } : {}),
    ...(gk.group ? { group: gk.group } : {}),
    kind: gk.kind,
    causes: statusCauses,
  });
}

export function expired(message: string): StatusError {
  return failure(410, 'Expired', message);
}

export function gone(message: string): StatusError {
  return failure(410, 'Gone', message);
}

export function methodNotAllowed(resource: Named, action: string): StatusError {
  return failure(
    405,
    'MethodNotAllowed',
    `${action} is not supported on resources of kind "${groupResource(resource)}"`,
    {
      ...(resource.group ? { group: resource.group } : {}),
      kind: resource.plural,
    },
  );
}

export function tooManyRequests(message: string, retryAfterSeconds: number): StatusError {
  return failure(429, 'TooManyRequests', message, { retryAfterSeconds });
}

export function serviceUnavailable(message: string): StatusError {
  return failure(503, 'ServiceUnavailable', message);
}

export function internalError(message: string): StatusError {
  return failure(500, 'InternalError', `Internal error occurred: ${message}`, {
    causes: [{ message }],
  });
}

export function isNotFound(error: unknown): boolean {
  return error instanceof StatusError && error.code === 404;
}

/** A stale write (409 Conflict), not AlreadyExists. */
export function isConflict(error: unknown): boolean {
  return error instanceof StatusError && error.reason === 'Conflict';
}

export function isAlreadyExists(error: unknown): boolean {
  return error instanceof StatusError && error.reason === 'AlreadyExists';
}

export function isForbidden(error: unknown): boolean {
  return error instanceof StatusError && error.reason === 'Forbidden';
}

export function isExpired(error: unknown): boolean {
  return error instanceof StatusError && error.code === 410;
}

/** One entry of field.ErrorList (k8s.io/apimachinery/pkg/util/validation/field). */
export interface FieldError {
  type:
    | 'FieldValueRequired'
    | 'FieldValueInvalid'
    | 'FieldValueDuplicate'
    | 'FieldValueForbidden'
    | 'FieldValueNotFound'
    | 'FieldValueNotSupported'
    | 'FieldValueTooLong'
    | 'FieldValueTooMany'
    | 'FieldValueTypeInvalid'
    | 'InternalError';
  /** Path as upstream writes it: `spec.ports[0].port`. */
  field: string;
  /** The offending value, where the type shows one. */
  value?: unknown;
  detail: string;
}

const TYPE_TEXT: Record<FieldError['type'], string> = {
  FieldValueRequired: 'Required value',
  FieldValueInvalid: 'Invalid value',
  FieldValueDuplicate: 'Duplicate value',
  FieldValueForbidden: 'Forbidden',
  FieldValueNotFound: 'Not found',
  FieldValueNotSupported: 'Unsupported value',
  FieldValueTooLong: 'Too long',
  FieldValueTooMany: 'Too many',
  FieldValueTypeInvalid: 'Invalid value',
  InternalError: 'Internal error',
};

const WITHOUT_VALUE = new Set<FieldError['type']>([
  'FieldValueRequired',
  'FieldValueForbidden',
  'FieldValueTooLong',
  'InternalError',
]);

function showValue(value: unknown): string {
  return value === undefined ? 'null' : JSON.stringify(value);
}

function renderFieldErrorBody(error: FieldError): string {
  const head = TYPE_TEXT[error.type];
  const value = WITHOUT_VALUE.has(error.type) ? '' : `: ${showValue(error.value)}`;
  return `${head}${value}${error.detail ? `: ${error.detail}` : ''}`;
}

function renderFieldError(error: FieldError): string {
  return `${error.field}: ${renderFieldErrorBody(error)}`;
}
