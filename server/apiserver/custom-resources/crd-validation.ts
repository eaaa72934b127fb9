import {
  type CustomResourceDefinition,
  type CustomResourceDefinitionVersion,
  dns1035LabelErrors,
  dnsSubdomainErrors,
  type FieldError,
} from '#server/kube';
import { duplicate, invalidValue, notSupported, required } from '../kinds/field-errors.ts';
import { compileJsonPath } from './json-path.ts';
import { structuralErrors } from './structural-schema.ts';

const MOST_SELECTABLE_FIELDS = 8;
const COLUMN_TYPES = ['boolean', 'date', 'integer', 'number', 'string'];
const COLUMN_FORMATS = [
  'binary',
  'byte',
  'date',
  'date-time',
  'double',
  'float',
  'int32',
  'int64',
  'password',
];

/**
 * What is wrong with a definition; `old` when it is an update. Without webhooks: conversion must be `None`, and CEL
 * rules are kept but not looked at. Models apiextensions-apiserver/pkg/apis/apiextensions/validation.
 */
export function definitionErrors(
  crd: CustomResourceDefinition,
  old?: CustomResourceDefinition,
): FieldError[] {
  const { spec, metadata } = crd;
  const errors: FieldError[] = [];
  if (!old && metadata.name !== `${spec.names.plural}.${spec.group}`) {
    errors.push(invalidValue('metadata.name', metadata.name, 'must be spec.names.plural+"."+spec.group'));
  }
  errors.push(
    ...groupErrors(spec.group),
    ...scopeErrors(spec.scope),
    ...versionsErrors(spec.versions),
    ...namesErrors(spec.names),
  );
  const strategy: string | undefined = spec.conversion?.strategy;
  if (strategy !== undefined && strategy !== 'None')
    errors.push(notSupported('spec.conversion.strategy', strategy, ['None']));
  if (spec.preserveUnknownFields && !old?.spec.preserveUnknownFields) {
    const detail =
      'cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead';
    errors.push(invalidValue('spec.preserveUnknownFields', true, detail));
  }
  if (old) errors.push(...immutableErrors(crd, old), ...storedVersionErrors(crd));
  return errors;
}

function groupErrors(group: string): FieldError[] {
  if (!group) return [required('spec.group')];
  const wrong = dnsSubdomainErrors(group);
  if (wrong.length > 0) return [invalidValue('spec.group', group, wrong.join(','))];
  return group.includes('.')
    ? []
    : [invalidValue('spec.group', group, 'should be a domain with at least one dot')];
}

function scopeErrors(scope: string | undefined): FieldError[] {
  if (!scope) return [required('spec.scope')];
  return scope === 'Cluster' || scope === 'Namespaced'
    ? []
    : [notSupported('spec.scope', scope, ['Cluster', 'Namespaced'])];
}

function versionsErrors(versions: readonly CustomResourceDefinitionVersion[]): FieldError[] {
  const errors = versions.flatMap((version, index) => versionErrors(version, `spec.versions[${index}]`));
  if (new Set(versions.map((version) => version.name)).size !== versions.length) {
    errors.push(invalidValue('spec.versions', versions, 'must contain unique version names'));
  }
  if (versions.filter((version) => version.storage).length !== 1) {
    errors.push(
      invalidValue('spec.versions', versions, 'must have exactly one version marked as storage version'),
    );
  }
  return errors;
}

function versionErrors(version: CustomResourceDefinitionVersion, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const wrong = dns1035LabelErrors(version.name ?? '');
  if (wrong.length > 0) errors.push(invalidValue(`${path}.name`, version.name ?? '', wrong.join(',')));
  const schema = version.schema?.openAPIV3Schema;
  if (schema) errors.push(...structuralErrors(schema, `${path}.schema.openAPIV3Schema`));
  else errors.push(required(`${path}.schema.openAPIV3Schema`));
  errors.push(...scaleErrors(version, `${path}.subresources.scale`));
  version.additionalPrinterColumns?.forEach((column, index) =>
    errors.push(...columnErrors(column, `${path}.additionalPrinterColumns[${index}]`)),
  );
  errors.push(...selectableErrors(version, `${path}.selectableFields`));
  return errors;
}

function simplePathErrors(
  text: string | undefined,
  path: string,
  prefixes: readonly string[],
  where: string,
): FieldError[] {
  if (!text) return [required(path)];
  if (!text.startsWith('.')) return [invalidValue(path, text, 'must be a simple json path starting with .')];
  return prefixes.some((prefix) => text.startsWith(prefix))
    ? []
    : [invalidValue(path, text, `should be a json path under ${where}`)];
}

function scaleErrors(version: CustomResourceDefinitionVersion, path: string): FieldError[] {
  const scale = version.subresources?.scale;
  if (!scale) return [];
  const errors = [
    ...simplePathErrors(scale.specReplicasPath, `${path}.specReplicasPath`, ['.spec.'], '.spec'),
    ...simplePathErrors(scale.statusReplicasPath, `${path}.statusReplicasPath`, ['.status.'], '.status'),
  ];
  if (scale.labelSelectorPath) {
    errors.push(
      ...simplePathErrors(
        scale.labelSelectorPath,
        `${path}.labelSelectorPath`,
        ['.spec.', '.status.'],
        'either .spec or .status',
      ),
    );
  }
  return errors;
}

type Columns = NonNullable<CustomResourceDefinitionVersion['additionalPrinterColumns']>;

function columnErrors(column: Columns[number], path: string): FieldError[] {
  const errors: FieldError[] = [];
  const types = `must be one of ${COLUMN_TYPES.join(',')}`;
  if (!column.name) errors.push(required(`${path}.name`));
  if (!column.type) errors.push(required(`${path}.type`, types));
  else if (!COLUMN_TYPES.includes(column.type)) errors.push(invalidValue(`${path}.type`, column.type, types));
  if (column.format && !COLUMN_FORMATS.includes(column.format)) {
    errors.push(invalidValue(`${path}.format`, column.format, `must be one of ${COLUMN_FORMATS.join(',')}`));
  }
  if (!column.jsonPath) errors.push(required(`${path}.JSONPath`));
  else if (!column.jsonPath.startsWith('.'))
    errors.push(
      invalidValue(`${path}.JSONPath`, column.jsonPath, 'must be a simple json path starting with .'),
    );
  else if (!compileJsonPath(column.jsonPath))
    errors.push(invalidValue(`${path}.JSONPath`, column.jsonPath, 'must be a json path in the dot notation'));
  return errors;
}

function selectableErrors(version: CustomResourceDefinitionVersion, path: string): FieldError[] {
  const seen = new Set<string>();
  const errors = (version.selectableFields ?? []).flatMap(({ jsonPath }, index): FieldError[] => {
    const at = `${path}[${index}].jsonPath`;
    if (!jsonPath) return [required(at)];
    if (!jsonPath.startsWith('.') || !compileJsonPath(jsonPath))
      return [invalidValue(at, jsonPath, 'is an invalid path: must be a simple json path starting with .')];
    if (jsonPath.startsWith('.metadata.'))
      return [invalidValue(at, jsonPath, 'must not point to fields in metadata')];
    if (seen.has(jsonPath)) return [duplicate(at, jsonPath)];
    seen.add(jsonPath);
    return [];
  });
  if (seen.size > MOST_SELECTABLE_FIELDS) {
    errors.push({
      type: 'FieldValueTooMany',
      field: path,
      value: seen.size,
      detail: `must have at most ${MOST_SELECTABLE_FIELDS} items`,
    });
  }
  return errors;
}

function namesErrors(names: CustomResourceDefinition['spec']['names']): FieldError[] {
  const errors: FieldError[] = [];
  const label = (path: string, value: string | undefined, mixedCase = false): void => {
    const wrong = value ? dns1035LabelErrors(mixedCase ? value.toLowerCase() : value) : [];
    const prefix = mixedCase ? 'may have mixed case, but should otherwise match: ' : '';
    if (!value) errors.push(required(path));
    else if (wrong.length > 0) errors.push(invalidValue(path, value, prefix + wrong.join(',')));
  };
  label('spec.names.plural', names.plural);
  label('spec.names.singular', names.singular);
  label('spec.names.kind', names.kind, true);
  label('spec.names.listKind', names.listKind, true);
  names.shortNames?.forEach((name, index) => label(`spec.names.shortNames[${index}]`, name));
  if (names.kind && names.kind === names.listKind)
    errors.push(invalidValue('spec.names.listKind', names.listKind, 'kind and listKind may not be the same'));
  names.categories?.forEach((name, index) => label(`spec.names.categories[${index}]`, name));
  return errors;
}

function immutableErrors(crd: CustomResourceDefinition, old: CustomResourceDefinition): FieldError[] {
  const errors: FieldError[] = [];
  const same = (path: string, value: string, before: string): void => {
    if (value !== before) errors.push(invalidValue(path, value, 'field is immutable'));
  };
  if (
    old.status?.conditions?.some(
      (condition) => condition.type === 'Established' && condition.status === 'True',
    )
  ) {
    same('spec.scope', crd.spec.scope, old.spec.scope);
    same('spec.names.kind', crd.spec.names.kind, old.spec.names.kind);
  }
  same('spec.group', crd.spec.group, old.spec.group);
  same('spec.names.plural', crd.spec.names.plural, old.spec.names.plural);
  return errors;
}

function storedVersionErrors(crd: CustomResourceDefinition): FieldError[] {
  const present = new Set(crd.spec.versions.map((version) => version.name));
  return (crd.status?.storedVersions ?? []).flatMap((name, index) =>
    present.has(name)
      ? []
      : [
          invalidValue(
            `status.storedVersions[${index}]`,
            name,
            `missing from spec.versions; ${name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in ${name} and removes ${name} from status.storedVersions`,
          ),
        ],
  );
}
