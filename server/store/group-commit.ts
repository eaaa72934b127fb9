import { errorMessage, type Logger } from '#server/base';
import type { Backend, Change } from './backend.ts';
import { type Entry, type Expected, RevisionMismatchError } from './contract.ts';
import type { StoreState } from './state.ts';

/** A write that was asked for. */
export interface WriteRequest {
  readonly cluster: string;
  readonly state: StoreState;
  readonly type: 'put' | 'delete';
  readonly key: string;
  /** Undefined only for a delete that shows the previous bytes. */
  readonly encode: ((revision: number) => Uint8Array) | undefined;
  readonly expected: Expected | undefined;
}

/**
 * The one queue of writes of an engine. What is asked for in one turn of the event loop is committed together at the
 * end of that turn, whatever clusters it belongs to: planned in the order asked, made durable in one step, then shown
 * to readers, watchers and, last, the writers. An idle engine commits a lone write in the turn that asked for it.
 */
export interface GroupCommit {
  write(request: WriteRequest): Promise<Entry | undefined>;
  /** Resolves when everything asked for before is committed or rejected. */
  settled(): Promise<void>;
}

/** A turn commits at most so many writes and (but for the last of them) bytes; the next turn goes on. */
const MAX_BATCH_WRITES = 1_000;
const MAX_BATCH_BYTES = 8 * 1024 * 1024;

type Queued =
  | { request: WriteRequest; resolve: (entry: Entry | undefined) => void; reject: (error: unknown) => void }
  | { request: undefined; resolve: () => void };

interface Planned {
  readonly change: Change;
  readonly state: StoreState;
  readonly result: Entry;
  readonly resolve: (entry: Entry | undefined) => void;
  readonly reject: (error: unknown) => void;
}

export function createGroupCommit(backend: Pick<Backend, 'commit'>, log: Logger): GroupCommit {
  let queue: Queued[] = [];
  let failing = false;

  /** Whether the batch is durable now. Of many failures in a row the first is logged. */
  const makeDurable = (planned: readonly Planned[]): boolean => {
    try {
      backend.commit(planned.map((plan) => plan.change));
    } catch (error) {
      if (!failing) log.error({ err: error }, `writes are refused: ${errorMessage(error)}`);
      failing = true;
      for (const plan of planned) plan.reject(error);
      return false;
    }
    if (failing) log.info({}, 'writes succeed again');
    failing = false;
    return true;
  };
  const commitBatch = (): void => {
    const batch = planBatch(queue);
    queue = queue.slice(batch.taken);
    if (queue.length > 0) setImmediate(commitBatch);
    const { planned } = batch;
    if (planned.length > 0 && makeDurable(planned)) {
      for (const plan of planned) plan.state.apply(plan.change);
      for (const plan of planned) plan.state.announce(plan.change);
      for (const plan of planned) plan.resolve(plan.result);
    }
    for (const settle of batch.settle) settle();
  };
  const enqueue = (item: Queued): void => {
    if (queue.push(item) === 1) setImmediate(commitBatch);
  };

  return {
    write: (request) => new Promise((resolve, reject) => enqueue({ request, resolve, reject })),
    settled: () =>
      queue.length === 0
        ? Promise.resolve()
        : new Promise((resolve) => enqueue({ request: undefined, resolve })),
  };
}

interface Batch {
  readonly planned: readonly Planned[];
  /** To call when the batch is over: writes that change nothing or do not hold, and those who wait for the queue. */
  readonly settle: readonly (() => void)[];
  /** How many of the queue it took. */
  readonly taken: number;
}

/** What earlier writes of the batch leave of one store, over its visible state. */
interface Draft {
  revision: number;
  readonly entries: Map<string, Entry | undefined>;
}

function planBatch(queue: readonly Queued[]): Batch {
  const drafts = new Map<StoreState, Draft>();
  const planned: Planned[] = [];
  const settle: (() => void)[] = [];
  let bytes = 0;
  let taken = 0;
  while (taken < queue.length && taken < MAX_BATCH_WRITES && bytes < MAX_BATCH_BYTES) {
    const item = queue[taken++];
    if (!item) break;
    if (!item.request) {
      settle.push(item.resolve);
      continue;
    }
    const { request, resolve, reject } = item;
    let draft = drafts.get(request.state);
    if (!draft) drafts.set(request.state, (draft = { revision: request.state.revision, entries: new Map() }));
    try {
      const plan = planWrite(request, draft);
      if (!plan) {
        settle.push(() => resolve(undefined));
        continue;
      }
      planned.push({ ...plan, state: request.state, resolve, reject });
      draft.revision = plan.change.event.revision;
      draft.entries.set(request.key, plan.change.entry);
      bytes += plan.change.event.value.byteLength;
    } catch (error) {
      settle.push(() => reject(error));
    }
  }
  return { planned, settle, taken };
}

/** Undefined: there is nothing to delete. Throws when the expectation does not hold, and what `encode` throws. */
function planWrite(request: WriteRequest, draft: Draft): { change: Change; result: Entry } | undefined {
  const { cluster, key, type, expected, encode } = request;
  const previous = draft.entries.has(key) ? draft.entries.get(key) : request.state.get(key);
  if (
    expected !== undefined &&
    (expected === 'absent' ? previous !== undefined : previous?.modRevision !== expected)
  )
    throw new RevisionMismatchError(key, previous);
  if (type === 'delete' && !previous) return undefined;
  const revision = draft.revision + 1;
  const value = encode ? ownBytes(encode(revision)) : (previous?.value ?? EMPTY);
  const result: Entry = {
    key,
    value,
    createRevision: previous?.createRevision ?? revision,
    modRevision: revision,
  };
  return {
    result,
    change: {
      cluster,
      event: { type, key, revision, value, previous },
      entry: type === 'put' ? result : undefined,
    },
  };
}

const EMPTY = new Uint8Array();

/** The bytes in memory of exactly their size: a slice of Node's buffer pool would keep 8 KB alive. */
function ownBytes(bytes: Uint8Array): Uint8Array {
  if (bytes.byteLength === bytes.buffer.byteLength) return bytes;
  const own = Buffer.allocUnsafeSlow(bytes.byteLength);
  own.set(bytes);
  return own;
}
