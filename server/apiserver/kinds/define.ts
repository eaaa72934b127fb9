import { builtinSchema, type UnstructuredObject } from '#server/kube';
import type { KindDefinition, RequestContext, Strategy, SubresourceDefinition } from '../kind.ts';
import { shapeAsGo } from './go-shape.ts';

interface KindRow {
  group: string;
  kind: string;
  plural: string;
  namespaced: boolean;
  /** Package of the field data: `core/v1`, `apps/v1`. */
  types: string;
  shortNames?: readonly string[];
  categories?: readonly string[];
  verbs?: readonly string[];
  deprecation?: string;
  hasStatus?: boolean;
  scale?: KindDefinition['scale'];
  subresources?: readonly SubresourceDefinition[];
  strategy?: Strategy;
  columns: KindDefinition['columns'];
  selectableFields?: KindDefinition['selectableFields'];
}

/**
 * A row of the table of built-in kinds: names derived the way all upstream kinds derive them, and `defaults` preceded by
 * what decoding into a Go struct does (types checked, unknown members dropped, zero values as upstream writes them), so
 * that every later step may trust the shape.
 */
export function defineKind(row: KindRow): KindDefinition {
  const schemaType = `${row.types}#${row.kind}`;
  const strategy = row.strategy ?? {};
  return {
    group: row.group,
    version: 'v1',
    kind: row.kind,
    listKind: `${row.kind}List`,
    plural: row.plural,
    singular: row.kind.toLowerCase(),
    shortNames: row.shortNames ?? [],
    categories: row.categories ?? [],
    namespaced: row.namespaced,
    schemaType,
    ...(row.deprecation ? { deprecation: row.deprecation } : {}),
    ...(row.verbs ? { verbs: row.verbs } : {}),
    hasStatus: row.hasStatus ?? false,
    ...(row.scale ? { scale: row.scale } : {}),
    ...(row.subresources ? { subresources: row.subresources } : {}),
    strategy: {
      ...strategy,
      defaults(object: UnstructuredObject): void {
        shapeAsGo(object, builtinSchema(schemaType));
        strategy.defaults?.(object);
      },
      async prepareForCreate(object: UnstructuredObject, context: RequestContext): Promise<void> {
        await strategy.prepareForCreate?.(object, context);
        // What was set just now (a status) is written the Go way, too.
        shapeAsGo(object, builtinSchema(schemaType));
      },
    },
    columns: row.columns,
    ...(row.selectableFields ? { selectableFields: row.selectableFields } : {}),
  };
}
