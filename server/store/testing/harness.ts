import { silentLogger } from '#server/base';
import type { Entry, Store, StoreEngine, StoreEvent, WatchEnd } from '../contract.ts';
import type { EngineOptions } from '../engine.ts';

/** A place where engines of one implementation keep their data. */
export interface StoreHarness {
  /** A new engine over the place; the one before it is closed. */
  createEngine(options: EngineOptions): StoreEngine;
  /** Whether a new engine finds what the one before it stored. */
  readonly durable: boolean;
  dispose(): void | Promise<void>;
}

export type CreateHarness = () => StoreHarness;

/** Runs `test` with an engine of its own, and closes it. */
export async function withEngine(
  createHarness: CreateHarness,
  test: (engine: StoreEngine, harness: StoreHarness) => Promise<void>,
  options: Partial<EngineOptions> = {},
): Promise<void> {
  const harness = createHarness();
  const engine = harness.createEngine({ log: silentLogger, ...options });
  try {
    await test(engine, harness);
  } finally {
    await engine.close();
    await harness.dispose();
  }
}

export function text(value: string): () => Uint8Array {
  return () => Buffer.from(value);
}

/** An entry as one line: `key=value created/modified`. */
export function line(entry: Entry | undefined): string {
  if (!entry) return 'none';
  return `${entry.key}=${Buffer.from(entry.value).toString()} ${entry.createRevision}/${entry.modRevision}`;
}

export function lines(store: Store, prefix = '', options: Parameters<Store['list']>[1] = {}): string[] {
  return store.list(prefix, options).entries.map(line);
}

/** An event as one line: `3 put key=value (was key=old 1/1)`. */
export function eventLine(event: StoreEvent): string {
  const value = Buffer.from(event.value).toString();
  return `${event.revision} ${event.type} ${event.key}=${value} (was ${line(event.previous)})`;
}

export interface Recording {
  readonly events: string[];
  readonly ends: WatchEnd[];
  stop(): void;
}

export function record(store: Store, prefix: string, fromRevision: number): Recording {
  const events: string[] = [];
  const ends: WatchEnd[] = [];
  const watch = store.watch(
    prefix,
    fromRevision,
    (event) => events.push(eventLine(event)),
    (why) => ends.push(why),
  );
  return { events, ends, stop: () => watch.stop() };
}

/** What a promise rejected with. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  return undefined;
}
