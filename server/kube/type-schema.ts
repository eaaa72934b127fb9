/**
 * The shape of a value as the machinery needs it: strict decoding, strategic merge, server-side apply, OpenAPI. Built-in
 * types come from the field data, custom resources from their JSON schema; both become this.
 * Schemas are built lazily and shared; never modify one.
 */
export type TypeSchema = ScalarSchema | AnySchema | MapSchema | ListSchema | StructSchema;

export interface ScalarSchema {
  readonly kind: 'scalar';
  readonly scalar:
    | 'string'
    | 'boolean'
    | 'byte'
    | 'bytes'
    | 'int32'
    | 'int64'
    | 'number'
    | 'Time'
    | 'MicroTime'
    | 'Duration'
    | 'Quantity'
    | 'IntOrString';
  readonly enumValues?: readonly string[];
}

/** Anything at all: RawExtension, FieldsV1, preserve-unknown-fields without properties. */
export interface AnySchema {
  readonly kind: 'any';
  /** Of custom resources: apply owns maps in it member by member (lists whole). Otherwise the value is owned whole. */
  readonly deduced?: boolean;
}

export interface MapSchema {
  readonly kind: 'map';
  readonly values: TypeSchema;
  readonly atomic: boolean;
}

export interface ListSchema {
  readonly kind: 'list';
  readonly items: TypeSchema;
  /** For server-side apply. Built-in lists without a marker are atomic. */
  readonly listType: 'atomic' | 'set' | 'map';
  readonly mapKeys: readonly string[];
}

export interface StructSchema {
  readonly kind: 'struct';
  /** Flattened: inlined structs are already merged in. Built on first use. */
  readonly fields: ReadonlyMap<string, FieldSchema>;
  readonly atomic: boolean;
  /** Custom resources with x-kubernetes-preserve-unknown-fields: unknown fields are kept. */
  readonly preserveUnknown: boolean;
  /** `core/v1#Pod` for built-in types. */
  readonly typeName?: string;
}

export interface FieldSchema {
  readonly name: string;
  readonly type: TypeSchema;
  readonly required: boolean;
  readonly omitEmpty: boolean;
  readonly pointer: boolean;
  readonly default?: unknown;
  /** Strategic merge: `merge`, `replace`, `retainKeys`, or a comma-separated mix. */
  readonly patchStrategy?: string;
  readonly patchMergeKey?: string;
}
