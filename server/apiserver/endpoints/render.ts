import { stringify } from 'yaml';
import { formatApiVersion, type Status, type UnstructuredObject } from '#server/kube';
import { listMeta, listObject } from '../chain.ts';
import type { Column, KindDefinition } from '../kind.ts';
import type { ObjectAnswer, RegistryEnvironment } from '../registry/operation.ts';
import { asServed, type ListAnswer } from '../registry/read.ts';
import { servedBytes } from '../registry/watch.ts';
import { textOf } from '../storage.ts';
import type { OutputFormat } from './negotiation.ts';

export type IncludeObject = 'None' | 'Metadata' | 'Object';

export interface RenderContext {
  readonly env: RegistryEnvironment;
  readonly kind: KindDefinition;
  readonly format: OutputFormat;
  readonly includeObject: IncludeObject;
}

export interface Rendered {
  readonly contentType: string;
  readonly chunks: readonly Uint8Array[];
}

const NEW_LINE = Buffer.from('\n');
const COMMA = Buffer.from(',');

/** Any JSON value in the format asked for. */
export function renderValue(value: unknown, format: Pick<OutputFormat, 'encoding' | 'pretty'>): Rendered {
  if (format.encoding === 'yaml') {
    return {
      contentType: 'application/yaml',
      chunks: [Buffer.from(stringify(value, { aliasDuplicateObjects: false }))],
    };
  }
  const text = format.pretty ? JSON.stringify(value, null, 2) : JSON.stringify(value);
  return { contentType: 'application/json', chunks: [Buffer.from(`${text}\n`)] };
}

/** The answer about one object: as stored bytes when nothing needs to be changed, or as Table or PartialObjectMetadata. */
export function renderObject(context: RenderContext, answer: ObjectAnswer): Rendered {
  const { format, env, kind } = context;
  if (!answer.kind || isStatus(answer.object)) return renderValue(answer.object, format);
  switch (format.as) {
    case 'table':
      return renderValue(tableOf(context, [answer.object], objectListMeta(answer.object), true), format);
    case 'partial':
      return renderValue(partialOf(answer.object, format.version), format);
    case 'object':
      if (answer.stored && format.encoding === 'json' && !format.pretty) {
        return {
          contentType: 'application/json',
          chunks: [servedBytes(env, { kind }, answer.stored.value), NEW_LINE],
        };
      }
      return renderValue(answer.object, format);
  }
}

export function isStatus(object: UnstructuredObject | Status): object is Status {
  return object.kind === 'Status' && object.apiVersion === 'v1';
}

/** A list: the stored bytes one after the other when nothing needs to be changed. */
export function renderList(context: RenderContext, list: ListAnswer): Rendered {
  const { format, env, kind } = context;
  const objects = (): UnstructuredObject[] =>
    list.entries.map((entry) => asServed(env, { kind }, env.storage.decode(entry)));
  if (format.as === 'table') return renderValue(tableOf(context, objects(), listMeta(list), true), format);
  if (format.as === 'partial') {
    const items = objects().map((object) => partialOf(object, format.version));
    const value = {
      kind: 'PartialObjectMetadataList',
      apiVersion: `meta.k8s.io/${format.version}`,
      metadata: listMeta(list),
      items,
    };
    return renderValue(value, format);
  }
  if (format.encoding !== 'json' || format.pretty)
    return renderValue(listObject(env, { kind }, list), format);
  const head = {
    kind: kind.listKind,
    apiVersion: formatApiVersion(kind.group, kind.version),
    metadata: listMeta(list),
  };
  const chunks: Uint8Array[] = [Buffer.from(`${JSON.stringify(head).slice(0, -1)},"items":[`)];
  const typeMeta = typeMetaPrefix(kind);
  list.entries.forEach((entry, index) => {
    if (index > 0) chunks.push(COMMA);
    pushItem(chunks, servedBytes(env, { kind }, entry.value), typeMeta);
  });
  chunks.push(Buffer.from(']}\n'));
  return { contentType: 'application/json', chunks };
}

const OPEN = Buffer.from('{');

/** Items of lists of built-in kinds do not repeat apiVersion and kind. */
function pushItem(chunks: Uint8Array[], bytes: Uint8Array, typeMeta: Buffer | undefined): void {
  if (typeMeta && Buffer.compare(bytes.subarray(0, typeMeta.length), typeMeta) === 0) {
    chunks.push(OPEN, bytes.subarray(typeMeta.length));
  } else chunks.push(bytes);
}

const prefixes = new WeakMap<KindDefinition, Buffer>();

function typeMetaPrefix(kind: KindDefinition): Buffer | undefined {
  if (kind.schemaType === undefined) return undefined;
  let prefix = prefixes.get(kind);
  if (!prefix) {
    prefix = Buffer.from(
      `{"apiVersion":"${formatApiVersion(kind.group, kind.version)}","kind":"${kind.kind}",`,
    );
    prefixes.set(kind, prefix);
  }
  return prefix;
}

export function partialOf(object: UnstructuredObject, version: string): object {
  return { kind: 'PartialObjectMetadata', apiVersion: `meta.k8s.io/${version}`, metadata: object.metadata };
}

function objectListMeta(object: UnstructuredObject): { resourceVersion?: string } {
  const { resourceVersion } = object.metadata;
  return resourceVersion !== undefined ? { resourceVersion } : {};
}

/** Kinds without columns of their own. Models rest.NewDefaultTableConvertor. */
const DEFAULT_COLUMNS: readonly Column[] = [
  {
    name: 'Name',
    type: 'string',
    format: 'name',
    description: 'The name of the object, unique among its kind in its namespace.',
    priority: 0,
    cell: (object) => object.metadata.name,
  },
  {
    name: 'Created At',
    type: 'date',
    description: 'When the object was created.',
    priority: 0,
    cell: (object) => object.metadata.creationTimestamp ?? null,
  },
];

/** A meta.k8s.io Table. Models apiserver/pkg/endpoints/handlers/response.go asTable. */
export function tableOf(
  context: RenderContext,
  objects: readonly UnstructuredObject[],
  metadata: object,
  withColumns: boolean,
): object {
  const { kind, env, includeObject, format } = context;
  const columns = kind.columns.length > 0 ? kind.columns : DEFAULT_COLUMNS;
  const now = env.clock.now();
  return {
    kind: 'Table',
    apiVersion: `meta.k8s.io/${format.version}`,
    metadata,
    columnDefinitions: withColumns
      ? columns.map(({ name, type, format: columnFormat, description, priority }) => ({
          name,
          type,
          format: columnFormat ?? '',
          description,
          priority,
        }))
      : null,
    rows: objects.map((object) => ({
      cells: columns.map((column) => column.cell(object, now)),
      ...(includeObject === 'None'
        ? {}
        : { object: includeObject === 'Object' ? object : partialOf(object, format.version) }),
    })),
  };
}

/** A bookmark in a Table watch: no rows, only how far the watch has come. */
export function bookmarkTable(object: UnstructuredObject, format: OutputFormat): object {
  return {
    kind: 'Table',
    apiVersion: `meta.k8s.io/${format.version}`,
    metadata: { resourceVersion: object.metadata.resourceVersion },
    columnDefinitions: null,
    rows: [{ cells: [], object: partialOf(object, format.version) }],
  };
}

export function joinText(chunks: readonly Uint8Array[]): string {
  return chunks.map(textOf).join('');
}
