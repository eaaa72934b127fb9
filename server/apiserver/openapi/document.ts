import type { KindDefinition } from '../kind.ts';
import { addBuiltinComponents, componentName } from './builtin-components.ts';
import { addCustomComponent, customComponentName, objectFields } from './custom-components.ts';
import { type Bodies, type PathItem, pathsOfKind } from './operations.ts';
import { refTo, type SchemaObject } from './schema-object.ts';

const DELETE_OPTIONS = 'meta/v1#DeleteOptions';
const STATUS = 'meta/v1#Status';
const LIST_META = 'meta/v1#ListMeta';
const PATCH = 'io.k8s.apimachinery.pkg.apis.meta.v1.Patch';

/** The OpenAPI v3 document of the kinds of one group version, as JSON. `version` is the server's. */
export function openApiDocument(path: string, kinds: readonly KindDefinition[], version: string): string {
  const schemas: Record<string, SchemaObject> = {
    [PATCH]: { type: 'object', description: 'A patch; its form is that of the content type.' },
  };
  for (const typeName of [DELETE_OPTIONS, STATUS, LIST_META]) addBuiltinComponents(typeName, schemas);
  const paths: Record<string, PathItem> = {};
  for (const kind of kinds) Object.assign(paths, pathsOfKind(kind, `/${path}`, addKind(kind, schemas)));
  return JSON.stringify({
    openapi: '3.0.0',
    info: { title: 'Kubernetes', version },
    paths: sorted(paths),
    components: { schemas: sorted(schemas) },
  });
}

function sorted<T>(record: Record<string, T>): Record<string, T> {
  return Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function addKind(kind: KindDefinition, schemas: Record<string, SchemaObject>): Bodies {
  const { group, version } = kind;
  const name = kind.schemaType
    ? componentName(kind.schemaType)
    : customComponentName(group, version, kind.kind);
  if (kind.schemaType) addBuiltinComponents(kind.schemaType, schemas);
  else addCustomComponent(name, kind.customSchema ?? { type: 'object' }, schemas);
  const list = kind.schemaType ? `${name}List` : customComponentName(group, version, kind.listKind);
  schemas[name] = {
    ...schemas[name],
    'x-kubernetes-group-version-kind': [{ group, kind: kind.kind, version }],
  };
  schemas[list] = listOf(name, kind, schemas);
  return {
    object: name,
    list,
    patch: PATCH,
    deleteOptions: componentName(DELETE_OPTIONS),
    status: componentName(STATUS),
  };
}

function listOf(item: string, kind: KindDefinition, schemas: Record<string, SchemaObject>): SchemaObject {
  const { apiVersion, kind: kindField } = objectFields(schemas);
  return {
    description: `${kind.listKind} is a list of ${kind.kind}.`,
    type: 'object',
    properties: {
      ...(apiVersion ? { apiVersion } : {}),
      items: { description: 'The objects.', type: 'array', items: { allOf: [refTo(item)], default: {} } },
      ...(kindField ? { kind: kindField } : {}),
      metadata: {
        allOf: [refTo(componentName(LIST_META))],
        default: {},
        description: 'Standard list metadata.',
      },
    },
    required: ['items'],
    'x-kubernetes-group-version-kind': [{ group: kind.group, kind: kind.listKind, version: kind.version }],
  };
}
