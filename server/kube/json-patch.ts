/** One operation of RFC 6902. */
export interface JsonPatchOperation {
  op: 'add' | 'remove' | 'replace' | 'move' | 'copy' | 'test';
  path: string;
  from?: string;
  value?: unknown;
}
export function applyJsonPatch(document: unknown, operations: readonly JsonPatchOperation[]): unknown {
  throw new TypeError(`not yet ${typeof document} ${operations.length}`);
}
