import type { IncomingMessage, ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { constants, gzip } from 'node:zlib';
import type { StatusError } from '#server/kube';
import { negotiate, type OutputFormat } from './negotiation.ts';
import { renderValue } from './render.ts';

/** An answer that is known whole. */
export interface HttpAnswer {
  readonly code: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly chunks: readonly Uint8Array[];
}

const COMPRESS_ABOVE = 128 * 1024;
const MAX_WARNINGS = 64;
const MAX_WARNING_LENGTH = 1024;

const compress = promisify(gzip);

const COMMON = { 'Cache-Control': 'no-cache, private' };

export function textAnswer(code: number, text: string): HttpAnswer {
  return {
    code,
    headers: { 'Content-Type': 'text/plain; charset=utf-8', 'X-Content-Type-Options': 'nosniff' },
    chunks: [Buffer.from(text)],
  };
}

export function pageNotFound(): HttpAnswer {
  return textAnswer(404, '404 page not found\n');
}

/** A refusal as a Status, in the format the client accepts (JSON when it accepts none). */
export function statusAnswer(error: StatusError, accept: string | undefined): HttpAnswer {
  const { contentType, chunks } = renderValue(error.status, formatOrJson(accept));
  const seconds = error.status.details?.retryAfterSeconds;
  return {
    code: error.code,
    headers: { 'Content-Type': contentType, ...(seconds ? { 'Retry-After': String(seconds) } : {}) },
    chunks,
  };
}

const JSON_FORMAT: OutputFormat = { encoding: 'json', as: 'object', version: 'v1', pretty: false };

export function formatOrJson(accept: string | undefined): OutputFormat {
  try {
    return negotiate(accept, false);
  } catch {
    // Nothing it accepts is offered, and a refusal has to be told all the same.
    return JSON_FORMAT;
  }
}

/** Writes an answer; compressed when it is large and the client takes gzip. Resolves when it was handed over. */
export async function sendAnswer(
  request: IncomingMessage,
  response: ServerResponse,
  answer: HttpAnswer,
  warnings: readonly string[] = [],
): Promise<void> {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  for (const [name, value] of Object.entries({ ...COMMON, ...answer.headers }))
    response.setHeader(name, value);
  if (warnings.length > 0) response.setHeader('Warning', warnings.slice(0, MAX_WARNINGS).map(warningHeader));
  let size = 0;
  for (const chunk of answer.chunks) size += chunk.length;
  let body: Uint8Array | undefined = answer.chunks.length === 1 ? answer.chunks[0] : undefined;
  const mayCompress = size > COMPRESS_ABOVE && request.headers['accept-encoding']?.includes('gzip') === true;
  if (mayCompress && response.getHeader('Content-Encoding') === undefined) {
    body = await compress(body ?? Buffer.concat(answer.chunks), { level: constants.Z_BEST_SPEED });
    size = body.length;
    response.setHeader('Content-Encoding', 'gzip');
    response.setHeader('Vary', 'Accept-Encoding');
  }
  if (answer.code !== 304) response.setHeader('Content-Length', size);
  response.writeHead(answer.code);
  if (request.method === 'HEAD') response.end();
  else response.end(body ?? Buffer.concat(answer.chunks));
}

/** RFC 7234 warning with code 299. Models k8s.io/apimachinery/pkg/util/net.NewWarningHeader. */
export function warningHeader(text: string): string {
  const clean = text.replace(/[\0-\x1f\x7f]+/g, ' ').slice(0, MAX_WARNING_LENGTH);
  const ascii = Buffer.from(clean, 'utf8').toString('latin1');
  return `299 - "${ascii.replace(/[\\"]/g, '\\$&')}"`;
}
