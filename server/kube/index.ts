// kube: the vocabulary of Kubernetes v1.36, pure (no clock, no I/O, no Node modules).
// Shapes, names, selectors, quantities, patches, managed fields and server-side apply, protobuf bodies, `Status` errors.
// What the fields are comes from `api-fields.data.json`, made by `npm run generate`; behaviour models
// k8s.io/apimachinery and structured-merge-diff. Defaulting and validation of single kinds live in `apiserver`.
export * from './object.ts';
export * from './resources.ts';
export * from './status-error.ts';
export type * from './types.generated.ts';
export interface JsonPatchOperation { op: 'add' | 'remove' | 'replace' | 'move' | 'copy' | 'test'; path: string; from?: string; value?: unknown }
