// The program `sqlite-engine.crash.test.ts` starts and kills: writes without pause into one cluster, and tells its
// parent of every write that was acknowledged. Arguments: database file, a name for this round.
import { silentLogger } from '#server/base';
import { createSqliteEngine } from '../sqlite-engine.ts';

/** An acknowledged write. `removed`: it was a delete. */
export interface Acknowledged {
  readonly key: string;
  readonly revision: number;
  readonly removed: boolean;
}

const [path = '', round = ''] = process.argv.slice(2);
const WRITERS = 20;

const engine = createSqliteEngine({ path, sync: 'normal', log: silentLogger });
const store = await engine.open('c');

function acknowledge(key: string, revision: number, removed = false): void {
  process.send?.({ key, revision, removed } satisfies Acknowledged);
}

/** Alternately a key of its own, never touched again, and one that is written and removed again and again. */
async function writeForever(writer: number): Promise<never> {
  for (let i = 0; ; i++) {
    for (const key of [`/keep/${round}/${writer}/${i}`, `/churn/${writer}`]) {
      const entry = await store.put(key, (revision) => Buffer.from(`${key}@${revision}`.padEnd(1_500)));
      acknowledge(key, entry.modRevision);
    }
    if (i % 2 === 0) continue;
    const removed = await store.delete(`/churn/${writer}`);
    if (removed) acknowledge(removed.key, removed.modRevision, true);
  }
}

await Promise.all(Array.from({ length: WRITERS }, (_, writer) => writeForever(writer)));
