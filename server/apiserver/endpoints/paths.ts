import { errorMessage } from '#server/base';
import { jsonWebKeySet, openIdConfiguration } from '../authn/openid.ts';
import type { KindTable } from '../kind-table.ts';
import { createOpenApi, type OpenApi } from '../openapi/openapi.ts';
import {
  OPENAPI_V2_MEDIA_TYPE,
  OPENAPI_V2_PROTOBUF,
  openApiV2,
  openApiV2Protobuf,
} from '../openapi/openapi-v2.ts';
import { createDiscovery, type DiscoveryForm } from './discovery.ts';
import { type HttpAnswer, pageNotFound, textAnswer } from './http-answer.ts';
import { notAcceptable, parseAccept } from './negotiation.ts';
import type { RequestInfo } from './request-info.ts';

/** What this server claims to be. */
export const VERSION = {
  major: '1',
  minor: '36',
  emulationMajor: '1',
  emulationMinor: '36',
  minCompatibilityMajor: '1',
  minCompatibilityMinor: '35',
  gitVersion: 'v1.36.3',
  gitCommit: '0f29094e5b73085e3802ecc1298ecae13866bfe6',
  gitTreeState: 'clean',
  buildDate: '2026-07-22T18:10:35Z',
  goVersion: 'go1.26.5',
  compiler: 'gc',
  platform: 'linux/amd64',
};

const ONE_YEAR = 365 * 24 * 3600;

export interface HealthCheck {
  readonly name: string;
  /** Throws when it fails. */
  check(): void;
  /** Only asked by /readyz. */
  readonly readinessOnly?: boolean;
}

export interface PathsOptions {
  kinds: KindTable;
  now: () => number;
  checks: readonly HealthCheck[];
  serviceAccount: { issuer: string; verifyingKeysPem: readonly string[] };
}

export interface PathHeaders {
  accept?: string | undefined;
  ifNoneMatch?: string | undefined;
  acceptEncoding?: string | undefined;
}

/** Everything that is not a resource: discovery, OpenAPI, version, health, OpenID. Unknown paths are answered 404. */
export interface Paths {
  answer(info: RequestInfo, headers: PathHeaders): HttpAnswer;
}

export function createPaths(options: PathsOptions): Paths {
  const discovery = createDiscovery(options.kinds);
  let openApi: OpenApi | undefined;
  const theOpenApi = (): OpenApi => {
    openApi ??= createOpenApi({ kinds: () => options.kinds.all() });
    return openApi;
  };
  return {
    answer(info, headers) {
      if (info.method !== 'get' && info.method !== 'head')
        return textAnswer(405, '405: Method Not Allowed\n');
      const path = info.path.length > 1 ? info.path.replace(/\/+$/, '') : info.path;
      const [, first = '', second] = path.split('/');
      switch (first) {
        case '':
          return jsonAnswer({ paths: rootPaths(options.kinds) });
        case 'version':
          return path === '/version' ? jsonAnswer(VERSION) : pageNotFound();
        case 'healthz':
        case 'livez':
        case 'readyz':
          return health(first, path, info, options.checks);
        case 'api':
        case 'apis':
          return discoveryAnswer(discovery.answer(path, formOf(path, headers.accept)), headers);
        case 'openapi':
          if (path === '/openapi/v2') return openApiV2Answer(headers.accept);
          return second === 'v3'
            ? openApiAnswer(theOpenApi(), path, info, headers, options.now())
            : pageNotFound();
        case '.well-known':
          if (path !== '/.well-known/openid-configuration') return pageNotFound();
          return keyAnswer(openIdConfiguration(options.serviceAccount.issuer), 'application/json');
        case 'openid':
          if (path !== '/openid/v1/jwks') return pageNotFound();
          return keyAnswer(
            jsonWebKeySet(options.serviceAccount.verifyingKeysPem),
            'application/jwk-set+json',
          );
        default:
          return pageNotFound();
      }
    },
  };
}

function jsonAnswer(value: object): HttpAnswer {
  return {
    code: 200,
    headers: { 'Content-Type': 'application/json' },
    chunks: [Buffer.from(JSON.stringify(value, null, 2))],
  };
}

function keyAnswer(value: object, contentType: string): HttpAnswer {
  return {
    code: 200,
    headers: { 'Content-Type': contentType, 'Cache-Control': 'public, max-age=3600' },
    chunks: [Buffer.from(JSON.stringify(value))],
  };
}

/** Models the Accept handling of k8s.io/kube-openapi/pkg/handler. */
function openApiV2Answer(accept: string | undefined): HttpAnswer {
  for (const { type } of parseAccept(accept)) {
    if (OPENAPI_V2_PROTOBUF.has(type)) {
      // Not the name asked with: its `@` is no valid Content-Type, and clients refuse to parse it.
      const headers = { 'Content-Type': OPENAPI_V2_MEDIA_TYPE, Vary: 'Accept' };
      return { code: 200, headers, chunks: [openApiV2Protobuf()] };
    }
    if (['application/json', 'application/*', '*/*'].includes(type)) return jsonAnswer(openApiV2());
  }
  throw notAcceptable(['application/json', ...OPENAPI_V2_PROTOBUF]);
}

/** Which form of discovery an Accept header asks for: the first it names that is served. */
function formOf(path: string, accept: string | undefined): DiscoveryForm {
  if (path !== '/api' && path !== '/apis') return 'plain';
  for (const { type, parameters } of parseAccept(accept)) {
    if (type !== 'application/json' && type !== '*/*' && type !== 'application/*') continue;
    if (parameters['as'] === undefined) return 'plain';
    const version = parameters['v'];
    if (parameters['as'] === 'APIGroupDiscoveryList' && parameters['g'] === 'apidiscovery.k8s.io') {
      if (version === 'v2' || version === 'v2beta1') return version;
    }
  }
  throw notAcceptable(['application/json', 'application/yaml', 'application/vnd.kubernetes.protobuf']);
}

function discoveryAnswer(
  document: ReturnType<ReturnType<typeof createDiscovery>['answer']>,
  headers: PathHeaders,
): HttpAnswer {
  if (!document) return pageNotFound();
  const { etag, contentType, body } = document;
  const common = {
    'Content-Type': contentType,
    Vary: 'Accept',
    ...(etag ? { ETag: etag, 'Cache-Control': 'public' } : {}),
  };
  if (etag && matchesTag(headers.ifNoneMatch, etag)) return { code: 304, headers: common, chunks: [] };
  return { code: 200, headers: common, chunks: [body] };
}

function matchesTag(header: string | undefined, etag: string): boolean {
  return header?.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag) ?? false;
}

function openApiAnswer(
  openApi: OpenApi,
  path: string,
  info: RequestInfo,
  headers: PathHeaders,
  now: number,
): HttpAnswer {
  if (path === '/openapi/v3') {
    const index = openApi.index();
    const common = { 'Content-Type': 'application/json', ETag: index.etag, Vary: 'Accept' };
    if (matchesTag(headers.ifNoneMatch, index.etag)) return { code: 304, headers: common, chunks: [] };
    return { code: 200, headers: common, chunks: [Buffer.from(index.body)] };
  }
  const document = openApi.document(path.slice('/openapi/v3/'.length));
  if (!document) return pageNotFound();
  const asked = info.query['hash'];
  const caching: Record<string, string> =
    asked !== undefined && asked === document.hash
      ? { 'Cache-Control': 'public, immutable', Expires: new Date(now + ONE_YEAR * 1000).toUTCString() }
      : {};
  const common = { 'Content-Type': 'application/json', ETag: document.etag, Vary: 'Accept', ...caching };
  if (asked !== undefined && asked !== document.hash) {
    const location = `${info.path}?hash=${encodeURIComponent(document.hash)}`;
    return {
      code: 301,
      headers: { ...common, Location: location.slice(location.lastIndexOf('/') + 1) },
      chunks: [],
    };
  }
  if (matchesTag(headers.ifNoneMatch, document.etag)) return { code: 304, headers: common, chunks: [] };
  if (headers.acceptEncoding?.includes('gzip')) {
    return {
      code: 200,
      headers: { ...common, Vary: 'Accept, Accept-Encoding', 'Content-Encoding': 'gzip' },
      chunks: [document.gzip],
    };
  }
  return { code: 200, headers: common, chunks: [document.plain()] };
}

/** Models k8s.io/apiserver/pkg/server/healthz. */
function health(
  endpoint: string,
  path: string,
  info: RequestInfo,
  checks: readonly HealthCheck[],
): HttpAnswer {
  const asked = checks.filter((one) => endpoint === 'readyz' || !one.readinessOnly);
  const single = path.slice(endpoint.length + 2);
  if (single) {
    const one = asked.find(({ name }) => name === single);
    if (!one) return pageNotFound();
    const failed = failureOf(one);
    return failed === undefined
      ? textAnswer(200, 'ok')
      : textAnswer(500, `internal server error: ${failed}\n`);
  }
  const excluded = new Set(info.parameters.getAll('exclude'));
  const lines: string[] = [];
  let bad = 0;
  for (const one of asked) {
    if (excluded.has(one.name)) {
      lines.push(`[+]${one.name} excluded: ok`);
      continue;
    }
    const failed = failureOf(one);
    if (failed === undefined) lines.push(`[+]${one.name} ok`);
    else {
      bad++;
      lines.push(`[-]${one.name} failed: reason withheld`);
    }
  }
  if (bad > 0) return textAnswer(500, `${lines.join('\n')}\n${endpoint} check failed\n`);
  return textAnswer(
    200,
    info.query['verbose'] === undefined ? 'ok' : `${lines.join('\n')}\n${endpoint} check passed\n`,
  );
}

function failureOf(check: HealthCheck): string | undefined {
  try {
    check.check();
    return undefined;
  } catch (error) {
    return errorMessage(error);
  }
}

function rootPaths(kinds: KindTable): string[] {
  const paths = ['/.well-known/openid-configuration', '/api', '/api/v1', '/apis'];
  for (const { group, versions } of kinds.groups()) {
    if (group) paths.push(`/apis/${group}`, ...versions.map((version) => `/apis/${group}/${version}`));
  }
  return [
    ...paths.sort(),
    '/healthz',
    '/livez',
    '/openapi/v3',
    '/openapi/v3/',
    '/openid/v1/jwks',
    '/readyz',
    '/version',
  ];
}
