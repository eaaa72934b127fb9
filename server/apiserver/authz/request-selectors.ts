import { parseFieldSelector, StatusError } from '#server/kube';
import type { AuthorizationAttributes } from '../kind.ts';

type Requirements = NonNullable<AuthorizationAttributes['fieldRequirements']>;

const SELECTING_VERBS = new Set(['list', 'watch', 'deletecollection']);
const NOT_SELECTING = {};

/**
 * What a request's field selector adds to the attributes authorizers see: its requirements, and the name when it asks
 * for exactly one object. A selector that cannot be read selects nothing here; the request fails later, with its text.
 * Models k8s.io/apiserver/pkg/endpoints/request (RequestInfoFactory) and filters/authorization.go.
 */
export function selectorAttributes(
  verb: string,
  fieldSelector: string | undefined,
): { fieldRequirements?: Requirements; name?: string } {
  if (!SELECTING_VERBS.has(verb)) return NOT_SELECTING;
  const fieldRequirements = fieldSelector ? requirementsOf(fieldSelector) : [];
  const name = fieldRequirements.find(
    ({ field, operator }) => field === 'metadata.name' && operator === '=',
  )?.value;
  return name ? { fieldRequirements, name } : { fieldRequirements };
}

function requirementsOf(selector: string): Requirements {
  try {
    return parseFieldSelector(selector);
  } catch (error) {
    if (error instanceof StatusError) return [];
    throw error;
  }
}
