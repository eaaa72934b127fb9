import type { UnstructuredObject } from '../object.ts';
import type { TypeSchema } from '../type-schema.ts';
import type { ManagedFieldsEntry } from '../types.generated.ts';
export interface RecordUpdateOptions {
  live: UnstructuredObject | undefined;
  next: UnstructuredObject;
  manager: string;
  time: string;
  subresource?: string;
  schema: TypeSchema;
}
export function recordUpdate(options: RecordUpdateOptions): ManagedFieldsEntry[] {
  return options.next.metadata.managedFields ?? [];
}
