import type { UnstructuredObject } from '#server/kube';
import type { KindDefinition } from '../kind.ts';
import type { CustomResourceDefinition } from './crd-types.ts';

/** The finalizer that keeps a definition until its objects are gone. */
export const CLEANUP_FINALIZER = 'customresourcecleanup.apiextensions.k8s.io';

/** customresourcedefinitions.apiextensions.k8s.io itself. */
export const crdKind: KindDefinition = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  listKind: 'CustomResourceDefinitionList',
  plural: 'customresourcedefinitions',
  singular: 'customresourcedefinition',
  shortNames: ['crd', 'crds'],
  categories: ['api-extensions'],
  namespaced: false,
  schemaType: undefined,
  hasStatus: true,
  strategy: {},
  columns: [],
};

/** The definition's `Established` condition is True and it is served. */
export function isEstablished(crd: CustomResourceDefinition): boolean {
  return crd.status?.conditions?.some((c) => c.type === 'Established' && c.status === 'True') ?? false;
}

/** What a DELETE stores while objects of the definition remain: finalizer, Terminating condition. */
export function terminatingDefinition(_crd: CustomResourceDefinition, _now: number): UnstructuredObject {
  throw new Error('not yet');
}
