import { Buffer } from 'node:buffer';

const TITLE = 'Kubernetes';
const VERSION = 'v1.36.3';

/** The media type of the binary form. */
export const OPENAPI_V2_MEDIA_TYPE = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf';
/** The names clients ask for it by. */
export const OPENAPI_V2_PROTOBUF: ReadonlySet<string> = new Set([
  'application/com.github.proto-openapi.spec.v2@v1.0+protobuf',
  OPENAPI_V2_MEDIA_TYPE,
]);

/**
 * The OpenAPI v2 document: a valid one without definitions. kubectl still asks for it when a manifest holds a List or a
 * kind the server does not know, and skips its own validation of what the document does not describe; everything else is
 * in the v3 documents.
 */
export function openApiV2(): object {
  return { swagger: '2.0', info: { title: TITLE, version: VERSION }, paths: {} };
}

/** The same as protobuf. Models openapi.v2.Document of gnostic-models: swagger = 1, info = 2, paths = 8. */
export function openApiV2Protobuf(): Buffer {
  const info = Buffer.concat([field(1, TITLE), field(2, VERSION)]);
  return Buffer.concat([field(1, '2.0'), field(2, info), field(8, '')]);
}

/** A length-delimited field; texts here are shorter than 128 bytes. */
function field(number: number, content: string | Buffer): Buffer {
  const bytes = Buffer.from(content);
  return Buffer.concat([Buffer.from([(number << 3) | 2, bytes.length]), bytes]);
}
