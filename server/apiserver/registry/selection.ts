import {
  badRequest,
  type FieldRequirement,
  parseFieldSelector,
  parseLabelSelector,
  type UnstructuredObject,
} from '#server/kube';
import type { KindDefinition } from '../kind.ts';
import { objectStorageKey, resourcePrefix, scopePrefix } from '../storage.ts';

/** Which objects a list, watch or deletecollection means. */
export interface Selection {
  /** All keys wanted start with this. */
  readonly prefix: string;
  /** Undefined: every key of the prefix. */
  readonly matchesKey: ((key: string) => boolean) | undefined;
  /** Undefined: every object; nothing needs to be decoded to know. */
  readonly matchesObject: ((object: UnstructuredObject) => boolean) | undefined;
  readonly empty: boolean;
}

export interface SelectionQuery {
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

/**
 * What `labelSelector` and `fieldSelector` select among the objects of a kind. Names and namespaces are told by the key.
 * Throws 400 in upstream's words for a selector that cannot be read or a field the kind does not select by.
 */
export function selectionOf(
  kind: KindDefinition,
  namespace: string | undefined,
  name: string | undefined,
  query: SelectionQuery,
): Selection {
  const labels = query.labelSelector ? parseLabelSelector(query.labelSelector) : undefined;
  const requirements = query.fieldSelector ? parseFieldSelector(query.fieldSelector) : [];
  for (const { field } of requirements) checkField(kind, field);
  if (name !== undefined) addName(requirements, name);

  const byKey = requirements.filter(
    ({ field }) => field === 'metadata.name' || field === 'metadata.namespace',
  );
  const byObject = requirements.filter((requirement) => !byKey.includes(requirement));
  const fields = byObject.length > 0 ? fieldTest(kind, byObject) : undefined;
  return {
    prefix: scopePrefix(kind, namespace),
    matchesKey: byKey.length > 0 ? keyTest(kind, namespace, byKey) : undefined,
    matchesObject:
      labels || fields
        ? (object) => (!labels || labels(object.metadata.labels)) && (!fields || fields(object))
        : undefined,
    empty: !labels && requirements.length === 0,
  };
}

/** A name in the path of a list request is a field selector. */
function addName(requirements: FieldRequirement[], name: string): void {
  if (requirements.length === 0) {
    requirements.push({ field: 'metadata.name', operator: '=', value: name });
    return;
  }
  const same = requirements.some(
    (r) => r.field === 'metadata.name' && r.operator === '=' && r.value === name,
  );
  if (!same) throw badRequest("fieldSelector metadata.name doesn't match requested name");
}

/** Models AddFieldLabelConversionFunc of the groups, and DefaultMetaV1FieldSelectorConversion. */
function checkField(kind: KindDefinition, field: string): void {
  if (field === 'metadata.name' || field === 'metadata.namespace') return;
  const selectable = kind.selectableFields;
  if (selectable && Object.hasOwn(selectable, field)) return;
  throw badRequest(
    selectable || kind.schemaType === undefined
      ? `field label not supported: ${field}`
      : `"${field}" is not a known field selector: only "metadata.name", "metadata.namespace"`,
  );
}

function fieldTest(
  kind: KindDefinition,
  requirements: readonly FieldRequirement[],
): (object: UnstructuredObject) => boolean {
  const terms = requirements.map(({ field, operator, value }) => {
    const read = kind.selectableFields?.[field];
    const wanted = operator === '=';
    return (object: UnstructuredObject): boolean => ((read?.(object) ?? '') === value) === wanted;
  });
  return (object) => terms.every((term) => term(object));
}

function keyTest(
  kind: KindDefinition,
  namespace: string | undefined,
  requirements: readonly FieldRequirement[],
): (key: string) => boolean {
  const [only] = requirements;
  if (
    requirements.length === 1 &&
    only?.field === 'metadata.name' &&
    only.operator === '=' &&
    (namespace || !kind.namespaced)
  ) {
    const exact = objectStorageKey(kind, namespace, only.value);
    return (key) => key === exact;
  }
  const start = resourcePrefix(kind).length;
  return (key) => {
    const slash = kind.namespaced ? key.indexOf('/', start) : -1;
    const [inNamespace, name] =
      slash < 0 ? ['', key.slice(start)] : [key.slice(start, slash), key.slice(slash + 1)];
    return requirements.every(
      ({ field, operator, value }) =>
        ((field === 'metadata.name' ? name : inNamespace) === value) === (operator === '='),
    );
  };
}
