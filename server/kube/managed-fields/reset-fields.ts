import type { TypeSchema } from '../type-schema.ts';
import type { Comparison } from './compare.ts';
import { difference, type FieldSet, LEAF, recursiveDifference } from './field-set.ts';

const fields = (...names: string[]): FieldSet => Object.fromEntries(names.map((name) => [`f:${name}`, LEAF]));

const STATUS = fields('status');
const SPEC = fields('spec');

/** What else a write to `status` never touches, by kind. */
const BESIDES_STATUS: Readonly<Record<string, FieldSet>> = {
  'core/v1#Pod': { ...SPEC, 'f:metadata': fields('deletionTimestamp', 'ownerReferences') },
  'apps/v1#Deployment': { ...SPEC, 'f:metadata': fields('labels') },
};

/** Fields that are nobody's: the server sets them, or they name the object. Models stripMetaManager. */
const NEVER_OWNED: FieldSet = {
  ...fields('apiVersion', 'kind'),
  'f:metadata': {
    '.': LEAF,
    ...fields(
      'name',
      'namespace',
      'creationTimestamp',
      'selfLink',
      'uid',
      'clusterName',
      'generation',
      'managedFields',
      'resourceVersion',
    ),
  },
};

/**
 * The fields that a write to this endpoint resets and so cannot own: `status` for the object itself, `spec` for its
 * status. Models GetResetFields of the strategies in kubernetes/pkg/registry.
 */
export function resetFields(schema: TypeSchema, subresource: string | undefined): FieldSet {
  if (schema.kind !== 'struct') return LEAF;
  if (subresource === 'status') return BESIDES_STATUS[schema.typeName ?? ''] ?? SPEC;
  return !subresource && schema.fields.has('status') ? STATUS : LEAF;
}

/** The comparison without fields that are reset. */
export function withoutReset(comparison: Comparison, reset: FieldSet): Comparison {
  return {
    removed: recursiveDifference(comparison.removed, reset),
    modified: recursiveDifference(comparison.modified, reset),
    added: recursiveDifference(comparison.added, reset),
  };
}

/** The set without the fields that are nobody's. */
export function withoutMeta(set: FieldSet): FieldSet {
  return difference(set, NEVER_OWNED);
}
