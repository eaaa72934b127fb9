import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLogger } from '#server/base';
import { openSqlite } from '#server/db';
import { createMemoryEngine, createSqliteEngine, type Store } from '#server/store';
import type { Row } from './row.ts';

/** The size of a typical object. */
const VALUE = Buffer.alloc(2_000, 'x');
const WRITERS = 50;
const PUTS = 6_000;
/** Ours and the floor take turns, so that both meet the same weather. */
const ROUNDS = 5;

/** Measures the store: durable puts against bare libsql inserts, prefix lists and watch dispatch. */
export async function benchStore(): Promise<Row[]> {
  const sequential = await compare((floor) => (floor ? bareInserts(1) : storePuts(1)));
  const concurrent = await compare((floor) => (floor ? bareInserts(WRITERS) : storePuts(WRITERS)));
  return [
    { name: 'durable puts, one after the other', unit: 'puts/s', ...sequential },
    { name: `durable puts, ${WRITERS} writers`, unit: 'puts/s', ...concurrent },
    { name: 'list of 100 entries among 100,000', unit: 'µs', value: await prefixList() },
    { name: 'put to memory, 1,000 watches of other prefixes', unit: 'µs', value: await watchedPut() },
  ];
}

/** Medians of the rates. */
async function compare(
  measure: (floor: boolean) => Promise<number>,
): Promise<Required<Pick<Row, 'value' | 'floor' | 'ratio'>>> {
  const rates: { ours: number[]; floor: number[] } = { ours: [], floor: [] };
  for (let round = 0; round < ROUNDS; round++) {
    rates.floor.push(await measure(true));
    rates.ours.push(await measure(false));
  }
  const [value, floor] = [median(rates.ours), median(rates.floor)];
  return { value, floor, ratio: value / floor };
}

function median(numbers: number[]): number {
  return numbers.sort((a, b) => a - b)[numbers.length >> 1] ?? 0;
}

async function inFolder<Result>(work: (path: string) => Promise<Result>): Promise<Result> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-store-'));
  try {
    return await work(join(folder, 'a.db'));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Rows a second of plain INSERTs, `batch` to a transaction. */
function bareInserts(batch: number): Promise<number> {
  return inFolder(async (path) => {
    const database = openSqlite(path, { sync: 'normal' });
    database.exec('CREATE TABLE t (key TEXT PRIMARY KEY, value BLOB)');
    const insert = database.prepare('INSERT INTO t VALUES (?, ?)');
    const started = performance.now();
    for (let i = 0; i < PUTS; i += batch) {
      if (batch === 1) insert.run(keyOf(i), VALUE);
      else
        database.transaction(() => {
          for (let j = 0; j < batch; j++) insert.run(keyOf(i + j), VALUE);
        });
    }
    const rate = perSecond(PUTS, started);
    database.close();
    return rate;
  });
}

/** Acknowledged creates a second, `writers` at a time, each waiting for its own. */
function storePuts(writers: number): Promise<number> {
  return inFolder(async (path) => {
    const engine = createSqliteEngine({ path, sync: 'normal', log: silentLogger });
    const store = await engine.open('bench');
    const started = performance.now();
    let next = 0;
    const writer = async (): Promise<void> => {
      while (next < PUTS) await store.put(keyOf(next++), () => VALUE, 'absent');
    };
    await Promise.all(Array.from({ length: writers }, writer));
    const rate = perSecond(PUTS, started);
    await engine.close();
    return rate;
  });
}

async function prefixList(): Promise<number> {
  const store = await filled(100_000);
  return microseconds(2_000, (i) => void store.list(`/registry/pods/ns-${i % 1_000}/`));
}

async function watchedPut(): Promise<number> {
  const store = await filled(0);
  let calls = 0;
  for (let i = 0; i < 1_000; i++) store.watch(`/registry/pods/ns-${i}/`, 0, () => calls++);
  const count = 20_000;
  const started = performance.now();
  await Promise.all(Array.from({ length: count }, (_, i) => store.put(keyOf(i), () => VALUE)));
  const each = ((performance.now() - started) * 1_000) / count;
  return calls === count ? each : Number.NaN;
}

/** A memory store with `count` pods in 1,000 namespaces. */
async function filled(count: number): Promise<Store> {
  const store = await createMemoryEngine({ log: silentLogger }).open('bench');
  for (let i = 0; i < count; i++) void store.put(keyOf(i), () => VALUE);
  await store.flush();
  return store;
}

function keyOf(i: number): string {
  return `/registry/pods/ns-${i % 1_000}/web-${i}`;
}

function microseconds(count: number, work: (i: number) => void): number {
  const started = performance.now();
  for (let i = 0; i < count; i++) work(i);
  return ((performance.now() - started) * 1_000) / count;
}

function perSecond(count: number, started: number): number {
  return (count * 1_000) / (performance.now() - started);
}
