import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { isMap, LineCounter, type ParsedNode, parseDocument } from 'yaml';
import type { StatusError } from '#server/kube';
import { badRequest, decodeProtobuf, failure, isProtobuf } from '#server/kube';
import type { KindDefinition } from '../kind.ts';
import { scanJson } from './json-text.ts';

export const MAX_BODY_BYTES = 3 * 1024 * 1024;
const MAX_YAML_ALIASES = 100;
const SUMMARY_BYTES = 30;

const inflate = promisify(gunzip);

export interface DecodedBody {
  readonly value: unknown;
  readonly duplicates: readonly string[];
  readonly mediaType: string;
}

/** The whole body. Throws 413 above 3 MiB. Rejects with the socket's error when the client goes away. */
export async function readBody(request: IncomingMessage): Promise<Buffer> {
  const announced = Number(request.headers['content-length'] ?? 0);
  if (announced > MAX_BODY_BYTES) throw tooLarge();
  const chunks: Buffer[] = [];
  let size = 0;
  // What is left of a body that is too large stays readable: the client has to get the answer.
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_BODY_BYTES) throw tooLarge();
    chunks.push(chunk);
  }
  const body = chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks);
  if (request.headers['content-encoding'] !== 'gzip') return body;
  try {
    return await inflate(body, { maxOutputLength: MAX_BODY_BYTES });
  } catch (error) {
    if (error instanceof RangeError) throw tooLarge();
    throw badRequest(`gzip: ${error instanceof Error ? error.message : 'invalid header'}`);
  }
}

function tooLarge(): StatusError {
  return failure(413, 'RequestEntityTooLarge', `Request entity too large: limit is ${MAX_BODY_BYTES}`);
}

const OBJECT_TYPES = [
  'application/json',
  'application/yaml',
  'application/vnd.kubernetes.protobuf',
  'application/cbor',
];

/** The media type of a Content-Type header, without parameters; what clients that send none mean is JSON. */
export function mediaTypeOf(header: string | undefined): string {
  return (header ?? '').split(';')[0]?.trim().toLowerCase() || 'application/json';
}

/**
 * Decodes the body of a write of `kind` (of DeleteOptions, of a subresource). Undefined for an empty body. Throws 400
 * and 415 in upstream's words. Models apiserver's negotiation of input and the serializers of apimachinery.
 */
export function decodeBody(
  bytes: Buffer,
  contentType: string | undefined,
  kind: KindDefinition,
): DecodedBody {
  const mediaType = mediaTypeOf(contentType);
  if (bytes.length === 0) return { value: undefined, duplicates: [], mediaType };
  switch (mediaType) {
    case 'application/json':
    case 'application/yaml':
    case 'application/x-yaml':
    case 'application/vnd.kubernetes.protobuf':
      break;
    default:
      throw unsupportedMediaType(OBJECT_TYPES.slice(0, 3));
  }
  if (mediaType === 'application/vnd.kubernetes.protobuf' || isProtobuf(bytes)) {
    return { value: decodeProtobuf(bytes), duplicates: [], mediaType };
  }
  const decoded =
    mediaType === 'application/json' ? decodeJson(bytes, kind.kind) : decodeYaml(bytes, kind.kind);
  return { ...decoded, mediaType };
}

export function unsupportedMediaType(accepted: readonly string[]): StatusError {
  return failure(
    415,
    'UnsupportedMediaType',
    `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`,
  );
}

/** A patch: JSON, or YAML for apply. The type itself is judged by the registry. */
export function decodePatch(bytes: Buffer, mediaType: string): DecodedBody {
  if (mediaType === 'application/apply-patch+yaml') {
    const text = bytes.toString('utf8');
    if (text.trimStart().startsWith('{')) {
      const found = parseJson(text);
      if (found.ok) return { value: found.value, duplicates: scanJson(text).duplicates, mediaType };
    }
    try {
      return { ...parseYaml(text), mediaType };
    } catch (error) {
      throw badRequest(`error decoding YAML: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  const text = bytes.toString('utf8');
  const found = parseJson(text);
  if (!found.ok) {
    const error = scanJson(text).syntaxError ?? 'invalid JSON';
    throw badRequest(
      mediaType === 'application/strategic-merge-patch+json' ? error : `error decoding patch: ${error}`,
    );
  }
  return { value: found.value, duplicates: scanJson(text).duplicates, mediaType };
}

function parseJson(text: string): { ok: true; value: unknown } | { ok: false } {
  try {
    return { ok: true, value: JSON.parse(text) as unknown };
  } catch (error) {
    if (error instanceof SyntaxError) return { ok: false };
    throw error;
  }
}

function decodeJson(bytes: Buffer, kind: string): { value: unknown; duplicates: readonly string[] } {
  const text = bytes.toString('utf8');
  const found = parseJson(text);
  if (found.ok) return { value: found.value, duplicates: scanJson(text).duplicates };
  const { syntaxError } = scanJson(text);
  throw unrecognized(
    kind,
    `couldn't get version/kind; json parse error: ${syntaxError ?? 'invalid JSON'}`,
    bytes,
  );
}

function decodeYaml(bytes: Buffer, kind: string): { value: unknown; duplicates: readonly string[] } {
  const text = bytes.toString('utf8');
  if (text.trimStart().startsWith('{')) {
    const found = parseJson(text);
    if (found.ok) return { value: found.value, duplicates: scanJson(text).duplicates };
  }
  try {
    return parseYaml(text);
  } catch (error) {
    throw unrecognized(kind, `yaml: ${error instanceof Error ? error.message : String(error)}`, bytes);
  }
}

/** YAML 1.2 core, as JSON; members that come twice are told, the last one holds. */
function parseYaml(text: string): { value: unknown; duplicates: readonly string[] } {
  const lines = new LineCounter();
  const document = parseDocument(text, { uniqueKeys: false, lineCounter: lines, merge: true });
  const error = document.errors[0];
  if (error) throw new SyntaxError(error.message.split('\n')[0]);
  const duplicates: string[] = [];
  findYamlDuplicates(document.contents, '', duplicates);
  return { value: document.toJS({ maxAliasCount: MAX_YAML_ALIASES }) as unknown, duplicates };
}

function findYamlDuplicates(node: ParsedNode | null, path: string, duplicates: string[]): void {
  if (!node) return;
  if (isMap(node)) {
    const seen = new Set<string>();
    for (const pair of node.items) {
      const key = String(pair.key);
      const member = path ? `${path}.${key}` : key;
      if (seen.has(key)) duplicates.push(`duplicate field ${JSON.stringify(member)}`);
      seen.add(key);
      findYamlDuplicates(pair.value, member, duplicates);
    }
  } else if ('items' in node) {
    node.items.forEach((item, index) => findYamlDuplicates(item, `${path}[${index}]`, duplicates));
  }
}

function unrecognized(kind: string, why: string, bytes: Buffer): StatusError {
  return badRequest(
    `the object provided is unrecognized (must be of type ${kind}): ${why} (${summarize(bytes)})`,
  );
}

/** Models summarizeData: hexadecimal for binary data, and never more than a few bytes. */
function summarize(bytes: Buffer): string {
  if (bytes.length === 0) return '<empty>';
  if (bytes[0] !== 0x7b)
    return `hex: ${bytes.subarray(0, SUMMARY_BYTES).toString('hex')}${bytes.length > SUMMARY_BYTES ? '...' : ''}`;
  return bytes.length > SUMMARY_BYTES
    ? `${bytes.subarray(0, SUMMARY_BYTES).toString('utf8')} ...`
    : bytes.toString('utf8');
}
