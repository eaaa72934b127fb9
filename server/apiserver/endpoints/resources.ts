import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Ids, Logger } from '#server/base';
import type { UserInfo } from '#server/kube';
import type { Answer, Chain } from '../chain.ts';
import type { KindDefinition } from '../kind.ts';
import type { Operation } from '../registry/operation.ts';
import { decodeBody, decodePatch, readBody } from './body.ts';
import { type HttpAnswer, sendAnswer, warningHeader } from './http-answer.ts';
import { negotiate } from './negotiation.ts';
import { type RenderContext, renderList, renderObject } from './render.ts';
import type { RequestInfo } from './request-info.ts';
import { operationOf } from './routes.ts';
import { createWatchResponse } from './watch-response.ts';

/** A watch whose client sets no limit ends after this, up to twice of it, as upstream's --min-request-timeout has it. */
const MIN_WATCH_SECONDS = 1800;

export interface ResourceEnvironment {
  chain: Chain;
  ids: Ids;
  log: Logger;
  /** What ends answers that go on. */
  open: Set<() => void>;
}

/** Answers a request to a resource: decodes, runs, renders. Rejects with StatusError while nothing was sent. */
export async function serveResource(
  env: ResourceEnvironment,
  request: IncomingMessage,
  response: ServerResponse,
  info: RequestInfo,
  kind: KindDefinition,
  user: UserInfo,
): Promise<void> {
  const { chain } = env;
  const warnings: string[] = [];
  const op = operationOf(info, kind, user, request, (text) => {
    if (!warnings.includes(text)) warnings.push(text);
  });
  // Before the body is read: nobody sends megabytes to be told that they may not.
  chain.authorize(op);
  if (kind.deprecation) op.warn(kind.deprecation);
  const format = negotiate(request.headers.accept, isPretty(info, request));
  const context: RenderContext = { env: chain.env, kind, format, includeObject: includeObjectOf(info) };
  if (op.verb === 'watch') {
    if (warnings.length > 0) response.setHeader('Warning', warnings.map(warningHeader));
    serveWatch(env, request, response, op, context);
    return;
  }
  const bytes = op.verb === 'get' || op.verb === 'list' ? undefined : await readBody(request);
  const answer = await chain.run(bytes ? withBody(op, bytes, request) : op);
  await sendAnswer(request, response, renderAnswer(context, answer), warnings);
}

export function renderAnswer(context: RenderContext, answer: Answer): HttpAnswer {
  const { contentType, chunks } =
    answer.type === 'list' ? renderList(context, answer.list) : renderObject(context, answer.answer);
  const code = answer.type === 'list' ? 200 : answer.answer.code;
  return { code, headers: { 'Content-Type': contentType }, chunks };
}

function serveWatch(
  env: ResourceEnvironment,
  request: IncomingMessage,
  response: ServerResponse,
  op: Operation,
  context: RenderContext,
): void {
  const reader = createWatchResponse(context, request, response, env.log);
  const asked = op.query['timeoutSeconds'];
  const most = String(Math.round(MIN_WATCH_SECONDS * (1 + env.ids.random())));
  const timeoutSeconds = asked && Number(asked) > 0 ? asked : most;
  const running = env.chain.watch({ ...op, query: { ...op.query, timeoutSeconds } }, reader);
  const stop = (): void => {
    env.open.delete(stop);
    running.stop();
    reader.close();
  };
  env.open.add(stop);
  response.once('close', stop);
  reader.started();
  if (response.destroyed) stop();
}

function withBody(op: Operation, bytes: Buffer, request: IncomingMessage): Operation {
  const decoded =
    op.verb === 'patch'
      ? decodePatch(bytes, op.contentType ?? '')
      : decodeBody(
          bytes,
          request.headers['content-type'],
          op.verb === 'delete' || op.verb === 'deletecollection'
            ? { ...op.kind, kind: 'DeleteOptions' }
            : op.kind,
        );
  return { ...op, body: decoded.value, duplicates: decoded.duplicates };
}

function isPretty(info: RequestInfo, request: IncomingMessage): boolean {
  const asked = info.query['pretty'];
  if (asked !== undefined) return asked !== 'false' && asked !== '0';
  return /^(curl|Wget|Mozilla\/5\.0)/.test(request.headers['user-agent'] ?? '');
}

function includeObjectOf(info: RequestInfo): RenderContext['includeObject'] {
  const asked = info.query['includeObject'];
  return asked === 'None' || asked === 'Object' ? asked : 'Metadata';
}
