import { recordUpdate } from '../managed-fields/record-update.ts';
import { serverSideApply } from '../managed-fields/server-side-apply.ts';
import type { UnstructuredObject } from '../object.ts';
import type { TypeSchema } from '../type-schema.ts';

/** A write of the whole object, or of a subresource, by someone. */
export interface Write {
  manager: string;
  time?: string;
  subresource?: string;
}

/** What the tests of ownership do to objects, as an API server would. */
export interface ManagedObjects {
  create(object: object, write: Write): UnstructuredObject;
  /** Replaces the given members of the live object. */
  update(live: UnstructuredObject, change: object, write: Write): UnstructuredObject;
  apply(
    live: UnstructuredObject | undefined,
    applied: object,
    write: Write & { force?: boolean },
  ): UnstructuredObject;
}

/** Reads and writes of one kind; what does not say its kind gets it. */
export function createManagedObjects(apiVersion: string, kind: string, schema: TypeSchema): ManagedObjects {
  const typed = (object: object): UnstructuredObject => ({
    apiVersion,
    kind,
    metadata: { name: 'x' },
    ...object,
  });
  const record = (
    live: UnstructuredObject | undefined,
    next: UnstructuredObject,
    write: Write,
  ): UnstructuredObject => {
    const managedFields = recordUpdate({ live, next, schema, time: FIRST, ...write });
    return { ...next, metadata: { ...next.metadata, managedFields } };
  };
  return {
    create: (object, write) => record(undefined, typed(object), write),
    update: (live, change, write) => record(live, { ...live, ...change }, write),
    apply: (live, applied, write) =>
      serverSideApply({ live, applied: typed(applied), schema, time: FIRST, force: false, ...write }),
  };
}

export const FIRST = '2026-01-01T00:00:01Z';
export const SECOND = '2026-01-01T00:00:02Z';

/** The managers of an object with what they own, for assertions: `name(operation)` to FieldsV1. */
export function owners(object: UnstructuredObject): Record<string, unknown> {
  const entries = object.metadata.managedFields ?? [];
  return Object.fromEntries(entries.map((entry) => [`${entry.manager} ${entry.operation}`, entry.fieldsV1]));
}
