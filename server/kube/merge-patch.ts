export function applyMergePatch(document: unknown, patch: unknown): unknown {
  throw new TypeError(`not yet ${typeof document} ${typeof patch}`);
}
