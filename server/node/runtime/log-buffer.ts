import type { LogOptions } from '#server/apiserver';
import type { Clock } from '#server/base';

/** What is kept of one container's output; older lines fall off the front (kubelet rotates at 10 MiB). */
export const LOG_LIMIT_BYTES = 1024 * 1024;
/** A line longer than this is cut in parts, as containerd does. */
const MAX_LINE = 16 * 1024;
/** What a line counts beside its text, so that a flood of short lines is bounded in objects too. */
const LINE_COST = 128;
/** Bytes that wait for one follower before it loses the connection. */
const MAX_FOLLOWER_BYTES = 4 * 1024 * 1024;

interface Line {
  /** Milliseconds since the epoch. */
  readonly time: number;
  /** With the newline, when it had one. */
  readonly text: Buffer;
  /** The newline is still to come: the line goes on in the next entry. */
  readonly partial: boolean;
}

/** The log of one run of one container: bounded, with times, to be read and followed. */
export interface LogBuffer {
  write(stream: 'stdout' | 'stderr', chunk: Uint8Array): void;
  /** No more will come: followers end. */
  close(): void;
  /** As `kubectl logs` asks; ends at what there is, or with `follow` at `close` or when `signal` aborts. */
  read(options: LogOptions, signal: AbortSignal): AsyncIterable<Uint8Array>;
  /** The last lines, at most `bytes` long: what a terminated container says as its message. */
  tail(lines: number, bytes: number): string;
}

export function createLogBuffer(clock: Pick<Clock, 'now'>): LogBuffer {
  let lines: Line[] = [];
  let size = 0;
  let closed = false;
  let pending: { stdout: Buffer; stderr: Buffer } | undefined;
  const followers = new Set<(line: Line | undefined) => void>();

  const append = (text: Buffer, partial: boolean): void => {
    const line: Line = { time: clock.now(), text, partial };
    lines.push(line);
    size += text.length + LINE_COST;
    if (size > LOG_LIMIT_BYTES) {
      // Dropping in batches keeps this cheap: shifting one by one would copy the array each time.
      let drop = 0;
      while (size > LOG_LIMIT_BYTES * 0.75 && drop < lines.length - 1) {
        size -= (lines[drop]?.text.length ?? 0) + LINE_COST;
        drop += 1;
      }
      lines = lines.slice(drop);
    }
    for (const follower of [...followers]) follower(line);
  };

  return {
    write(stream, chunk) {
      if (closed) return;
      const before = pending?.[stream];
      let rest = before && before.length > 0 ? Buffer.concat([before, chunk]) : Buffer.from(chunk);
      for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
        append(rest.subarray(0, end + 1), false);
        rest = rest.subarray(end + 1);
      }
      while (rest.length > MAX_LINE) {
        append(rest.subarray(0, MAX_LINE), true);
        rest = rest.subarray(MAX_LINE);
      }
      if (rest.length > 0 || before) {
        pending ??= { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) };
        pending[stream] = Buffer.from(rest);
      }
    },
    close() {
      if (closed) return;
      for (const stream of ['stdout', 'stderr'] as const) {
        const rest = pending?.[stream];
        if (rest && rest.length > 0) append(rest, true);
      }
      pending = undefined;
      closed = true;
      for (const follower of [...followers]) follower(undefined);
      followers.clear();
    },
    read(options, signal) {
      const chosen = select(lines, options, clock.now());
      return stream(chosen, options, signal, (onLine) => {
        if (closed || options.follow !== true) return undefined;
        followers.add(onLine);
        return () => void followers.delete(onLine);
      });
    },
    tail(count, bytes) {
      const text = Buffer.concat(lines.slice(-count).map((line) => line.text));
      return text.subarray(Math.max(0, text.length - bytes)).toString('utf8');
    },
  };
}

function select(lines: readonly Line[], options: LogOptions, now: number): Line[] {
  const since =
    options.sinceTime !== undefined
      ? Date.parse(options.sinceTime)
      : options.sinceSeconds !== undefined
        ? now - options.sinceSeconds * 1000
        : undefined;
  let start = 0;
  if (options.tailLines !== undefined) {
    start = lines.length;
    for (let left = options.tailLines; left > 0 && start > 0; ) {
      start -= 1;
      if (start === 0 || lines[start - 1]?.partial !== true) left -= 1;
    }
  }
  const chosen = lines.slice(start);
  return since === undefined ? chosen : chosen.filter((line) => line.time >= since);
}

/** Times as the kubelet writes them: always nine digits of a second. */
function stamp(milliseconds: number): string {
  return `${new Date(milliseconds).toISOString().slice(0, 23)}000000Z `;
}

async function* stream(
  first: readonly Line[],
  options: LogOptions,
  signal: AbortSignal,
  follow: (onLine: (line: Line | undefined) => void) => (() => void) | undefined,
): AsyncGenerator<Uint8Array> {
  let left = options.limitBytes ?? Number.POSITIVE_INFINITY;
  let continued = false;
  const render = (line: Line): Buffer => {
    const text =
      options.timestamps && !continued
        ? Buffer.concat([Buffer.from(stamp(line.time)), line.text])
        : line.text;
    continued = line.partial;
    const cut = text.length > left ? text.subarray(0, left) : text;
    left -= cut.length;
    return cut;
  };
  const queue: Line[] = [];
  let queued = 0;
  let ended = false;
  let wake: (() => void) | undefined;
  const unfollow = follow((line) => {
    if (line === undefined || queued > MAX_FOLLOWER_BYTES) ended = true;
    else {
      queue.push(line);
      queued += line.text.length;
    }
    wake?.();
  });
  const onAbort = (): void => wake?.();
  signal.addEventListener('abort', onAbort);
  try {
    // One chunk for what there is: a page of log is one message, not a thousand.
    const parts: Buffer[] = [];
    for (const line of first) {
      if (left <= 0) break;
      parts.push(render(line));
    }
    if (parts.length > 0) yield Buffer.concat(parts);
    while (unfollow && left > 0 && !signal.aborted) {
      const more = queue.splice(0);
      queued = 0;
      if (more.length > 0) yield Buffer.concat(more.map(render));
      else if (ended) return;
      else
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
    }
  } finally {
    unfollow?.();
    signal.removeEventListener('abort', onAbort);
  }
}
