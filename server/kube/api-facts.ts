// What is known of the built-in types, as data: read once, typed here, interpreted by schema.ts and protobuf.ts.
import facts from './api-fields.data.json' with { type: 'json' };
import { crdFacts } from './crd-facts.ts';

/** The facts of one field, in the short keys of the data file. */
export interface FieldFacts {
  /** Protobuf field number. */
  readonly n?: number;
  /** `string`, `boolean`, …; `[]T` a list, `{}T` a map with string keys, `group/version#Type` a struct. */
  readonly t: string;
  /** A Go pointer: absent and empty differ. */
  readonly p?: number;
  /** Inlined into the surrounding struct. */
  readonly i?: number;
  /** omitempty. */
  readonly o?: number;
  readonly r?: number;
  readonly d?: unknown;
  readonly ps?: string;
  readonly pk?: string;
  readonly l?: string;
  readonly k?: readonly string[];
  readonly m?: string;
  readonly s?: string;
  readonly e?: readonly string[];
}

export type TypeFacts = Readonly<Record<string, FieldFacts>>;

interface ApiFacts {
  readonly kinds: Readonly<Record<string, { namespaced: boolean }>>;
  readonly types: Readonly<Record<string, TypeFacts>>;
}

/** A type name that the facts do not hold: a mistake in the calling code. */
export class UnknownTypeError extends Error {
  override readonly name = 'UnknownTypeError';
}

const data: ApiFacts = facts;

/** The fields of a built-in type by JSON name, or undefined. */
export function findType(typeName: string): TypeFacts | undefined {
  return Object.hasOwn(data.types, typeName) ? data.types[typeName] : crdFacts[typeName];
}

/** The fields of a built-in type by JSON name. Throws UnknownTypeError. */
export function typeFacts(typeName: string): TypeFacts {
  const found = findType(typeName);
  if (!found) throw new UnknownTypeError(`no built-in type ${typeName}`);
  return found;
}

/** Kinds without storage of their own, and the option and answer types that carry apiVersion and kind. */
const OTHER_ROOTS = new Set([
  'apiextensions/v1#CustomResourceDefinition',
  'authentication/v1#TokenRequest',
  'authorization/v1#SelfSubjectRulesReview',
  'autoscaling/v1#Scale',
  'core/v1#Binding',
  'core/v1#PodStatusResult',
  'core/v1#RangeAllocation',
  'core/v1#SerializedReference',
  'meta/v1#APIGroup',
  'meta/v1#APIGroupList',
  'meta/v1#APIResourceList',
  'meta/v1#APIVersions',
  'meta/v1#ApplyOptions',
  'meta/v1#CreateOptions',
  'meta/v1#DeleteOptions',
  'meta/v1#GetOptions',
  'meta/v1#ListOptions',
  'meta/v1#PatchOptions',
  'meta/v1#Status',
  'meta/v1#UpdateOptions',
  'core/v1#PodAttachOptions',
  'core/v1#PodExecOptions',
  'core/v1#PodLogOptions',
  'core/v1#PodPortForwardOptions',
  'core/v1#PodProxyOptions',
  'core/v1#NodeProxyOptions',
  'core/v1#ServiceProxyOptions',
  'meta/v1#PartialObjectMetadata',
]);

/** Whether values of the type carry apiVersion and kind. */
export function isRootType(typeName: string): boolean {
  if (Object.hasOwn(data.kinds, typeName) || OTHER_ROOTS.has(typeName)) return true;
  return findType(typeName)?.['metadata']?.t === 'meta/v1#ListMeta';
}

/**
 * The type name of a group, version and kind: `rbac.authorization.k8s.io`, `v1`, `Role` → `rbac/v1#Role`. The name may
 * be of no known type.
 */
export function typeNameOf(group: string, version: string, kind: string): string {
  const dot = group.indexOf('.');
  const short = group === '' ? 'core' : dot < 0 ? group : group.slice(0, dot);
  return `${short}/${version}#${kind}`;
}

/** Types marked `+structType=atomic`: server-side apply owns them whole. */
export const ATOMIC_TYPES: ReadonlySet<string> = new Set([
  'admissionregistration/v1#MatchResources',
  'admissionregistration/v1#NamedRuleWithOperations',
  'admissionregistration/v1#ParamKind',
  'admissionregistration/v1#ParamRef',
  'admissionregistration/v1#Variable',
  'autoscaling/v1#CrossVersionObjectReference',
  'core/v1#ConfigMapKeySelector',
  'core/v1#EndpointAddress',
  'core/v1#EndpointPort',
  'core/v1#FileKeySelector',
  'core/v1#LocalObjectReference',
  'core/v1#NodeSelector',
  'core/v1#NodeSelectorTerm',
  'core/v1#ObjectFieldSelector',
  'core/v1#ObjectReference',
  'core/v1#ResourceFieldSelector',
  'core/v1#ScopeSelector',
  'core/v1#SecretKeySelector',
  'core/v1#SecretReference',
  'core/v1#TopologySelectorTerm',
  'core/v1#TypedLocalObjectReference',
  'discovery/v1#EndpointPort',
  'meta/v1#LabelSelector',
  'meta/v1#OwnerReference',
  'networking/v1#ServiceBackendPort',
  'rbac/v1#RoleRef',
  'rbac/v1#Subject',
]);
