import { expect, it, vi } from 'vitest';
import { silentLogger } from '#server/base';
import { CompactedError, FutureRevisionError, type StoreWatch } from '../contract.ts';
import { EVENT_OVERHEAD_BYTES } from '../history.ts';
import { type CreateHarness, eventLine, lines, record, text, withEngine } from './harness.ts';

export function describeLists(createHarness: CreateHarness): void {
  it('a list has the keys of its prefix in order, page by page', () =>
    withEngine(createHarness, async (engine) => {
      const store = await engine.open('a');
      await Promise.all(['/b/2', '/a/1', '/b/1', '/b', '/c', '/b/3'].map((key) => store.put(key, text('v'))));
      expect(store.list('/b/').entries.map((e) => e.key)).toEqual(['/b/1', '/b/2', '/b/3']);
      expect(store.count('/b')).toBe(4);
      const first = store.list('/b/', { limit: 2 });
      expect([first.entries.length, first.more, first.remaining, first.revision]).toEqual([2, true, 1, 6]);
      const second = store.list('/b/', { limit: 2, after: '/b/2' });
      expect([second.entries.map((e) => e.key), second.more, second.remaining]).toEqual([['/b/3'], false, 0]);
      expect(store.list('/b/', { after: '/z' }).entries).toEqual([]);
      expect(store.list('/b/', { after: '/a' }).entries.length).toBe(3);
      expect(store.list('/none')).toEqual({ entries: [], revision: 6, more: false, remaining: 0 });
    }));

  it('an older revision is shown as it was, page by page', () =>
    withEngine(createHarness, async (engine) => {
      const store = await engine.open('a');
      await store.put('/a', text('1'));
      await store.put('/b', text('2'));
      await store.put('/c', text('3'));
      await store.put('/a', text('4'));
      await store.delete('/b');
      await store.put('/aa', text('6'));
      await store.put('/b', text('7'));
      expect(lines(store, '', { revision: 0 })).toEqual([]);
      expect(lines(store, '', { revision: 3 })).toEqual(['/a=1 1/1', '/b=2 2/2', '/c=3 3/3']);
      expect(lines(store, '', { revision: 5 })).toEqual(['/a=4 1/4', '/c=3 3/3']);
      const page = store.list('', { revision: 3, limit: 1, after: '/a' });
      expect([page.entries[0]?.key, page.revision, page.more, page.remaining]).toEqual(['/b', 3, true, 1]);
    }));

  it('forgotten and future revisions are refused', () =>
    withEngine(createHarness, async (engine) => {
      const store = await engine.open('a');
      for (let i = 0; i < 4; i++) await store.put('/a', text(`${i}`));
      store.compact(2);
      store.compact(1);
      expect(store.compactedRevision).toBe(2);
      expect(() => store.list('', { revision: 1 })).toThrow(CompactedError);
      expect(() => store.watch('', 1, () => undefined)).toThrow(CompactedError);
      expect(lines(store, '', { revision: 2 })).toEqual(['/a=1 1/2']);
      expect(record(store, '', 2).events.length).toBe(2);
      expect(() => store.list('', { revision: 5 })).toThrow(FutureRevisionError);
      expect(() => store.compact(5)).toThrow(FutureRevisionError);
    }));

  it.each([
    ['events', { events: 3, bytes: 1e9 }],
    ['bytes', { events: 1_000, bytes: 3 * (EVENT_OVERHEAD_BYTES + 4) }],
  ])('history is bounded by %s', (_, limits) =>
    withEngine(
      createHarness,
      async (engine) => {
        const store = await engine.open('a');
        for (let i = 0; i < 10; i++) await store.put('/a', text('1234'));
        expect(store.compactedRevision).toBe(7);
        expect(record(store, '', 7).events.length).toBe(3);
        expect(() => store.watch('', 6, () => undefined)).toThrow(CompactedError);
      },
      { historyOf: () => limits },
    ),
  );
}

export function describeWatches(createHarness: CreateHarness): void {
  it('a watch gets what happened, then what happens, of its prefix', () =>
    withEngine(createHarness, async (engine) => {
      const store = await engine.open('a');
      await store.put('/a/1', text('1'));
      await store.put('/b/1', text('2'));
      await store.put('/a/1', text('3'));
      const all = record(store, '', 1);
      const some = record(store, '/a/', 0);
      const later = record(store, '/a/', 4);
      await store.delete('/a/1', { encode: text('gone') });
      await store.put('/a/2', text('5'));
      some.stop();
      some.stop();
      await store.put('/a/2', text('6'));
      const created = '1 put /a/1=1 (was none)';
      const shared = [
        '3 put /a/1=3 (was /a/1=1 1/1)',
        '4 delete /a/1=gone (was /a/1=3 1/3)',
        '5 put /a/2=5 (was none)',
      ];
      const last = '6 put /a/2=6 (was /a/2=5 5/5)';
      expect(some.events).toEqual([created, ...shared]);
      expect(all.events).toEqual(['2 put /b/1=2 (was none)', ...shared, last]);
      expect(later.events).toEqual([shared[2], last]);
      expect(some.ends).toEqual([]);
    }));

  it('a watch begun or stopped inside a callback misses and repeats nothing', () =>
    withEngine(createHarness, async (engine) => {
      const store = await engine.open('a');
      const inner: string[] = [];
      const stopped: string[] = [];
      const victims: StoreWatch[] = [];
      let begun = false;
      store.watch('', 0, () => {
        for (const victim of victims) victim.stop();
        if (begun) return;
        begun = true;
        store.watch('', store.revision - 1, (event) => inner.push(eventLine(event)));
      });
      victims.push(store.watch('', 0, (event) => stopped.push(eventLine(event))));
      await Promise.all([1, 2, 3].map((i) => store.put(`/${i}`, text('v'))));
      expect(inner).toEqual(['3 put /3=v (was none)']);
      expect(stopped).toEqual([]);
      await store.put('/4', text('v'));
      expect(inner.length).toBe(2);
    }));

  it('a callback that throws ends its own watch only, and is logged', () => {
    const error = vi.fn();
    const log = { ...silentLogger, error, child: () => log };
    return withEngine(
      createHarness,
      async (engine) => {
        const store = await engine.open('a');
        const ends: string[] = [];
        const broken = (): void => {
          throw new TypeError('no');
        };
        store.watch('/a', 0, broken, (why) => ends.push(why));
        const other = record(store, '', 0);
        await store.put('/a', text('1'));
        await store.put('/a', text('2'));
        store.watch('/a', 0, broken, (why) => ends.push(why));
        expect([ends, other.events.length, error.mock.calls.length]).toEqual([['failed', 'failed'], 2, 2]);
      },
      { log },
    );
  });
}
