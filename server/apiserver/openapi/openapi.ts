import type { KindDefinition } from '../kind.ts';

export interface OpenApiIndex {
  /** JSON. */
  body: string;
  etag: string;
}

export interface OpenApiDocument {
  /** JSON, gzip-compressed. */
  gzip: Buffer;
  /** JSON, plain; made when first asked for. */
  plain(): Buffer;
  /** Quoted, for the ETag header. */
  etag: string;
  /** What `?hash=` must carry for an immutable answer. */
  hash: string;
}

export interface OpenApi {
  /** GET /openapi/v3 */
  index(): OpenApiIndex;
  /** GET /openapi/v3/<path>, path as `api/v1` or `apis/apps/v1`; undefined: no such document. */
  document(groupVersionPath: string): OpenApiDocument | undefined;
}

/** `kinds` is asked each time; documents are cached by the content of their kinds, for all clusters of the process. */
export function createOpenApi(_options: { kinds: () => readonly KindDefinition[] }): OpenApi {
  throw new Error('not yet');
}
