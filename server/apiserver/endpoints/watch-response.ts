import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from '#server/base';
import type { StatusError, UnstructuredObject } from '#server/kube';
import type { WatchItem, WatchReader } from '../registry/watch.ts';
import { bookmarkTable, partialOf, type RenderContext, tableOf } from './render.ts';

/** Bytes that may wait for a client beyond those of the initial state. */
const MAX_WAITING_BYTES = 4 * 1024 * 1024;

/** A watch on its way to a client. */
export interface WatchResponse extends WatchReader {
  /** Call once `start` of the watch returned: from then on events go out as they come. */
  started(): void;
  close(): void;
}

const AFTER_OBJECT = Buffer.from('}\n');

/**
 * Writes events as lines of JSON. A line is encoded once for all readers of its representation. A client that reads too
 * slowly is dropped: its connection is destroyed, and it starts again from its last revision.
 * Models apiserver/pkg/endpoints/handlers/watch.go.
 */
export function createWatchResponse(
  context: RenderContext,
  request: IncomingMessage,
  response: ServerResponse,
  log: Logger,
): WatchResponse {
  const { format } = context;
  let first = format.as === 'table';
  let initial: Uint8Array[] | undefined = [];
  let allowance = MAX_WAITING_BYTES;
  let corked = false;
  let over = false;

  const uncork = (): void => {
    corked = false;
    if (!response.destroyed) response.uncork();
  };
  const write = (line: Uint8Array): void => {
    if (over || response.destroyed) return;
    if (initial) {
      initial.push(line);
      return;
    }
    if (!corked) {
      corked = true;
      response.cork();
      queueMicrotask(uncork);
    }
    response.write(line);
    if (response.writableLength <= allowance) return;
    over = true;
    log.warn(
      { path: request.url, bytes: response.writableLength },
      'a watch was read too slowly and is dropped',
    );
    response.destroy();
  };
  const begin = (): void => {
    if (response.headersSent) return;
    response.writeHead(200, { 'Content-Type': 'application/json', 'Cache-Control': 'no-cache, private' });
    response.flushHeaders();
  };
  return {
    item(item) {
      const withColumns = first;
      first = false;
      write(item.once(lineKey(context, withColumns), () => lineOf(context, item, withColumns)));
    },
    bookmark(object) {
      write(line('BOOKMARK', bookmarkIn(context, object)));
    },
    end(error?: StatusError) {
      if (error) write(line('ERROR', error.status));
      this.close();
    },
    started() {
      begin();
      const waiting = initial ?? [];
      initial = undefined;
      if (waiting.length > 0) {
        const bytes = Buffer.concat(waiting);
        allowance = MAX_WAITING_BYTES + bytes.length;
        response.write(bytes);
      }
      if (over) response.end();
    },
    close() {
      if (over) return;
      over = true;
      if (!initial && !response.destroyed) response.end();
    },
  };
}

function lineKey({ format, includeObject }: RenderContext, withColumns: boolean): string {
  return format.as === 'object'
    ? 'line'
    : `line ${format.as} ${format.version} ${includeObject} ${withColumns}`;
}

function lineOf(context: RenderContext, item: WatchItem, withColumns: boolean): Uint8Array {
  const { format } = context;
  if (format.as === 'object')
    return Buffer.concat([Buffer.from(`{"type":"${item.type}","object":`), item.bytes(), AFTER_OBJECT]);
  const object = item.object();
  if (format.as === 'partial') return line(item.type, partialOf(object, format.version));
  return line(
    item.type,
    tableOf(context, [object], { resourceVersion: object.metadata.resourceVersion }, withColumns),
  );
}

function bookmarkIn({ format }: RenderContext, object: UnstructuredObject): object {
  if (format.as === 'partial') return partialOf(object, format.version);
  return format.as === 'table' ? bookmarkTable(object, format) : bareBookmark(object);
}

/** A bookmark has no name: not even an empty one. */
function bareBookmark(object: UnstructuredObject): object {
  const { name: _name, ...metadata } = object.metadata;
  return { kind: object.kind, apiVersion: object.apiVersion, metadata };
}

function line(type: string, object: unknown): Buffer {
  return Buffer.from(`{"type":"${type}","object":${JSON.stringify(object)}}\n`);
}
