import type { StructSchema } from './type-schema.ts';
export function applyStrategicMergePatch(document: object, patch: object, schema: StructSchema): object {
  throw new TypeError(`not yet ${typeof document} ${typeof patch} ${schema.kind}`);
}
