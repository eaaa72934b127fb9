import { expect, it } from 'vitest';
import { RevisionMismatchError } from '../contract.ts';
import { type CreateHarness, line, lines, record, rejection, text, withEngine } from './harness.ts';

export function describeWrites(createHarness: CreateHarness): void {
  it('a put takes the next revision and keeps the creation revision', () =>
    withEngine(createHarness, async (engine) => {
      const store = await engine.open('a');
      expect(store.revision).toBe(0);
      const given: number[] = [];
      const encode = (revision: number): Uint8Array => {
        given.push(revision);
        return Buffer.from(`r${revision}`);
      };
      expect(line(await store.put('/x', encode))).toBe('/x=r1 1/1');
      expect(line(await store.put('/y', encode))).toBe('/y=r2 2/2');
      expect(line(await store.put('/x', encode))).toBe('/x=r3 1/3');
      expect(given).toEqual([1, 2, 3]);
      expect(store.revision).toBe(3);
      expect(lines(store)).toEqual(['/x=r3 1/3', '/y=r2 2/2']);
      expect(store.get('/none')).toBeUndefined();
    }));

  it('a delete takes a revision; a key put again is a new one', () =>
    withEngine(createHarness, async (engine) => {
      const store = await engine.open('a');
      await store.put('/x', text('1'));
      expect(line(await store.delete('/x', { encode: (r) => Buffer.from(`gone${r}`) }))).toBe('/x=gone2 1/2');
      expect([store.get('/x'), store.revision, store.count('')]).toEqual([undefined, 2, 0]);
      expect(line(await store.put('/x', text('2')))).toBe('/x=2 3/3');
      expect(line(await store.delete('/x'))).toBe('/x=2 3/4');
      expect(await store.delete('/x')).toBeUndefined();
      expect(store.revision).toBe(4);
    }));

  it('expectations are judged in the order of asking', () =>
    withEngine(createHarness, async (engine) => {
      const store = await engine.open('a');
      const outcomes = await Promise.all([
        store.put('/x', text('1'), 'absent').then(line),
        rejection(store.put('/x', text('2'), 'absent')),
        store.put('/x', text('3'), 1).then(line),
        rejection(store.put('/x', text('4'), 1)),
        rejection(store.delete('/x', { expected: 1 })),
        store.delete('/x', { expected: 2 }).then(line),
        rejection(store.delete('/x', { expected: 2 })),
        store.put('/x', text('5'), 'absent').then(line),
      ]);
      expect(outcomes.map((o) => (o instanceof RevisionMismatchError ? `not ${line(o.actual)}` : o))).toEqual(
        [
          '/x=1 1/1',
          'not /x=1 1/1',
          '/x=3 1/2',
          'not /x=3 1/2',
          'not /x=3 1/2',
          '/x=3 1/3',
          'not none',
          '/x=5 4/4',
        ],
      );
      expect(lines(store)).toEqual(['/x=5 4/4']);
    }));

  it('an encode that throws rejects its own write and takes no revision', () =>
    withEngine(createHarness, async (engine) => {
      const store = await engine.open('a');
      const watch = record(store, '', 0);
      const broken = new TypeError('no');
      const outcomes = await Promise.all([
        store.put('/a', text('1')).then(line),
        rejection(
          store.put('/b', () => {
            throw broken;
          }),
        ),
        store.put('/c', text('3')).then(line),
      ]);
      expect(outcomes).toEqual(['/a=1 1/1', broken, '/c=3 2/2']);
      expect(watch.events).toEqual(['1 put /a=1 (was none)', '2 put /c=3 (was none)']);
    }));

  it('nothing is seen before the writer could know', () =>
    withEngine(createHarness, async (engine) => {
      const store = await engine.open('a');
      const watch = record(store, '', 0);
      const write = store.put('/x', text('1'));
      expect([store.revision, store.get('/x'), watch.events]).toEqual([0, undefined, []]);
      await write;
      expect([store.revision, line(store.get('/x')), watch.events.length]).toEqual([1, '/x=1 1/1', 1]);
    }));

  it('a lone write commits within the next turn of the event loop', () =>
    withEngine(createHarness, async (engine) => {
      const store = await engine.open('a');
      for (let i = 1; i <= 3; i++) {
        void store.put('/x', text('1'));
        await new Promise((resolve) => setImmediate(resolve));
        expect(store.revision).toBe(i);
      }
    }));

  it('values are kept in memory of their own size', () =>
    withEngine(createHarness, async (engine) => {
      const store = await engine.open('a');
      const entry = await store.put('/x', () => Buffer.from('pooled'));
      expect(entry.value.buffer.byteLength).toBe(6);
      expect((await store.put('/y', () => new Uint8Array())).value.byteLength).toBe(0);
    }));

  it('more writes than one batch holds keep their order', () =>
    withEngine(createHarness, async (engine) => {
      const store = await engine.open('a');
      const writes = Array.from({ length: 2_500 }, (_, i) => store.put(`/${i}`, text('v')));
      await store.flush();
      expect(store.revision).toBe(2_500);
      expect((await Promise.all(writes)).map((e) => e.modRevision)).toEqual(writes.map((_, i) => i + 1));
    }));
}
