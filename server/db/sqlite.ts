import { chmodSync, existsSync } from 'node:fs';
import Database from 'libsql';
import { InternalError, OperationalError } from '#server/base';
import { isBusy, sqliteError } from './sqlite-errors.ts';

/** What SQLite stores. Integers must be safe ones; booleans are not SQL values. */
export type SqlValue = string | number | bigint | Uint8Array | null;

export interface SqlChanges {
  /** Rows the statement inserted, updated or deleted. */
  readonly changes: number;
}

/** `normal`: a commit survives the death of the process. `full`: a commit waits for the disk, survives power loss. */
export type SqliteSync = 'normal' | 'full';

export interface SqliteOptions {
  readonly sync: SqliteSync;
  /**
   * Refuse to open while another handle opened the file exclusively, in this process or another (default false).
   * Held as a lock on `<path>.lock`, which the operating system releases when the process dies in whatever way.
   */
  readonly exclusive?: boolean;
}

/**
 * A prepared statement. `Row` is what the caller knows its columns to be; blobs are Buffers of their own memory.
 * Parameters are positional (`?`), one value for each placeholder.
 */
export interface SqliteStatement<Row> {
  run(...parameters: SqlValue[]): SqlChanges;
  get(...parameters: SqlValue[]): Row | undefined;
  all(...parameters: SqlValue[]): Row[];
}

/** One open database. Every call is synchronous; see sqlite-errors.ts for what they throw. */
export interface SqliteDatabase {
  /** The file, or `:memory:`. */
  readonly path: string;
  /** Runs statements that return nothing, separated by semicolons. */
  exec(sql: string): void;
  /** `?` may stand in `sql` only for a parameter. */
  prepare<Row = Record<string, SqlValue>>(sql: string): SqliteStatement<Row>;
  /**
   * Runs `work` in one transaction (BEGIN IMMEDIATE): committed when it returns, rolled back when it or the commit
   * throws, and what it threw is thrown on. Not nestable; `work` must be synchronous.
   */
  transaction<Result>(work: () => Result): Result;
  /** Moves the write-ahead log into the file and closes. Idempotent; later calls throw InternalError. */
  close(): void;
}

/** How long a call waits for a lock of another process (a backup, a person with the sqlite3 shell) to go away. */
const BUSY_TIMEOUT_MS = 2_000;
/** After a checkpoint the write-ahead log is cut back to this size. */
const WAL_SIZE_LIMIT_BYTES = 16 * 1024 * 1024;
/** Only for new files: objects of some KB fit a page with few overflows. */
const PAGE_SIZE_BYTES = 8192;

type Connection = InstanceType<typeof Database>;
type NativeStatement = ReturnType<Connection['prepare']>;

/** What is stored is its owner's alone, in whatever folder; SQLite gives its side files the mode of the database. */
function keepPrivate(path: string): void {
  for (const file of [path, `${path}-wal`, `${path}-shm`]) if (existsSync(file)) chmodSync(file, 0o600);
}

/**
 * Opens (creates when absent) the SQLite database at `path`; its folder must exist. `:memory:` is a private one that
 * dies with the handle. Throws OperationalError naming the file when it cannot be opened, is not a database or is
 * locked.
 */
export function openSqlite(path: string, options: SqliteOptions): SqliteDatabase {
  const onDisk = path !== ':memory:';
  const lock = options.exclusive && onDisk ? takeLock(path) : undefined;
  try {
    const connection = new Database(path, { timeout: BUSY_TIMEOUT_MS });
    connection.exec(`PRAGMA page_size = ${PAGE_SIZE_BYTES}`);
    connection.pragma('journal_mode = WAL');
    if (onDisk) keepPrivate(path);
    connection.exec(`PRAGMA synchronous = ${options.sync === 'full' ? 'FULL' : 'NORMAL'}`);
    connection.pragma(`journal_size_limit = ${WAL_SIZE_LIMIT_BYTES}`);
    connection.exec('PRAGMA foreign_keys = ON');
    return createHandle(path, connection, lock);
  } catch (error) {
    lock?.release();
    throw sqliteError(error, path);
  }
}

interface FileLock {
  release(): void;
}

/**
 * An open exclusive transaction on an empty database beside the real one. Not SQLite's own locking_mode: that keeps
 * readers (a backup, the sqlite3 shell) out as well, and is released only when every statement is collected.
 */
function takeLock(path: string): FileLock {
  const file = `${path}.lock`;
  try {
    const connection = new Database(file);
    connection.exec('BEGIN EXCLUSIVE');
    return {
      release() {
        connection.exec('ROLLBACK');
        connection.close();
      },
    };
  } catch (error) {
    if (isBusy(error))
      throw new OperationalError(`${path} is in use by another process (it holds ${file})`, {
        remedy: `Stop the other process that uses ${path}, or choose another DATA_DIR.`,
        cause: error,
      });
    throw sqliteError(error, file);
  }
}

function createHandle(path: string, connection: Connection, lock: FileLock | undefined): SqliteDatabase {
  let open = true;
  const call = <Result>(work: () => Result): Result => {
    if (!open) throw new InternalError(`${path}: the database is closed`);
    try {
      return work();
    } catch (error) {
      throw sqliteError(error, path);
    }
  };
  return {
    path,
    exec: (sql) => call(() => void connection.exec(sql)),
    prepare: <Row>(sql: string) =>
      wrapStatement<Row>(
        sql,
        call(() => connection.prepare(sql)),
        call,
      ),
    transaction(work) {
      call(() => connection.exec('BEGIN IMMEDIATE'));
      try {
        const result = work();
        call(() => connection.exec('COMMIT'));
        return result;
      } catch (error) {
        // A full disk has already rolled back.
        call(() => connection.inTransaction && connection.exec('ROLLBACK'));
        throw error;
      }
    },
    close() {
      if (!open) return;
      try {
        // Statements not collected yet keep SQLite from doing this on its own.
        call(() => connection.pragma('wal_checkpoint(TRUNCATE)'));
      } finally {
        open = false;
        connection.close();
        lock?.release();
      }
    },
  };
}

function wrapStatement<Row>(
  sql: string,
  native: NativeStatement,
  call: <Result>(work: () => Result) => Result,
): SqliteStatement<Row> {
  const placeholders = sql.split('?').length - 1;
  // libsql aborts the process on a boolean, keeps an earlier call's value for a parameter not given, and takes a lone
  // blob or null for named parameters: hence the checks, and the parameters always as one array.
  const check = (parameters: readonly SqlValue[]): readonly SqlValue[] => {
    if (parameters.length !== placeholders || !parameters.every(isSqlValue))
      throw new InternalError(`${placeholders} SQL values expected for: ${sql}`);
    return parameters;
  };
  return {
    run: (...parameters) => call(() => ({ changes: native.run(check(parameters)).changes })),
    get: (...parameters) =>
      call(() => {
        const row = native.get(check(parameters)) as Record<string, unknown> | undefined;
        if (row) delete row['_metadata'];
        return row && (blobsAsBuffers(row) as Row);
      }),
    all: (...parameters) =>
      call(() => {
        const rows = native.all(check(parameters)) as Record<string, unknown>[];
        for (const row of rows) blobsAsBuffers(row);
        return rows as Row[];
      }),
  };
}

function isSqlValue(value: unknown): boolean {
  return (
    value === null ||
    typeof value === 'string' ||
    typeof value === 'number' ||
    typeof value === 'bigint' ||
    value instanceof Uint8Array
  );
}

/** libsql gives a blob of `all` as ArrayBuffer, of `get` as Buffer. */
function blobsAsBuffers(row: Record<string, unknown>): Record<string, unknown> {
  for (const column in row) {
    const value = row[column];
    if (value instanceof ArrayBuffer) row[column] = Buffer.from(value);
  }
  return row;
}
