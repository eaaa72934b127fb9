import {
  type CustomResourceDefinition,
  type CustomResourceDefinitionVersion,
  customSchema,
  deepEqual,
  type FieldError,
  pruneUnknownFields,
  type UnstructuredObject,
} from '#server/kube';
import { setMember } from '../json.ts';
import type { KindDefinition, Strategy } from '../kind.ts';
import { fillDefaults } from './fill-defaults.ts';
import { compileJsonPath } from './json-path.ts';
import type { JsonSchema } from './json-schema.ts';
import { printerColumns } from './printer-columns.ts';
import { validateBySchema } from './validate-schema.ts';

const ANYTHING: JsonSchema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };

/**
 * One row of the kinds table per served version; all versions read the same stored objects (conversion `None`). Names
 * are the accepted ones. Pure; the definition must not change afterwards.
 * Models apiextensions-apiserver/pkg/apiserver (crdHandler) and pkg/registry/customresource.
 */
export function kindsOfCustomResource(crd: CustomResourceDefinition): KindDefinition[] {
  return crd.spec.versions.filter((version) => version.served).map((version) => kindOf(crd, version));
}

function kindOf(crd: CustomResourceDefinition, version: CustomResourceDefinitionVersion): KindDefinition {
  const { group, scope } = crd.spec;
  const names = crd.status?.acceptedNames ?? crd.spec.names;
  const schema: JsonSchema = crd.spec.preserveUnknownFields
    ? ANYTHING
    : (version.schema?.openAPIV3Schema ?? ANYTHING);
  const scale = version.subresources?.scale;
  const hasStatus = version.subresources?.status !== undefined;
  const selectableFields = selectableFieldsOf(version);
  return {
    group,
    version: version.name,
    kind: names.kind,
    listKind: names.listKind || `${names.kind}List`,
    plural: names.plural,
    singular: names.singular || names.kind.toLowerCase(),
    shortNames: names.shortNames ?? [],
    categories: names.categories ?? [],
    namespaced: scope === 'Namespaced',
    schemaType: undefined,
    customSchema: schema,
    hasStatus,
    ...(scale ? { scale: scalePaths(scale) } : {}),
    strategy: strategyOf(schema, hasStatus, version, `${group}/${version.name} ${names.kind}`),
    columns: printerColumns(version),
    ...(selectableFields ? { selectableFields } : {}),
  };
}

function withoutDot(path: string): string {
  return path.replace(/^\./, '');
}

function scalePaths(
  scale: NonNullable<NonNullable<CustomResourceDefinitionVersion['subresources']>['scale']>,
): NonNullable<KindDefinition['scale']> {
  return {
    specReplicas: withoutDot(scale.specReplicasPath),
    statusReplicas: withoutDot(scale.statusReplicasPath),
    ...(scale.labelSelectorPath ? { selector: withoutDot(scale.labelSelectorPath) } : {}),
  };
}

function selectableFieldsOf(version: CustomResourceDefinitionVersion): KindDefinition['selectableFields'] {
  if (!version.selectableFields?.length) return undefined;
  return Object.fromEntries(
    version.selectableFields.map(({ jsonPath }) => {
      const find = compileJsonPath(jsonPath);
      const text = (value: unknown): string =>
        typeof value === 'string'
          ? value
          : typeof value === 'number' || typeof value === 'boolean'
            ? String(value)
            : '';
      return [withoutDot(jsonPath), (object: UnstructuredObject) => text(find?.(object)[0])];
    }),
  );
}

function strategyOf(
  schema: JsonSchema,
  hasStatus: boolean,
  version: CustomResourceDefinitionVersion & { deprecationWarning?: string },
  title: string,
): Strategy {
  const statusSchema = schema.properties?.status;
  const validate = (object: UnstructuredObject, old?: UnstructuredObject): FieldError[] =>
    validateBySchema(object, schema, old ? { old } : {});
  return {
    defaults(object) {
      pruneInPlace(object, schema);
      fillDefaults(object, schema);
    },
    prepareForCreate(object) {
      if (hasStatus) delete object.status;
    },
    validate,
    validateUpdate: validate,
    validateStatusUpdate: (object, old) =>
      statusSchema && object.status !== undefined
        ? validateBySchema(object.status, statusSchema, { old: old.status, root: 'status' })
        : [],
    ...(version.deprecated
      ? { warnings: () => [version.deprecationWarning ?? `${title} is deprecated`] }
      : {}),
    ...(hasStatus ? {} : { raisesGeneration: differsOutsideMetadata }),
  };
}

/** Without a status subresource the status is a field like any other. */
function differsOutsideMetadata(object: UnstructuredObject, old: UnstructuredObject): boolean {
  return !deepEqual({ ...object, metadata: undefined }, { ...old, metadata: undefined });
}

function pruneInPlace(object: UnstructuredObject, schema: JsonSchema): void {
  const pruned = pruneUnknownFields(object, customSchema(schema));
  if (pruned === object) return;
  for (const key of Object.keys(object)) if (!Object.hasOwn(pruned, key)) delete object[key];
  for (const key of Object.keys(pruned)) setMember(object, key, pruned[key]);
}
