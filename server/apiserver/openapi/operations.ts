import type { KindDefinition, SubresourceDefinition } from '../kind.ts';
import { type GroupVersionKind, refTo, type SchemaObject } from './schema-object.ts';

interface Parameter {
  name: string;
  in: 'query' | 'path';
  required?: true;
  description: string;
  schema: { type: string; uniqueItems: true };
}

interface Operation {
  operationId: string;
  description: string;
  tags: string[];
  parameters?: Parameter[];
  requestBody?: { content: Record<string, { schema: SchemaObject }>; required?: true };
  responses: Record<string, { description: string; content?: Record<string, { schema: SchemaObject }> }>;
  'x-kubernetes-action'?: string;
  'x-kubernetes-group-version-kind'?: GroupVersionKind;
}

export interface PathItem {
  get?: Operation;
  put?: Operation;
  post?: Operation;
  delete?: Operation;
  patch?: Operation;
  parameters: Parameter[];
}

type Method = Exclude<keyof PathItem, 'parameters'>;

/** Names of the components an operation's bodies have. */
export interface Bodies {
  object: string;
  list: string;
  patch: string;
  deleteOptions: string;
  status: string;
}

function query(type: string, name: string, description: string): Parameter {
  return { name, in: 'query', description, schema: { type, uniqueItems: true } };
}

const PRETTY = query('string', 'pretty', 'If true, the answer is indented.');
const WRITE = [
  query('string', 'dryRun', 'All: nothing is stored, everything else is done.'),
  query('string', 'fieldManager', 'Name of the one who makes this change, at most 128 printable characters.'),
  query('string', 'fieldValidation', 'What becomes of unknown or repeated fields: Ignore, Warn or Strict.'),
];
const FORCE = query('boolean', 'force', 'Apply: take over fields that conflict.');
const DELETE = [
  query('string', 'dryRun', 'All: nothing is stored, everything else is done.'),
  query('integer', 'gracePeriodSeconds', 'Seconds until the object is removed; 0 is at once.'),
  query('boolean', 'orphanDependents', 'Deprecated: use propagationPolicy.'),
  query('string', 'propagationPolicy', 'What becomes of dependents: Orphan, Background or Foreground.'),
];
const LIST = [
  query('boolean', 'allowWatchBookmarks', 'Whether a watch gets BOOKMARK events.'),
  query('string', 'continue', 'Where to go on with a list that came in parts.'),
  query('string', 'fieldSelector', 'Only objects with these field values.'),
  query('string', 'labelSelector', 'Only objects with these labels.'),
  query('integer', 'limit', 'At most this many objects.'),
  query('string', 'resourceVersion', 'The version to read or watch from.'),
  query('string', 'resourceVersionMatch', 'How resourceVersion is meant: Exact or NotOlderThan.'),
  query('boolean', 'sendInitialEvents', 'Whether a watch starts with what exists.'),
  query('integer', 'timeoutSeconds', 'When the call ends at the latest.'),
  query('boolean', 'watch', 'Whether changes are streamed.'),
];
const NAME: Parameter = path('name', 'Name of the object.');
const NAMESPACE: Parameter = path('namespace', 'Namespace of the object.');

function path(name: string, description: string): Parameter {
  return { name, in: 'path', required: true, description, schema: { type: 'string', uniqueItems: true } };
}

/** Strategic merge needs the merge keys that only built-in types have. */
function patchTypes(kind: KindDefinition): string[] {
  const all = ['application/apply-patch+yaml', 'application/json-patch+json', 'application/merge-patch+json'];
  return kind.schemaType === undefined ? all : [...all, 'application/strategic-merge-patch+json'];
}

const DEFAULT_VERBS = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];

/** The paths of one kind, below `prefix` (`/api/v1`, `/apis/apps/v1`). Models apiserver/pkg/endpoints/installer.go. */
export function pathsOfKind(kind: KindDefinition, prefix: string, bodies: Bodies): Record<string, PathItem> {
  const gvk = { group: kind.group, kind: kind.kind, version: kind.version };
  const verbs = new Set(kind.verbs ?? DEFAULT_VERBS);
  const paths: Record<string, PathItem> = {};
  const scope = kind.namespaced
    ? `${prefix}/namespaces/{namespace}/${kind.plural}`
    : `${prefix}/${kind.plural}`;
  const above = kind.namespaced ? [NAMESPACE] : [];
  const add = (at: string, parameters: Parameter[], operations: [boolean, Method, Operation][]): void => {
    const wanted = operations.filter(([offered]) => offered);
    if (wanted.length === 0) return;
    const item: PathItem = { parameters: [...parameters, PRETTY] };
    for (const [, method, operation] of wanted) item[method] = operation;
    paths[at] = item;
  };
  const operation = operationBuilder(kind, bodies, gvk);
  add(scope, above, [
    [verbs.has('list'), 'get', operation('list', 'list', LIST)],
    [verbs.has('create'), 'post', operation('post', 'create', WRITE)],
    [
      verbs.has('deletecollection'),
      'delete',
      operation('deletecollection', 'deleteCollection', [...LIST, ...DELETE]),
    ],
  ]);
  if (!verbs.has('patch') && paths[scope]) paths[scope].patch = parameterNotice(kind, gvk);
  if (kind.namespaced)
    add(`${prefix}/${kind.plural}`, [], [[verbs.has('list'), 'get', operation('list', 'listAll', LIST)]]);
  add(`${scope}/{name}`, [NAME, ...above], objectOperations(verbs, '', operation));
  const parts = new Set(['get', 'patch', 'update']);
  if (kind.hasStatus)
    add(`${scope}/{name}/status`, [NAME, ...above], objectOperations(parts, 'Status', operation));
  for (const subresource of kind.subresources ?? []) {
    add(`${scope}/{name}/${subresource.name}`, [NAME, ...above], subresourceOperations(kind, subresource));
  }
  return paths;
}

/**
 * Clients learn the query parameters a kind takes from its patch operation alone (cli-runtime's verifier), and ask for a
 * v2 document, which is not served, when there is none.
 */
function parameterNotice(kind: KindDefinition, gvk: GroupVersionKind): Operation {
  return {
    description: `Not offered for ${kind.kind}; names the query parameters its other operations take.`,
    operationId: `patch${tagOf(kind)}${kind.kind}`,
    tags: [tagOf(kind)],
    parameters: WRITE,
    responses: { 405: { description: 'Method Not Allowed' } },
    'x-kubernetes-action': 'patch',
    'x-kubernetes-group-version-kind': gvk,
  };
}

type Build = (action: string, id: string, parameters: Parameter[]) => Operation;

function objectOperations(
  verbs: ReadonlySet<string>,
  part: string,
  operation: Build,
): [boolean, Method, Operation][] {
  return [
    [verbs.has('get'), 'get', operation('get', `read${part}`, [])],
    [verbs.has('update'), 'put', operation('put', `replace${part}`, WRITE)],
    [verbs.has('delete'), 'delete', operation('delete', `delete${part}`, DELETE)],
    [verbs.has('patch'), 'patch', operation('patch', `patch${part}`, [...WRITE, FORCE])],
  ];
}

function json(component: string): Record<string, { schema: SchemaObject }> {
  return { 'application/json': { schema: refTo(component) } };
}

function anyType(component: string): { content: Record<string, { schema: SchemaObject }> } {
  return { content: { '*/*': { schema: refTo(component) } } };
}

function operationBuilder(kind: KindDefinition, bodies: Bodies, gvk: GroupVersionKind): Build {
  const answers: Record<string, string> = {
    list: bodies.list,
    delete: bodies.status,
    deletecollection: bodies.status,
  };
  const requests: Record<string, Operation['requestBody']> = {
    post: { ...anyType(bodies.object), required: true },
    put: { ...anyType(bodies.object), required: true },
    delete: anyType(bodies.deleteOptions),
    deletecollection: anyType(bodies.deleteOptions),
    patch: {
      content: Object.fromEntries(patchTypes(kind).map((type) => [type, { schema: refTo(bodies.patch) }])),
      required: true,
    },
  };
  return (action, id, parameters) => {
    const body = requests[action];
    return {
      description: `${action} ${kind.kind}`,
      operationId: `${id}${tagOf(kind)}${kind.kind}`,
      tags: [tagOf(kind)],
      ...(parameters.length ? { parameters } : {}),
      ...(body ? { requestBody: body } : {}),
      responses: {
        [action === 'post' ? '201' : '200']: {
          description: action === 'post' ? 'Created' : 'OK',
          content: json(answers[action] ?? bodies.object),
        },
        401: { description: 'Unauthorized' },
      },
      'x-kubernetes-action': action,
      'x-kubernetes-group-version-kind': gvk,
    };
  };
}

function tagOf(kind: KindDefinition): string {
  const group = kind.group.split('.')[0] || 'core';
  return `${group}_${kind.version}`;
}

const METHOD_OF_VERB: Readonly<Record<string, [Method, string]>> = {
  get: ['get', 'get'],
  create: ['post', 'post'],
  update: ['put', 'put'],
  patch: ['patch', 'patch'],
  delete: ['delete', 'delete'],
};

/** Subresources with handlers of their own: what they take and give is not described, only that they exist. */
function subresourceOperations(
  kind: KindDefinition,
  subresource: SubresourceDefinition,
): [boolean, Method, Operation][] {
  const gvk = {
    group: subresource.group ?? kind.group,
    kind: subresource.kind,
    version: subresource.version ?? kind.version,
  };
  return subresource.verbs.flatMap((verb): [boolean, Method, Operation][] => {
    const known = METHOD_OF_VERB[verb];
    if (!known) return [];
    const [method, action] = known;
    const operation: Operation = {
      description: `${verb} ${subresource.name} of ${kind.kind}`,
      operationId: `${verb}${tagOf(kind)}${kind.kind}_${subresource.name}`,
      tags: [tagOf(kind)],
      ...(method === 'get' ? {} : { parameters: method === 'patch' ? [...WRITE, FORCE] : WRITE }),
      responses: { 200: { description: 'OK' }, 401: { description: 'Unauthorized' } },
      'x-kubernetes-action': action,
      'x-kubernetes-group-version-kind': gvk,
    };
    return [[true, method, operation]];
  });
}
