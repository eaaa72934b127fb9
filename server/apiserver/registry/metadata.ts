import {
  dns1035LabelErrors,
  dnsLabelErrors,
  dnsSubdomainErrors,
  type FieldError,
  failure,
  labelValueErrors,
  type ObjectMeta,
  pathSegmentErrors,
  qualifiedNameErrors,
  type UnstructuredObject,
} from '#server/kube';
import type { KindDefinition } from '../kind.ts';

const MAX_ANNOTATION_BYTES = 256 * 1024;
const STANDARD_FINALIZERS = new Set(['kubernetes', 'orphan', 'foregroundDeletion']);

/**
 * What is wrong with an object's metadata. Models ValidateObjectMeta of
 * k8s.io/apimachinery/pkg/api/validation/objectmeta.go.
 */
export function metadataErrors(object: UnstructuredObject, kind: KindDefinition): FieldError[] {
  const { metadata } = object;
  const errors: FieldError[] = [];
  const bad = (field: string, value: unknown, detail: string): void =>
    void errors.push({ type: 'FieldValueInvalid', field, value, detail });
  const rule = nameRule(kind);
  if (metadata.generateName) {
    for (const detail of rule(maskTrailingDash(metadata.generateName)))
      bad('metadata.generateName', metadata.generateName, detail);
  }
  if (!metadata.name) {
    errors.push({
      type: 'FieldValueRequired',
      field: 'metadata.name',
      detail: 'name or generateName is required',
    });
  } else for (const detail of rule(metadata.name)) bad('metadata.name', metadata.name, detail);
  if (kind.namespaced) {
    if (!metadata.namespace)
      errors.push({ type: 'FieldValueRequired', field: 'metadata.namespace', detail: '' });
    else
      for (const detail of dnsLabelErrors(metadata.namespace))
        bad('metadata.namespace', metadata.namespace, detail);
  } else if (metadata.namespace) {
    errors.push({
      type: 'FieldValueForbidden',
      field: 'metadata.namespace',
      detail: 'not allowed on this type',
    });
  }
  if (metadata.labels) labelErrors(metadata.labels, bad);
  if (metadata.annotations) annotationErrors(metadata.annotations, errors);
  if (metadata.ownerReferences) ownerErrors(metadata.ownerReferences, errors);
  if (metadata.finalizers) finalizerErrors(metadata.finalizers, kind, errors);
  return errors;
}

function nameRule(kind: KindDefinition): (value: string) => string[] {
  switch (kind.strategy.nameRule) {
    case 'dns-label':
      return dnsLabelErrors;
    case 'dns1035-label':
      return dns1035LabelErrors;
    case 'path-segment':
      return pathSegmentErrors;
    case 'dns-subdomain':
    case undefined:
    default:
      return dnsSubdomainErrors;
  }
}

/** A prefix may end in a dash: something is going to follow. */
function maskTrailingDash(name: string): string {
  return name.length > 1 && name.endsWith('-') ? `${name.slice(0, -2)}a` : name;
}

function labelErrors(
  labels: Record<string, string>,
  bad: (field: string, value: unknown, detail: string) => void,
): void {
  for (const key of Object.keys(labels)) {
    for (const detail of qualifiedNameErrors(key)) bad('metadata.labels', key, detail);
    for (const detail of labelValueErrors(labels[key] ?? '')) bad('metadata.labels', labels[key], detail);
  }
}

function annotationErrors(annotations: Record<string, string>, errors: FieldError[]): void {
  let size = 0;
  for (const key of Object.keys(annotations)) {
    for (const detail of qualifiedNameErrors(key.toLowerCase())) {
      errors.push({ type: 'FieldValueInvalid', field: 'metadata.annotations', value: key, detail });
    }
    size += Buffer.byteLength(key) + Buffer.byteLength(annotations[key] ?? '');
  }
  if (size > MAX_ANNOTATION_BYTES) {
    errors.push({
      type: 'FieldValueTooLong',
      field: 'metadata.annotations',
      detail: `may not be more than ${MAX_ANNOTATION_BYTES} bytes`,
    });
  }
}

function ownerErrors(references: NonNullable<ObjectMeta['ownerReferences']>, errors: FieldError[]): void {
  let controller: string | undefined;
  references.forEach((reference, index) => {
    const field = `metadata.ownerReferences[${index}]`;
    if (!reference.apiVersion) {
      errors.push({
        type: 'FieldValueInvalid',
        field: `${field}.apiVersion`,
        value: reference.apiVersion,
        detail: 'version must not be empty',
      });
    }
    for (const member of ['kind', 'name', 'uid'] as const) {
      if (!reference[member]) {
        errors.push({
          type: 'FieldValueInvalid',
          field: `${field}.${member}`,
          value: '',
          detail: 'must not be empty',
        });
      }
    }
    if (reference.controller !== true) return;
    if (controller !== undefined) {
      errors.push({
        type: 'FieldValueInvalid',
        field: 'metadata.ownerReferences',
        value: references,
        detail: `Only one reference can have Controller set to true. Found "true" in references for ${controller} and ${reference.kind}/${reference.name}`,
      });
    } else controller = `${reference.kind}/${reference.name}`;
  });
}

function finalizerErrors(finalizers: readonly string[], kind: KindDefinition, errors: FieldError[]): void {
  let orphan = false;
  let foreground = false;
  for (const finalizer of finalizers) {
    for (const detail of qualifiedNameErrors(finalizer)) {
      errors.push({ type: 'FieldValueInvalid', field: 'metadata.finalizers', value: finalizer, detail });
    }
    if (kind.schemaType !== undefined && !finalizer.includes('/') && !STANDARD_FINALIZERS.has(finalizer)) {
      errors.push({
        type: 'FieldValueInvalid',
        field: 'metadata.finalizers',
        value: finalizer,
        detail: 'name is neither a standard finalizer name nor is it fully qualified',
      });
    }
    orphan ||= finalizer === 'orphan';
    foreground ||= finalizer === 'foregroundDeletion';
  }
  if (orphan && foreground) {
    errors.push({
      type: 'FieldValueInvalid',
      field: 'metadata.finalizers',
      value: finalizers,
      detail: 'finalizers orphan and foregroundDeletion cannot be both set',
    });
  }
}

/** Models ValidateObjectMetaUpdate. What the machinery carries over from the old state is not checked again. */
export function metadataUpdateErrors(object: UnstructuredObject, old: UnstructuredObject): FieldError[] {
  const errors: FieldError[] = [];
  const [next, before] = [object.metadata, old.metadata];
  for (const field of ['name', 'namespace', 'uid'] as const) {
    if (next[field] !== before[field]) {
      errors.push({
        type: 'FieldValueInvalid',
        field: `metadata.${field}`,
        value: next[field] ?? '',
        detail: 'field is immutable',
      });
    }
  }
  if (before.deletionTimestamp) {
    const added = (next.finalizers ?? []).filter((finalizer) => !before.finalizers?.includes(finalizer));
    if (added.length > 0) {
      errors.push({
        type: 'FieldValueForbidden',
        field: 'metadata.finalizers',
        detail: `no new finalizers can be added if the object is being deleted, found new finalizers []string{${added.map((f) => JSON.stringify(f)).join(', ')}}`,
      });
    }
  }
  return errors;
}

/** 422: an update must say which state it saw. */
export function resourceVersionRequired(kind: KindDefinition, name: string): Error {
  const message = 'Invalid value: 0x0: must be specified for an update';
  const field = 'metadata.resourceVersion';
  const qualified = kind.group ? `${kind.plural}.${kind.group}` : kind.plural;
  return failure(422, 'Invalid', `${qualified} "${name}" is invalid: ${field}: ${message}`, {
    name,
    ...(kind.group ? { group: kind.group } : {}),
    kind: kind.plural,
    causes: [{ reason: 'FieldValueInvalid', message, field }],
  });
}

const WITH_GENERATION = new Set([
  'core/pods',
  'core/replicationcontrollers',
  'apps/deployments',
  'apps/replicasets',
  'apps/daemonsets',
  'apps/statefulsets',
  'batch/jobs',
  'batch/cronjobs',
  'policy/poddisruptionbudgets',
  'networking.k8s.io/ingresses',
  'networking.k8s.io/networkpolicies',
  'networking.k8s.io/ingressclasses',
  'discovery.k8s.io/endpointslices',
  'scheduling.k8s.io/priorityclasses',
  'flowcontrol.apiserver.k8s.io/flowschemas',
]);

/** Kinds whose strategy counts metadata.generation upstream; custom resources always. */
export function countsGeneration(kind: KindDefinition): boolean {
  return kind.schemaType === undefined || WITH_GENERATION.has(`${kind.group || 'core'}/${kind.plural}`);
}
