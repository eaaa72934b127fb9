import { expect, it } from 'vitest';
import { InternalError, silentLogger } from '#server/base';
import { StoreClosedError, StoreOpenError } from '../contract.ts';
import { type CreateHarness, lines, record, rejection, text, withEngine } from './harness.ts';

export function describeEngines(createHarness: CreateHarness): void {
  it('stores are apart, and the same object while open', () =>
    withEngine(createHarness, async (engine) => {
      const names = ['management', 'ns/a', "o'neil\u0000\ud800\\"];
      const stores = await Promise.all(names.map((name) => engine.open(name)));
      expect(await engine.clusters()).toEqual([]);
      await Promise.all(stores.map((store, i) => store.put('/x', text(`${i}`))));
      await stores[1]?.put('/x', text('again'));
      expect(stores.map((store) => lines(store))).toEqual([['/x=0 1/1'], ['/x=again 1/2'], ['/x=2 1/1']]);
      expect(await Promise.all(names.map((name) => engine.open(name)))).toEqual(stores);
      expect(await engine.clusters()).toEqual([...names].sort());
    }));

  it('a store opened again has its entries and its revision, also when the last change was a delete', () =>
    withEngine(createHarness, async (engine) => {
      const key = '/é/\u0000/\ud800/"\\';
      const first = await engine.open('a');
      await first.put(key, text('1'));
      await first.put('/y', text('2'));
      await first.delete('/y');
      await first.close();
      const second = await engine.open('a');
      expect(second).not.toBe(first);
      expect([second.revision, second.compactedRevision, lines(second)]).toEqual([3, 3, [`${key}=1 1/1`]]);
      expect((await second.put('/z', text('4'))).modRevision).toBe(4);
      await second.close();
      expect((await engine.open('a')).revision).toBe(4);
    }));

  it('closing flushes, ends watches, and refuses what comes later', () =>
    withEngine(createHarness, async (engine) => {
      const store = await engine.open('a');
      const watch = record(store, '', 0);
      const write = store.put('/x', text('1'));
      const closed = store.close();
      expect(store.close()).toBe(closed);
      expect(await rejection(store.put('/y', text('2')))).toBeInstanceOf(StoreClosedError);
      expect(await rejection(store.delete('/x'))).toBeInstanceOf(StoreClosedError);
      const again = engine.open('a');
      await Promise.all([write, closed]);
      expect([watch.events.length, watch.ends]).toEqual([1, ['closed']]);
      expect(() => store.get('/x')).toThrow(StoreClosedError);
      expect(() => store.list('')).toThrow(StoreClosedError);
      expect(() => store.watch('', 1, () => undefined)).toThrow(StoreClosedError);
      expect(lines(await again)).toEqual(['/x=1 1/1']);
    }));

  it('destroy removes the data of a closed store', () =>
    withEngine(createHarness, async (engine) => {
      const store = await engine.open('a');
      await store.put('/x', text('1'));
      expect(await rejection(engine.destroy('a'))).toBeInstanceOf(StoreOpenError);
      await store.close();
      expect(await engine.clusters()).toEqual(['a']);
      await engine.destroy('a');
      await engine.destroy('never');
      expect(await engine.clusters()).toEqual([]);
      const fresh = await engine.open('a');
      expect([fresh.revision, lines(fresh)]).toEqual([0, []]);
    }));

  it('a closed engine has committed everything and does nothing more', () =>
    withEngine(createHarness, async (engine) => {
      const [a, b] = [await engine.open('a'), await engine.open('b')];
      const writes = Promise.all([a.put('/x', text('1')), b.put('/x', text('1'))]);
      await engine.close();
      await engine.close();
      expect((await writes).length).toBe(2);
      for (const call of [() => engine.open('a'), () => engine.clusters(), () => engine.destroy('a')])
        expect(await rejection(call())).toBeInstanceOf(StoreClosedError);
      expect(await rejection(a.put('/x', text('2')))).toBeInstanceOf(StoreClosedError);
    }));

  it('a new engine finds what the last one stored, if it is durable', () =>
    withEngine(createHarness, async (engine, harness) => {
      const store = await engine.open('a');
      await store.put('/x', text('1'));
      await store.put('/y', text('2'));
      await store.delete('/y');
      await engine.close();
      const next = harness.createEngine({ log: silentLogger });
      try {
        const found = await next.open('a');
        const seen = [await next.clusters(), found.revision, lines(found)];
        expect(seen).toEqual(harness.durable ? [['a'], 3, ['/x=1 1/1']] : [[], 0, []]);
      } finally {
        await next.close();
      }
    }));

  it('a cluster needs a name', () =>
    withEngine(createHarness, async (engine) => {
      expect(await rejection(engine.open(''))).toBeInstanceOf(InternalError);
    }));
}
