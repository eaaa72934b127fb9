import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { createSeededIds, silentLogger } from '#server/base';
import type { Store } from './contract.ts';
import { createSqliteEngine } from './sqlite-engine.ts';
import type { Acknowledged } from './testing/crash-writer.ts';

const program = fileURLToPath(new URL('./testing/crash-writer.ts', import.meta.url));
const ROUNDS = 6;
const MOST_WRITES_A_ROUND = 3_000;

/** Runs the writer until it was told of `count` acknowledged writes, then kills it: all it was told of. */
async function writeUntilKilled(path: string, round: string, count: number): Promise<Acknowledged[]> {
  const child = fork(program, [path, round], { execArgv: ['--import', 'tsx'], serialization: 'advanced' });
  const acknowledged: Acknowledged[] = [];
  child.on('message', (message) => {
    acknowledged.push(message as Acknowledged);
    if (acknowledged.length === count) child.kill('SIGKILL');
  });
  const [, signal] = (await once(child, 'close')) as [number | null, string | null];
  expect(signal).toBe('SIGKILL');
  return acknowledged;
}

/** Every key is as its last acknowledged write left it, or as a later write did that died before it could tell. */
function expectNothingLost(store: Store, acknowledged: ReadonlyMap<string, Acknowledged>): void {
  const lost: Acknowledged[] = [];
  for (const last of acknowledged.values()) {
    const entry = store.get(last.key);
    const asLeft = last.removed ? entry === undefined : entry?.modRevision === last.revision;
    const churned = last.key.startsWith('/churn/') && store.revision > last.revision;
    const later = churned && (entry === undefined || entry.modRevision > last.revision);
    if (!asLeft && !later) lost.push(last);
  }
  expect(lost).toEqual([]);
  for (const { key, value, modRevision } of store.list('').entries)
    expect(Buffer.from(value).toString().trimEnd()).toBe(`${key}@${modRevision}`);
}

it('kill -9 loses no acknowledged write and no revision', { timeout: 120_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'store-'));
  const path = join(folder, 'a.db');
  const ids = createSeededIds(7);
  const lastOfKey = new Map<string, Acknowledged>();
  const revisions = new Set<number>();
  let atOpen = 0;
  try {
    for (let round = 0; round < ROUNDS; round++) {
      const count = 1 + Math.floor(ids.random() * MOST_WRITES_A_ROUND);
      const acknowledged = await writeUntilKilled(path, `${round}`, count);
      expect(acknowledged.length).toBeGreaterThanOrEqual(count);
      for (const write of acknowledged) {
        expect(write.revision).toBeGreaterThan(atOpen);
        expect(revisions.has(write.revision)).toBe(false);
        revisions.add(write.revision);
        lastOfKey.set(write.key, write);
      }
      const engine = createSqliteEngine({ path, sync: 'normal', log: silentLogger });
      const store = await engine.open('c');
      atOpen = store.revision;
      expect(atOpen).toBeGreaterThanOrEqual(Math.max(...revisions));
      expectNothingLost(store, lastOfKey);
      await engine.close();
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});
