import { createHash } from 'node:crypto';
import { gunzipSync, gzipSync } from 'node:zlib';
import type { KindDefinition } from '../kind.ts';
import { openApiDocument } from './document.ts';

export interface OpenApiIndex {
  /** JSON. */
  body: string;
  /** Quoted, for the ETag header. */
  etag: string;
}

export interface OpenApiDocument {
  /** JSON, gzip-compressed. */
  gzip: Buffer;
  /** The same, plain; unpacked on each call. */
  plain(): Buffer;
  /** Quoted, for the ETag header. */
  etag: string;
  /** What `?hash=` must carry for an answer that may be kept for ever. */
  hash: string;
}

export interface OpenApi {
  /** GET /openapi/v3 */
  index(): OpenApiIndex;
  /** GET /openapi/v3/<path>, path as `api/v1` or `apis/apps/v1`; undefined: no such document. */
  document(groupVersionPath: string): OpenApiDocument | undefined;
}

/**
 * To be raised when the same kinds give other documents than before: clients keep a document for ever by its hash. A test
 * holds the digest of a document of this form.
 */
const FORM = '2';
const SERVER_VERSION = 'v1.36.3';
/** Documents kept, compressed, for all clusters of the process; the one not asked for longest goes first. */
const MOST_DOCUMENTS = 128;

const documents = new Map<string, OpenApiDocument>();
const fingerprints = new WeakMap<KindDefinition, string>();

/**
 * The OpenAPI v3 documents of a server. `kinds` is asked on every call. A document's hash is that of the kinds it
 * describes, so the index costs nothing and a document is built when first asked for, once for all clusters that serve
 * the same kinds. Models k8s.io/kube-openapi/pkg/handler3 and apiserver/pkg/endpoints/openapi.
 */
export function createOpenApi({ kinds }: { kinds: () => readonly KindDefinition[] }): OpenApi {
  let seen: readonly KindDefinition[] | undefined;
  let groups = new Map<string, { kinds: KindDefinition[]; hash: string }>();
  const current = (): typeof groups => {
    const now = kinds();
    if (now !== seen) {
      groups = groupByPath(now);
      seen = now;
    }
    return groups;
  };
  return {
    index() {
      const entries = [...current()].sort(([a], [b]) => (a < b ? -1 : 1));
      const paths = entries.map(
        ([path, { hash }]) => [path, { serverRelativeURL: `/openapi/v3/${path}?hash=${hash}` }] as const,
      );
      const body = JSON.stringify({ paths: Object.fromEntries(paths) });
      return { body, etag: `"${digest(body)}"` };
    },
    document(path) {
      const group = current().get(path);
      return group && documentOf(path, group.kinds, group.hash);
    },
  };
}

function groupByPath(
  kinds: readonly KindDefinition[],
): Map<string, { kinds: KindDefinition[]; hash: string }> {
  const byPath = new Map<string, KindDefinition[]>();
  for (const kind of kinds) {
    const path = kind.group ? `apis/${kind.group}/${kind.version}` : `api/${kind.version}`;
    const list = byPath.get(path);
    if (list) list.push(kind);
    else byPath.set(path, [kind]);
  }
  return new Map(
    [...byPath].map(([path, list]) => [
      path,
      { kinds: list, hash: digest([FORM, SERVER_VERSION, path, ...list.map(fingerprint)].join('\n')) },
    ]),
  );
}

function documentOf(path: string, kinds: readonly KindDefinition[], hash: string): OpenApiDocument {
  let found = documents.get(hash);
  if (found) {
    documents.delete(hash);
  } else {
    const gzip = gzipSync(openApiDocument(path, kinds, SERVER_VERSION), { level: 6 });
    found = { gzip, plain: () => gunzipSync(gzip), etag: `"${hash}"`, hash };
    const oldest = documents.size >= MOST_DOCUMENTS ? documents.keys().next() : undefined;
    if (oldest && !oldest.done) documents.delete(oldest.value);
  }
  documents.set(hash, found);
  return found;
}

/** Of everything the document shows of a kind. */
function fingerprint(kind: KindDefinition): string {
  const known = fingerprints.get(kind);
  if (known !== undefined) return known;
  const {
    group,
    version,
    listKind,
    plural,
    namespaced,
    verbs,
    subresources,
    schemaType,
    customSchema,
    hasStatus,
  } = kind;
  const shown = [
    group,
    version,
    kind.kind,
    listKind,
    plural,
    namespaced,
    verbs,
    subresources,
    schemaType,
    customSchema,
    hasStatus,
  ];
  const made = digest(JSON.stringify(shown));
  fingerprints.set(kind, made);
  return made;
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').toUpperCase();
}
