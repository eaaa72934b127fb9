// kube: the vocabulary of Kubernetes v1.36, pure (no clock, no I/O, no Node modules).
// Shapes, names, selectors, quantities, patches, managed fields and server-side apply, protobuf bodies, `Status` errors.
// Promises: no argument is modified; bad input throws StatusError in upstream's words; results may share structure with
// the arguments, so copy before changing.
// Leaves out: defaulting and validation of single kinds (apiserver), talking to a server (client).
// What the fields are comes from `api-fields.data.json`, made by `npm run generate`; behaviour models
// k8s.io/apimachinery, k8s.io/apiserver (patches) and sigs.k8s.io/structured-merge-diff.

export { UnknownTypeError } from './api-facts.ts';
export { customSchema } from './custom-schema.ts';
export { deepEqual } from './equality.ts';
export { goFormat } from './go-format.ts';
export { resolveIntOrPercent } from './int-or-string.ts';
export { applyJsonPatch, type JsonPatchOperation } from './json-patch.ts';
export { cloneJson, isJsonObject, type JsonObject } from './json-value.ts';
export { type RecordUpdateOptions, recordUpdate } from './managed-fields/record-update.ts';
export { type ServerSideApplyOptions, serverSideApply } from './managed-fields/server-side-apply.ts';
export { applyMergePatch } from './merge-patch.ts';
export {
  configMapKeyErrors,
  dns1035LabelErrors,
  dnsLabelErrors,
  dnsSubdomainErrors,
  envVarNameErrors,
  generateName,
  labelValueErrors,
  pathSegmentErrors,
  portNameErrors,
  qualifiedNameErrors,
} from './names.ts';
export {
  controllerOf,
  controllerReference,
  formatApiVersion,
  formatMicroTime,
  formatTime,
  type KubeList,
  type KubeObject,
  type ObjectMeta,
  objectKey,
  parseApiVersion,
  type Status,
  splitKey,
  type UnstructuredObject,
  type UserInfo,
  type WatchEvent,
} from './object.ts';
export {
  nodeSelectorTermMatches,
  podMatchesNode,
  sameTaint,
  tolerates,
  untoleratedTaint,
} from './placement.ts';
export { decodeProtobuf, isProtobuf } from './protobuf.ts';
export {
  addQuantities,
  canonicalQuantity,
  compareQuantities,
  isQuantity,
  quantityToMilli,
  quantityToNumber,
  subtractQuantities,
} from './quantity.ts';
export {
  type CustomResourceDefinition,
  type CustomResourceDefinitionVersion,
  certificateSigningRequests,
  clusterRoleBindings,
  clusterRoles,
  configMaps,
  controllerRevisions,
  csiDrivers,
  csiNodes,
  customResourceDefinitions,
  daemonSets,
  defineResource,
  deployments,
  endpointSlices,
  endpoints,
  events,
  groupResource,
  type JsonSchema,
  leases,
  namespaces,
  nodes,
  podDisruptionBudgets,
  pods,
  priorityClasses,
  type Resource,
  replicaSets,
  roleBindings,
  roles,
  secrets,
  serviceAccounts,
  services,
} from './resources.ts';
export { builtinSchema, builtinSchemaFor } from './schema.ts';
export {
  type FieldRequirement,
  formatLabelSelector,
  formatLabels,
  labelSelectorText,
  matchesLabelSelector,
  matchesLabels,
  parseFieldSelector,
  parseLabelSelector,
} from './selectors.ts';
export {
  alreadyExists,
  badRequest,
  conflict,
  expired,
  type FieldError,
  failure,
  forbidden,
  gone,
  internalError,
  invalid,
  isAlreadyExists,
  isConflict,
  isExpired,
  isForbidden,
  isNotFound,
  methodNotAllowed,
  notFound,
  STALE_WRITE,
  StatusError,
  serviceUnavailable,
  tooManyRequests,
  unauthorized,
} from './status-error.ts';
export { applyStrategicMergePatch } from './strategic-merge.ts';
export type {
  AnySchema,
  FieldSchema,
  ListSchema,
  MapSchema,
  ScalarSchema,
  StructSchema,
  TypeSchema,
} from './type-schema.ts';
// eslint-disable-next-line no-restricted-syntax -- hundreds of generated shapes, all of them public
export type * from './types.generated.ts';
export { pruneUnknownFields, unknownFields } from './unknown-fields.ts';
export { annotations, finalizers, labels, taints, wellKnownNamespaces } from './well-known.ts';
