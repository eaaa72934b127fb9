import fc from 'fast-check';
import { expect, it } from 'vitest';
import { silentLogger } from '#server/base';
import {
  CompactedError,
  type Expected,
  RevisionMismatchError,
  type Store,
  type StoreEngine,
} from '../contract.ts';
import { type CreateHarness, line, type Recording, record, type StoreHarness } from './harness.ts';

// The store beside the simplest thing that keeps the same promises: the list of all changes since ever.

interface ModelChange {
  readonly text: string;
  readonly key: string;
  readonly revision: number;
}
/** Key → entry as `line` shows it, with its revisions. */
type ModelState = ReadonlyMap<string, { value: string; created: number; modified: number }>;

interface Model {
  readonly changes: ModelChange[];
  /** The state at each revision. */
  readonly states: ModelState[];
  compacted: number;
}

type Expectation = 'none' | 'absent' | 'current' | 'stale';

type Command =
  | { do: 'put' | 'delete'; key: string; value: string; expectation: Expectation; fails: boolean }
  | { do: 'watch'; prefix: string; back: number }
  | { do: 'stop'; which: number }
  | { do: 'list'; prefix: string; back: number; after: string | undefined; limit: number | undefined }
  | { do: 'compact'; back: number }
  | { do: 'reopen' }
  | { do: 'settle' };

const keys = ['a', 'a/1', 'a/2', 'ab', 'b/1', 'b/2', 'c'];
const prefixes = ['', 'a', 'a/', 'b/', 'z'];

const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      do: fc.constantFrom('put' as const, 'put' as const, 'delete' as const),
      key: fc.constantFrom(...keys),
      value: fc.string({ maxLength: 3 }),
      expectation: fc.constantFrom<Expectation>('none', 'none', 'absent', 'current', 'stale'),
      fails: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('watch' as const),
      prefix: fc.constantFrom(...prefixes),
      back: fc.nat(8),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('stop' as const), which: fc.nat(5) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('list' as const),
      prefix: fc.constantFrom(...prefixes),
      back: fc.nat(8),
      after: fc.option(fc.constantFrom(...keys), { nil: undefined }),
      limit: fc.option(fc.nat(4), { nil: undefined }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('compact' as const), back: fc.nat(8) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('reopen' as const) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('settle' as const) }) },
);

class EncodeRefused extends Error {}

/** The store under test, the model, and the writes and watches in flight between them. */
interface Run {
  engine: StoreEngine;
  store: Store;
  readonly harness: StoreHarness;
  readonly model: Model;
  /** Outcomes to come: what the store said, and what the model says it must. */
  writes: { real: Promise<string>; expected: string }[];
  watches: { recording: Recording; prefix: string; from: number; until: number | undefined }[];
}

/** The newest revision the model knows: it runs ahead of the store until the writes are settled. */
function modelRevision(model: Model): number {
  return model.changes.length;
}

function stateAt(model: Model, revision: number): ModelState {
  return model.states[revision] ?? new Map();
}

function write(
  run: Run,
  { do: type, key, value, expectation, fails }: Command & { do: 'put' | 'delete' },
): void {
  const { model, store } = run;
  const before = stateAt(model, modelRevision(model));
  const previous = before.get(key);
  const expected: Expected | undefined =
    expectation === 'none'
      ? undefined
      : expectation === 'absent'
        ? 'absent'
        : (previous?.modified ?? 0) + (expectation === 'stale' ? 1 : 0);
  const encode = (revision: number): Uint8Array => {
    if (fails) throw new EncodeRefused();
    return Buffer.from(`${value}@${revision}`);
  };
  const promise =
    type === 'put'
      ? store.put(key, encode, expected)
      : store.delete(key, { encode, ...(expected === undefined ? {} : { expected }) });
  const real = promise.then(line, (error: unknown) => {
    if (error instanceof RevisionMismatchError) return `not ${line(error.actual)}`;
    return error instanceof EncodeRefused ? 'refused' : String(error);
  });
  run.writes.push({ real, expected: applyToModel(model, type, key, value, expected, fails) });
}

function applyToModel(
  model: Model,
  type: 'put' | 'delete',
  key: string,
  value: string,
  expected: Expected | undefined,
  fails: boolean,
): string {
  const before = stateAt(model, modelRevision(model));
  const previous = before.get(key);
  const was = previous ? `${key}=${previous.value} ${previous.created}/${previous.modified}` : 'none';
  if (expected !== undefined && (expected === 'absent' ? previous : previous?.modified !== expected))
    return `not ${was}`;
  if (type === 'delete' && !previous) return 'none';
  if (fails) return 'refused';
  const revision = modelRevision(model) + 1;
  const next = { value: `${value}@${revision}`, created: previous?.created ?? revision, modified: revision };
  model.changes.push({ key, revision, text: `${revision} ${type} ${key}=${next.value} (was ${was})` });
  const after = new Map(before);
  if (type === 'put') after.set(key, next);
  else after.delete(key);
  model.states.push(after);
  return `${key}=${next.value} ${next.created}/${next.modified}`;
}

async function settle(run: Run): Promise<void> {
  for (const { real, expected } of run.writes) expect(await real).toBe(expected);
  run.writes = [];
}

function list(run: Run, command: Command & { do: 'list' }): void {
  const { store, model } = run;
  const { prefix, after, limit } = command;
  const revision = Math.max(0, store.revision - command.back);
  const options = {
    revision,
    ...(after === undefined ? {} : { after }),
    ...(limit === undefined ? {} : { limit }),
  };
  if (revision < model.compacted) {
    expect(() => store.list(prefix, options)).toThrow(CompactedError);
    return;
  }
  const all = [...stateAt(model, revision)]
    .filter(([key]) => key.startsWith(prefix) && (after === undefined || key > after))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, { value, created, modified }]) => `${key}=${value} ${created}/${modified}`);
  const page = all.slice(0, limit ?? all.length);
  const result = store.list(prefix, options);
  expect({ ...result, entries: result.entries.map(line) }).toEqual({
    entries: page,
    revision,
    more: page.length < all.length,
    remaining: all.length - page.length,
  });
}

function watch(run: Run, { prefix, back }: Command & { do: 'watch' }): void {
  const { store, model } = run;
  const from = Math.max(0, store.revision - back);
  if (from < model.compacted)
    expect(() => store.watch(prefix, from, () => undefined)).toThrow(CompactedError);
  else run.watches.push({ recording: record(store, prefix, from), prefix, from, until: undefined });
}

async function reopen(run: Run): Promise<void> {
  await run.store.close();
  await settle(run);
  if (run.harness.durable) {
    await run.engine.close();
    run.engine = run.harness.createEngine({ log: silentLogger });
  }
  run.store = await run.engine.open('c');
  run.model.compacted = modelRevision(run.model);
  for (const each of run.watches) {
    if (each.until === undefined) expect(each.recording.ends).toEqual(['closed']);
    each.until ??= run.model.compacted;
  }
}

async function step(run: Run, command: Command): Promise<void> {
  switch (command.do) {
    case 'put':
    case 'delete':
      write(run, { ...command, do: command.do });
      return;
    case 'watch':
      watch(run, command);
      return;
    case 'stop': {
      const each = run.watches[command.which];
      if (each && each.until === undefined) {
        each.recording.stop();
        each.until = run.store.revision;
      }
      return;
    }
    case 'list':
      list(run, command);
      return;
    case 'compact': {
      const revision = Math.max(0, run.store.revision - command.back);
      run.store.compact(revision);
      run.model.compacted = Math.max(run.model.compacted, revision);
      return;
    }
    case 'reopen':
      await reopen(run);
      return;
    case 'settle':
      await settle(run);
      return;
  }
}

function check(run: Run): void {
  const { store, model } = run;
  const { revision } = store;
  expect(revision).toBeLessThanOrEqual(modelRevision(model));
  if (run.writes.length === 0) expect(revision).toBe(modelRevision(model));
  expect(store.compactedRevision).toBe(model.compacted);
  const now = stateAt(model, revision);
  for (const prefix of prefixes)
    expect(store.count(prefix)).toBe([...now.keys()].filter((key) => key.startsWith(prefix)).length);
  for (const key of keys) {
    const entry = now.get(key);
    expect(line(store.get(key))).toBe(
      entry ? `${key}=${entry.value} ${entry.created}/${entry.modified}` : 'none',
    );
  }
  for (const { recording, prefix, from, until } of run.watches) {
    const seen = model.changes.filter((c) => c.revision > from && c.revision <= (until ?? revision));
    expect(recording.events).toEqual(seen.filter((c) => c.key.startsWith(prefix)).map((c) => c.text));
  }
}

export function describeModel(createHarness: CreateHarness): void {
  it('any sequence of calls does what the model does', { timeout: 60_000 }, () =>
    fc.assert(
      fc.asyncProperty(fc.array(command, { minLength: 5, maxLength: 60 }), async (commands) => {
        const harness = createHarness();
        const engine = harness.createEngine({ log: silentLogger });
        const model: Model = { changes: [], states: [new Map()], compacted: 0 };
        const run: Run = { engine, store: await engine.open('c'), harness, model, writes: [], watches: [] };
        try {
          for (const each of commands) {
            await step(run, each);
            check(run);
          }
          await settle(run);
          check(run);
        } finally {
          await run.engine.close();
          await harness.dispose();
        }
      }),
      { numRuns: 150 },
    ),
  );
}
