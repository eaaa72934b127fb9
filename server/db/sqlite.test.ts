import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { InternalError, OperationalError } from '#server/base';
import { openSqlite, type SqliteDatabase, type SqlValue } from './sqlite.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'db-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

function open(name = 'a.db'): SqliteDatabase {
  return openSqlite(join(folder, name), { sync: 'normal' });
}

function failure(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  return undefined;
}

function expectOperational(error: unknown, path: string): void {
  expect(error).toBeInstanceOf(OperationalError);
  expect((error as OperationalError).message).toContain(path);
  expect((error as OperationalError).remedy).toContain(folder);
}

describe('values', () => {
  it('come back as they went in', () => {
    const db = openSqlite(':memory:', { sync: 'normal' });
    db.exec('CREATE TABLE t(a, b)');
    const insert = db.prepare('INSERT INTO t VALUES (?, ?)');
    const bytes = new Uint8Array([9, 1, 2, 9]).subarray(1, 3);
    expect(insert.run('é', bytes)).toEqual({ changes: 1 });
    insert.run(2 ** 53 - 1, new Uint8Array());
    insert.run(1.5, null);
    const rows = [
      { a: 'é', b: Buffer.from([1, 2]) },
      { a: 2 ** 53 - 1, b: Buffer.alloc(0) },
      { a: 1.5, b: null },
    ];
    expect(db.prepare('SELECT a, b FROM t').all()).toEqual(rows);
    expect(db.prepare('SELECT a, b FROM t WHERE a = ?').get('é')).toEqual(rows[0]);
    expect(db.prepare('SELECT a, b FROM t WHERE a = ?').get('no')).toBeUndefined();
  });

  it('of a blob or null alone are positional', () => {
    const db = openSqlite(':memory:', { sync: 'normal' });
    expect(db.prepare('SELECT ? AS v').get(Buffer.from('x'))).toEqual({ v: Buffer.from('x') });
    expect(db.prepare('SELECT ? AS v').get(null)).toEqual({ v: null });
  });

  it('are refused when missing or no SQL values', () => {
    const statement = openSqlite(':memory:', { sync: 'normal' }).prepare('SELECT ? AS v');
    expect(failure(() => statement.get())).toBeInstanceOf(InternalError);
    expect(failure(() => statement.get(true as unknown as SqlValue))).toBeInstanceOf(InternalError);
  });
});

describe('a transaction', () => {
  it('keeps all or nothing', () => {
    const db = open();
    db.exec('CREATE TABLE t(a)');
    const insert = db.prepare('INSERT INTO t VALUES (?)');
    const count = db.prepare('SELECT count(*) AS n FROM t');
    const broken = new TypeError('no');
    const thrown = failure(() =>
      db.transaction(() => {
        insert.run(1);
        throw broken;
      }),
    );
    expect(thrown).toBe(broken);
    expect(count.get()).toEqual({ n: 0 });
    expect(db.transaction(() => insert.run(1))).toEqual({ changes: 1 });
    db.close();
    expect(open().prepare('SELECT count(*) AS n FROM t').get()).toEqual({ n: 1 });
  });

  it('is rolled back when the disk is full, and the next one works', () => {
    const db = open();
    db.exec('CREATE TABLE t(a); PRAGMA max_page_count = 4');
    const insert = db.prepare('INSERT INTO t VALUES (?)');
    const error = failure(() =>
      db.transaction(() => {
        for (let i = 0; i < 10; i++) insert.run(Buffer.alloc(8000));
      }),
    );
    expectOperational(error, db.path);
    expect(db.prepare('SELECT count(*) AS n FROM t').get()).toEqual({ n: 0 });
    db.transaction(() => insert.run(1));
    expect(db.prepare('SELECT count(*) AS n FROM t').get()).toEqual({ n: 1 });
  });
});

describe('durability settings', () => {
  it.each([
    ['normal', 1],
    ['full', 2],
  ] as const)('%s is synchronous=%i over a write-ahead log', (sync, level) => {
    const db = openSqlite(join(folder, 'a.db'), { sync });
    expect(db.prepare('PRAGMA synchronous').get()).toEqual({ synchronous: level });
    expect(db.prepare('PRAGMA journal_mode').get()).toEqual({ journal_mode: 'wal' });
    expect(db.prepare('PRAGMA busy_timeout').get()).toEqual({ timeout: 2000 });
  });
});

describe('what the world does', () => {
  it('a missing folder', () => {
    expectOperational(
      failure(() => open('no/a.db')),
      join(folder, 'no/a.db'),
    );
  });

  it.skipIf(process.getuid?.() === 0)('a folder that may not be written', () => {
    chmodSync(folder, 0o500);
    expectOperational(failure(open), join(folder, 'a.db'));
    chmodSync(folder, 0o700);
  });

  it('a file that is no database', () => {
    writeFileSync(join(folder, 'a.db'), 'x'.repeat(5000));
    expectOperational(failure(open), join(folder, 'a.db'));
  });

  it('a file that another connection writes to, and one that may only be read', () => {
    const db = open();
    db.exec('CREATE TABLE t(a)');
    const other = open();
    other.exec('PRAGMA busy_timeout = 1');
    db.exec('BEGIN IMMEDIATE');
    expectOperational(
      failure(() => other.transaction(() => undefined)),
      other.path,
    );
    db.exec('COMMIT');
    db.exec('PRAGMA query_only = ON');
    expectOperational(
      failure(() => db.exec('INSERT INTO t VALUES (1)')),
      db.path,
    );
  });

  it('a second exclusive user; free again after close', () => {
    const path = join(folder, 'a.db');
    const first = openSqlite(path, { sync: 'normal', exclusive: true });
    first.exec('CREATE TABLE t(a)');
    expectOperational(
      failure(() => openSqlite(path, { sync: 'normal', exclusive: true })),
      path,
    );
    expect(open().prepare('SELECT count(*) AS n FROM t').get()).toEqual({ n: 0 });
    first.close();
    openSqlite(path, { sync: 'normal', exclusive: true }).close();
  });
});

describe('our mistakes', () => {
  it('bad SQL and use after close are InternalErrors', () => {
    const db = open();
    const statement = db.prepare('SELECT 1 AS one');
    expect(failure(() => db.exec('nonsense'))).toBeInstanceOf(InternalError);
    db.close();
    db.close();
    expect(failure(() => statement.get())).toBeInstanceOf(InternalError);
    expect(failure(() => db.exec('SELECT 1'))).toBeInstanceOf(InternalError);
  });
});
