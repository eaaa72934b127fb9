import { parseDocument, visit } from 'yaml';
import type { RestConfig } from './contract.ts';

/** A kubeconfig that is broken, or asks for something this product does not do for a file it did not write. */
export class KubeconfigError extends Error {
  override readonly name = 'KubeconfigError';
  /** The offending field: `users[0].user.exec`; undefined when the file as a whole is at fault. */
  readonly field: string | undefined;
  constructor(message: string, field?: string) {
    super(field === undefined ? `kubeconfig: ${message}` : `kubeconfig: ${field}: ${message}`);
    this.field = field;
  }
}

/** UTF-16 units a kubeconfig may have. */
const MAX_SIZE = 256 * 1024;
/** How deep collections may be nested; a kubeconfig needs 4. */
const MAX_DEPTH = 16;
/** How many clusters, users and contexts there may be, each. */
const MAX_ENTRIES = 256;

type Fields = Record<string, unknown>;

/** What is read, and what is known to do nothing and is passed over. Everything else is refused by name. */
const TOP = [
  'apiVersion',
  'kind',
  'clusters',
  'users',
  'contexts',
  'current-context',
  'preferences',
  'extensions',
];
const CLUSTER = ['server', 'certificate-authority-data', 'extensions'];
const USER = ['client-certificate-data', 'client-key-data', 'token', 'extensions'];
const CONTEXT = ['cluster', 'user', 'namespace', 'extensions'];

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Cheap guard before the parser recurses: how deep `[` and `{` nest at most. Those in quotes count too. */
function flowDepth(text: string): number {
  let depth = 0;
  let deepest = 0;
  for (let i = 0; i < text.length; i++) {
    const char = text.charCodeAt(i);
    if (char === 0x5b || char === 0x7b) deepest = Math.max(deepest, ++depth);
    else if ((char === 0x5d || char === 0x7d) && depth > 0) depth--;
  }
  return deepest;
}

/** The same for block collections: a deeper one starts further right, or behind further dashes on one line. */
function blockDepth(text: string): number {
  let deepest = 0;
  for (const line of text.split('\n')) {
    const [lead = ''] = /^[ \t?:-]*/.exec(line) ?? [];
    deepest = Math.max(deepest, lead.length);
  }
  return deepest;
}

/** How far right a line of a kubeconfig may begin: what fits the greatest depth with room for wide indentation. */
const MAX_INDENT = 128;

function readYaml(text: string): unknown {
  if (text.length > MAX_SIZE) throw new KubeconfigError(`longer than ${MAX_SIZE} characters`);
  if (flowDepth(text) > MAX_DEPTH || blockDepth(text) > MAX_INDENT)
    throw new KubeconfigError('nested too deeply');
  const document = parseDocument(text, {
    schema: 'core',
    uniqueKeys: true,
    stringKeys: true,
    logLevel: 'error',
  });
  const [problem] = [...document.errors, ...document.warnings];
  if (problem) throw new KubeconfigError(`not valid YAML (${problem.code})`);
  visit(document, {
    Alias: () => {
      throw new KubeconfigError('YAML aliases are refused');
    },
    Node: (_key, node, path) => {
      if (path.length > 2 * MAX_DEPTH) throw new KubeconfigError('nested too deeply');
      if ('anchor' in node && node.anchor) throw new KubeconfigError('YAML anchors are refused');
    },
  });
  return document.toJS({ maxAliasCount: 0 });
}

function fieldsOf(value: unknown, path: string, allowed: readonly string[]): Fields {
  if (!isFields(value)) throw new KubeconfigError('must be a mapping', path);
  for (const name of Object.keys(value)) {
    if (!allowed.includes(name)) throw new KubeconfigError('is refused', path ? `${path}.${name}` : name);
  }
  return value;
}

function text(fields: Fields, name: string, path: string): string | undefined {
  const value = fields[name];
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value !== 'string') throw new KubeconfigError('must be a string', `${path}.${name}`);
  return value;
}

/** The entries of `clusters`, `users` or `contexts` by name; of two with one name the first counts, as in client-go. */
function entries(
  config: Fields,
  list: string,
  inner: string,
  allowed: readonly string[],
): Map<string, { fields: Fields; path: string }> {
  const items = config[list] ?? [];
  if (!Array.isArray(items)) throw new KubeconfigError('must be a list', list);
  if (items.length > MAX_ENTRIES) throw new KubeconfigError(`has more than ${MAX_ENTRIES} entries`, list);
  const found = new Map<string, { fields: Fields; path: string }>();
  items.forEach((item: unknown, index) => {
    const path = `${list}[${index}]`;
    const entry = fieldsOf(item, path, ['name', inner]);
    const name = text(entry, 'name', path);
    if (!name) throw new KubeconfigError('is missing', `${path}.name`);
    const innerPath = `${path}.${inner}`;
    const fields = fieldsOf(entry[inner] ?? {}, innerPath, allowed);
    if (!found.has(name)) found.set(name, { fields, path: innerPath });
  });
  return found;
}

function pem(fields: Fields, name: string, path: string, label: RegExp): string | undefined {
  const value = text(fields, name, path);
  if (value === undefined) return undefined;
  const compact = value.replace(/\s+/g, '');
  const field = `${path}.${name}`;
  if (compact.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(compact))
    throw new KubeconfigError('is not base64', field);
  const decoded = Buffer.from(compact, 'base64').toString('latin1');
  if (!label.test(decoded)) throw new KubeconfigError('holds no such PEM block', field);
  return decoded;
}

function serverUrl(fields: Fields, path: string): string {
  const field = `${path}.server`;
  const value = text(fields, 'server', path);
  if (!value) throw new KubeconfigError('is missing', field);
  if (!URL.canParse(value)) throw new KubeconfigError('is not a URL', field);
  const url = new URL(value);
  if (url.protocol !== 'https:') throw new KubeconfigError('must be an https URL', field);
  if (url.username || url.password) throw new KubeconfigError('must not hold credentials', field);
  if (url.search || url.hash) throw new KubeconfigError('must not have a query or fragment', field);
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
}

function bearerToken(fields: Fields, path: string): string | undefined {
  const token = text(fields, 'token', path);
  if (token && !/^[\x21-\x7e]+$/.test(token))
    throw new KubeconfigError('must be printable ASCII', `${path}.token`);
  return token;
}

function namespaceOf(fields: Fields, path: string): string | undefined {
  const namespace = text(fields, 'namespace', path);
  if (namespace && !/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(namespace)) {
    throw new KubeconfigError('is not a namespace name', `${path}.namespace`);
  }
  return namespace;
}

function required<T>(value: T | undefined, name: string | undefined, field: string): T {
  if (value === undefined)
    throw new KubeconfigError(name ? `names "${name}", which is not there` : 'is missing', field);
  return value;
}

function parse(source: string): RestConfig {
  const config = fieldsOf(readYaml(source), '', TOP);
  if (config['kind'] !== undefined && config['kind'] !== 'Config')
    throw new KubeconfigError('must be Config', 'kind');
  if (config['apiVersion'] !== undefined && config['apiVersion'] !== 'v1')
    throw new KubeconfigError('must be v1', 'apiVersion');
  const clusters = entries(config, 'clusters', 'cluster', CLUSTER);
  const users = entries(config, 'users', 'user', USER);
  const contexts = entries(config, 'contexts', 'context', CONTEXT);

  const current = text(config, 'current-context', '');
  const context = required(contexts.get(current ?? ''), current, 'current-context');
  const clusterName = text(context.fields, 'cluster', context.path);
  const cluster = required(clusters.get(clusterName ?? ''), clusterName, `${context.path}.cluster`);
  const userName = text(context.fields, 'user', context.path);
  const user = required(users.get(userName ?? ''), userName, `${context.path}.user`);

  const caPem = pem(
    cluster.fields,
    'certificate-authority-data',
    cluster.path,
    /-----BEGIN CERTIFICATE-----/,
  );
  const certPem = pem(user.fields, 'client-certificate-data', user.path, /-----BEGIN CERTIFICATE-----/);
  const keyPem = pem(user.fields, 'client-key-data', user.path, /-----BEGIN [A-Z ]*PRIVATE KEY-----/);
  if (certPem && !keyPem) throw new KubeconfigError('is missing', `${user.path}.client-key-data`);
  if (keyPem && !certPem) throw new KubeconfigError('is missing', `${user.path}.client-certificate-data`);
  const token = bearerToken(user.fields, user.path);
  const namespace = namespaceOf(context.fields, context.path);
  return {
    server: serverUrl(cluster.fields, cluster.path),
    ...(caPem ? { caPem } : {}),
    ...(certPem ? { certPem } : {}),
    ...(keyPem ? { keyPem } : {}),
    ...(token ? { token } : {}),
    ...(namespace ? { namespace } : {}),
  };
}

/**
 * Reads the current context of a kubeconfig that somebody else wrote. A kubeconfig can be a program (`exec` plugins), name
 * files of this machine or switch verification off; so only `server`, `certificate-authority-data`,
 * `client-certificate-data`, `client-key-data`, `token` and the namespace are followed, and any other field, anywhere in
 * the file, throws KubeconfigError with its path, as does a server that is not https. The text of secrets is never part
 * of a message. Models k8s.io/client-go/tools/clientcmd/api/v1, as far as it is followed.
 */
export function parseKubeconfig(source: string): RestConfig {
  try {
    return parse(source);
  } catch (error) {
    if (error instanceof KubeconfigError) throw error;
    throw new KubeconfigError('cannot be read');
  }
}
