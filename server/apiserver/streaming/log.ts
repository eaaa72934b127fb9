import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { errorMessage } from '#server/base';
import { type FieldError, invalid } from '#server/kube';
import type { LogOptions } from '../kubelet-api.ts';
import type { Operation } from '../registry/operation.ts';
import { booleanOf } from '../registry/options.ts';
import { kubeletOf, type StreamEnvironment, targetOf } from './target.ts';

/**
 * GET …/log as text. Answers errors by throwing while nothing was sent. Resolves, once the answer has begun, to what
 * ends it early; undefined when it is over. Models pkg/registry/core/pod/rest/log.go.
 */
export async function serveLog(
  env: StreamEnvironment,
  request: IncomingMessage,
  response: ServerResponse,
  op: Operation,
): Promise<(() => void) | undefined> {
  const { clock } = env.chain.env;
  const start = clock.now();
  env.chain.authorize(op);
  const options = logOptions(op);
  const { ref, container, nodeName } = targetOf(env, op);
  response.setHeader('Content-Type', 'text/plain');
  response.setHeader('Cache-Control', 'no-cache, private');
  if (nodeName === undefined) {
    response.writeHead(200).end();
    return undefined;
  }
  const kubelet = kubeletOf(env, nodeName, `/containerLogs/${ref.namespace}/${ref.name}/${container}`, false);
  const aborted = new AbortController();
  const stop = (): void => aborted.abort();
  response.once('close', () => {
    stop();
    env.chain.note(op, start, 200);
  });
  const chunks = await kubelet.logs(ref, container, options, aborted.signal);
  response.writeHead(200);
  response.flushHeaders();
  if (request.method === 'HEAD') {
    stop();
    response.end();
    return undefined;
  }
  pump(chunks, response, aborted.signal).catch((error: unknown) => {
    if (!aborted.signal.aborted)
      env.log.warn({ error: errorMessage(error), pod: ref.name }, 'a log stream broke');
    response.destroy();
  });
  return () => {
    stop();
    response.end();
  };
}

async function pump(
  chunks: AsyncIterable<Uint8Array>,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  for await (const chunk of chunks) {
    if (signal.aborted || response.destroyed) return;
    if (!response.write(chunk)) await once(response, 'drain', { signal });
  }
  response.end();
}

/** Models ValidatePodLogOptions. */
function logOptions(op: Operation): LogOptions {
  const { query } = op;
  const errors: FieldError[] = [];
  const options: LogOptions = {};
  const number = (name: 'tailLines' | 'sinceSeconds' | 'limitBytes', least: number, detail: string): void => {
    const text = query[name];
    if (text === undefined || text === '') return;
    const value = Number(text);
    if (!Number.isSafeInteger(value) || value < least) {
      errors.push({
        type: 'FieldValueInvalid',
        field: name,
        value: Number.isNaN(value) ? text : value,
        detail,
      });
    } else options[name] = value;
  };
  number('tailLines', 0, 'must be greater than or equal to 0');
  number('sinceSeconds', 1, 'must be greater than 0');
  number('limitBytes', 1, 'must be greater than 0');
  const { sinceTime } = query;
  if (sinceTime) {
    if (options.sinceSeconds !== undefined) {
      errors.push({
        type: 'FieldValueForbidden',
        field: '',
        detail: 'at most one of `sinceTime` or `sinceSeconds` may be specified',
      });
    }
    if (Number.isNaN(Date.parse(sinceTime))) {
      errors.push({
        type: 'FieldValueInvalid',
        field: 'sinceTime',
        value: sinceTime,
        detail: 'must be a RFC 3339 time',
      });
    }
    options.sinceTime = sinceTime;
  }
  if (errors.length > 0) throw invalid({ group: '', kind: 'PodLogOptions' }, op.name ?? '', errors);
  for (const name of ['follow', 'previous', 'timestamps'] as const) {
    const value = booleanOf(query[name]);
    if (value !== undefined) options[name] = value;
  }
  return options;
}
