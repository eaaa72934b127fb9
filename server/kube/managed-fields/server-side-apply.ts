import type { UnstructuredObject } from '../object.ts';
import type { TypeSchema } from '../type-schema.ts';
export interface ServerSideApplyOptions {
  live: UnstructuredObject | undefined;
  applied: UnstructuredObject;
  manager: string;
  force: boolean;
  time: string;
  subresource?: string;
  schema: TypeSchema;
}
export function serverSideApply(options: ServerSideApplyOptions): UnstructuredObject {
  throw new TypeError(`not yet ${options.manager}`);
}
