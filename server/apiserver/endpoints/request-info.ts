import type { Verb } from '../registry/operation.ts';

/** What a path and method ask for, before anything is looked up. */
export interface RequestInfo {
  /** Path without the query, still encoded. */
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  /** All values of parameters that may repeat (`command` of exec). */
  readonly parameters: URLSearchParams;
  /** Undefined: a path outside the resources (`/version`, `/apis`). */
  readonly resource: ResourceInfo | undefined;
  /** Lower-case HTTP method, as RBAC names the verb of a non-resource request. */
  readonly method: string;
}

export interface ResourceInfo {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly subresource: string | undefined;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly verb: Verb;
  /** Elements behind the subresource (proxy paths). */
  readonly rest: readonly string[];
}

const NAMESPACE_SUBRESOURCES = new Set(['status', 'finalize']);
const MAX_PATH_LENGTH = 8192;

/** The path cannot be read: 400. */
export class PathError extends Error {
  override readonly name = 'PathError';
}

/**
 * Reads method and URL (path and query below the cluster's prefix). Throws PathError when it is not well formed.
 * Models k8s.io/apiserver/pkg/endpoints/request/requestinfo.go.
 */
export function requestInfo(method: string, url: string): RequestInfo {
  if (url.length > MAX_PATH_LENGTH) throw new PathError('the path is too long');
  const mark = url.indexOf('?');
  const path = mark < 0 ? url : url.slice(0, mark);
  const parameters = new URLSearchParams(mark < 0 ? '' : url.slice(mark + 1));
  const query: Record<string, string> = Object.create(null) as Record<string, string>;
  for (const [key, value] of parameters) query[key] ??= value;
  const info = { path: path || '/', query, parameters, method: method.toLowerCase() };
  return { ...info, resource: resourceInfo(method, path, query) };
}

function resourceInfo(method: string, path: string, query: Record<string, string>): ResourceInfo | undefined {
  const parts = path
    .split('/')
    .filter((part) => part !== '')
    .map(decodePart);
  const prefix = parts.shift();
  let group = '';
  if (prefix === 'apis') group = parts.shift() ?? '';
  else if (prefix !== 'api') return undefined;
  const version = parts.shift();
  if (version === undefined || parts.length === 0 || (prefix === 'apis' && group === '')) return undefined;

  let verb = verbOf(method);
  if (verb === undefined) return undefined;
  let deprecatedWatch = false;
  if (parts[0] === 'watch') {
    deprecatedWatch = true;
    parts.shift();
  }
  let namespace: string | undefined;
  if (parts[0] === 'namespaces' && parts.length > 1) {
    const candidate = parts[1];
    if (parts.length > 2 && !(parts[2] !== undefined && NAMESPACE_SUBRESOURCES.has(parts[2]))) {
      namespace = candidate;
      parts.splice(0, 2);
    }
  }
  const [plural, name, subresource, ...rest] = parts;
  if (plural === undefined) return undefined;
  if (name === undefined) {
    if (verb === 'get') verb = 'list';
    if (verb === 'delete') verb = 'deletecollection';
  }
  const watching = query['watch'] !== undefined && query['watch'] !== 'false' && query['watch'] !== '0';
  if ((verb === 'list' && watching) || (deprecatedWatch && (verb === 'list' || verb === 'get')))
    verb = 'watch';
  const selected =
    name === undefined && (verb === 'list' || verb === 'watch' || verb === 'deletecollection')
      ? selectedName(query)
      : undefined;
  return { group, version, plural, subresource, namespace, name: name ?? selected, verb, rest };
}

/** `fieldSelector=metadata.name=x` counts as a request for x, for authorization too. */
function selectedName(query: Record<string, string>): string | undefined {
  const selector = query['fieldSelector'];
  if (!selector) return undefined;
  for (const term of selector.split(',')) {
    const match = /^metadata\.name==?([^=!\\]+)$/.exec(term.trim());
    if (match?.[1]) return match[1];
  }
  return undefined;
}

function verbOf(method: string): Verb | undefined {
  switch (method) {
    case 'GET':
    case 'HEAD':
      return 'get';
    case 'POST':
      return 'create';
    case 'PUT':
      return 'update';
    case 'PATCH':
      return 'patch';
    case 'DELETE':
      return 'delete';
    default:
      return undefined;
  }
}

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new PathError(`invalid URL escape in ${JSON.stringify(part)}`);
  }
}
