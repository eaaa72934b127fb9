import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { OperationalError, silentLogger } from '#server/base';
import { openSqlite } from '#server/db';
import { createSqliteEngine } from './sqlite-engine.ts';
import { lines, record, rejection, text } from './testing/harness.ts';
import { describeStoreContract } from './testing/index.ts';

describeStoreContract('the SQLite engine', () => {
  const folder = mkdtempSync(join(tmpdir(), 'store-'));
  return {
    createEngine: (options) => createSqliteEngine({ path: join(folder, 'a.db'), sync: 'normal', ...options }),
    durable: true,
    dispose: () => rmSync(folder, { recursive: true }),
  };
});

describe('a commit that fails', () => {
  it('rejects its whole batch, shows nothing, and leaves the store usable', async () => {
    const database = openSqlite(':memory:', { sync: 'normal' });
    const error = vi.fn();
    const engine = createSqliteEngine({ database, log: { ...silentLogger, error } });
    const [a, b] = [await engine.open('a'), await engine.open('b')];
    await a.put('/x', text('1'));
    const watch = record(a, '', 0);
    database.exec('PRAGMA max_page_count = 8');
    const outcomes = await Promise.all([
      rejection(a.put('/y', text('2'))),
      rejection(b.put('/y', () => Buffer.alloc(100_000))),
      rejection(a.delete('/x')),
      a.flush(),
    ]);
    for (const outcome of outcomes.slice(0, 3)) expect(outcome).toBeInstanceOf(OperationalError);
    expect([a.revision, b.revision, lines(a), lines(b), watch.events.length]).toEqual([
      1,
      0,
      ['/x=1 1/1'],
      [],
      1,
    ]);
    expect(await rejection(b.put('/y', () => Buffer.alloc(100_000)))).toBeInstanceOf(OperationalError);
    expect(error).toHaveBeenCalledTimes(1);
    await Promise.all([a.put('/y', text('2')), b.put('/y', text('1'))]);
    await engine.close();
    const again = createSqliteEngine({ database, log: silentLogger });
    expect(lines(await again.open('a'))).toEqual(['/x=1 1/1', '/y=2 2/2']);
    expect(lines(await again.open('b'))).toEqual(['/y=1 1/1']);
    await again.close();
    database.close();
  });
});

describe('a database file', () => {
  it('has one engine at a time', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'store-'));
    const options = { path: join(folder, 'a.db'), sync: 'full', log: silentLogger } as const;
    const engine = createSqliteEngine(options);
    expect(() => createSqliteEngine(options)).toThrow(OperationalError);
    await engine.close();
    await createSqliteEngine(options).close();
    rmSync(folder, { recursive: true });
  });
});
