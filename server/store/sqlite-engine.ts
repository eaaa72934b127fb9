import { openSqlite, type SqliteDatabase, type SqliteSync } from '#server/db';
import type { Backend, Change } from './backend.ts';
import type { Entry, StoreEngine } from './contract.ts';
import { createEngine, type EngineOptions } from './engine.ts';

/** Either a file the engine opens for itself alone and closes, or a database whose owner does both. */
export type SqliteEngineOptions = EngineOptions &
  ({ readonly path: string; readonly sync: SqliteSync } | { readonly database: SqliteDatabase });

/**
 * Stores in one SQLite database: read from memory, written through to the file. A write is acknowledged when its
 * transaction is committed: it survives `kill -9`, and with `sync: 'full'` a power loss. (With `normal` a power loss
 * takes the last transactions, and with them their revisions.) Throws OperationalError when the file cannot be used.
 */
export function createSqliteEngine(options: SqliteEngineOptions): StoreEngine {
  if ('database' in options) return createEngine(createSqliteBackend(options.database), options);
  const database = openSqlite(options.path, { sync: options.sync, exclusive: true });
  try {
    const backend = createSqliteBackend(database);
    return createEngine({ ...backend, close: () => database.close() }, options);
  } catch (error) {
    database.close();
    throw error;
  }
}

/**
 * `clusters.revision` is written when a key is removed; the revision of a put stands in its row. The newest revision
 * of a cluster is the highest of both. Keys and names are kept as JSON writes them between the quotes, as SQLite text
 * cannot hold every JavaScript string.
 */
const SCHEMA = `
  CREATE TABLE IF NOT EXISTS clusters (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    revision INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE IF NOT EXISTS kv (
    cluster_id INTEGER NOT NULL REFERENCES clusters (id),
    key TEXT NOT NULL,
    create_revision INTEGER NOT NULL,
    mod_revision INTEGER NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (cluster_id, key)
  ) STRICT;`;

interface KvRow {
  readonly key: string;
  readonly create_revision: number;
  readonly mod_revision: number;
  readonly value: Uint8Array;
}

function createSqliteBackend(database: SqliteDatabase): Backend {
  database.exec(SCHEMA);
  const findCluster = database.prepare<{ id: number; revision: number }>(
    'SELECT id, revision FROM clusters WHERE name = ?',
  );
  const addCluster = database.prepare<{ id: number }>(
    'INSERT INTO clusters (name, revision) VALUES (?, 0) RETURNING id',
  );
  const setRevision = database.prepare('UPDATE clusters SET revision = ? WHERE id = ?');
  const removeCluster = database.prepare('DELETE FROM clusters WHERE id = ?');
  const listClusters = database.prepare<{ name: string }>('SELECT name FROM clusters');
  const load = database.prepare<KvRow>(
    'SELECT key, create_revision, mod_revision, value FROM kv WHERE cluster_id = ?',
  );
  const put = database.prepare(
    `INSERT INTO kv (cluster_id, key, create_revision, mod_revision, value) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (cluster_id, key) DO UPDATE SET
       create_revision = excluded.create_revision, mod_revision = excluded.mod_revision, value = excluded.value`,
  );
  const remove = database.prepare('DELETE FROM kv WHERE cluster_id = ? AND key = ?');
  const removeAll = database.prepare('DELETE FROM kv WHERE cluster_id = ?');

  /** Row ids of open clusters that have a row. */
  const ids = new Map<string, number>();

  const write = (id: number, { event, entry }: Change): void => {
    if (entry) put.run(id, toSqlText(event.key), entry.createRevision, entry.modRevision, entry.value);
    else {
      remove.run(id, toSqlText(event.key));
      setRevision.run(event.revision, id);
    }
  };

  return {
    load(cluster) {
      const row = findCluster.get(toSqlText(cluster));
      if (!row) return { revision: 0, entries: [] };
      ids.set(cluster, row.id);
      const entries = load.all(row.id).map(toEntry);
      return {
        revision: entries.reduce((r, entry) => Math.max(r, entry.modRevision), row.revision),
        entries,
      };
    },
    commit(changes) {
      const [first] = changes;
      const known = first && ids.get(first.cluster);
      if (known !== undefined && changes.length === 1 && first?.entry) {
        // One statement is a transaction of its own.
        write(known, first);
        return;
      }
      const added = new Map<string, number>();
      database.transaction(() => {
        for (const change of changes) {
          const { cluster } = change;
          let id = ids.get(cluster) ?? added.get(cluster);
          if (id === undefined) {
            id = addCluster.all(toSqlText(cluster))[0]?.id ?? 0;
            added.set(cluster, id);
          }
          write(id, change);
        }
      });
      for (const [cluster, id] of added) ids.set(cluster, id);
    },
    release: (cluster) => void ids.delete(cluster),
    clusters: () => listClusters.all().map(({ name }) => fromSqlText(name)),
    destroy(cluster) {
      const row = findCluster.get(toSqlText(cluster));
      if (!row) return;
      database.transaction(() => {
        removeAll.run(row.id);
        removeCluster.run(row.id);
      });
    },
    close: () => undefined,
  };
}

function toEntry(row: KvRow): Entry {
  return {
    key: fromSqlText(row.key),
    value: row.value,
    createRevision: row.create_revision,
    modRevision: row.mod_revision,
  };
}

function toSqlText(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

function fromSqlText(text: string): string {
  return text.includes('\\') ? (JSON.parse(`"${text}"`) as string) : text;
}
