// db: the SQL handle.
//
// One SQLite database: open it, prepare statements, run a transaction, close it. Calls are synchronous; values come
// back as numbers, strings, `Uint8Array` or null. The journal is a write-ahead log, so a committed transaction
// survives `kill -9`; with `sync: 'full'` it survives a power loss as well. `exclusive` keeps a second process out.
//
// What the world does to the file (unwritable folder, full disk, foreign lock, damage) is an OperationalError that
// names the file and says what to do. SQL that SQLite refuses is our own mistake: InternalError.
//
// Left out: queries built from types, migrations, PostgreSQL.

export type {
  SqlChanges,
  SqliteDatabase,
  SqliteOptions,
  SqliteStatement,
  SqliteSync,
  SqlValue,
} from './sqlite.ts';
export { openSqlite } from './sqlite.ts';
