import { expect, it } from 'vitest';
import { silentLogger } from '#server/base';
import type { StoreEvent } from './contract.ts';
import { createWatchers } from './watchers.ts';

function put(key: string, revision: number): StoreEvent {
  return { type: 'put', key, revision, value: new Uint8Array(), previous: undefined };
}

it('of a thousand watches only the matching ones are called', () => {
  const watchers = createWatchers(silentLogger);
  const called: string[] = [];
  const watch = (prefix: string): ReturnType<typeof watchers.add> =>
    watchers.add({ prefix, seen: 0, onEvent: () => called.push(prefix), onEnd: undefined }, []);
  for (let i = 0; i < 1_000; i++) watch(`/pods/ns-${i}/`);
  const all = watch('');
  const twice = [watch('/pods/'), watch('/pods/')];
  watchers.dispatch(put('/pods/ns-7/a', 1));
  expect(called.sort()).toEqual(['', '/pods/', '/pods/', '/pods/ns-7/']);
  for (const each of [all, ...twice]) each.stop();
  watchers.dispatch(put('/pods/ns-7/a', 1));
  watchers.dispatch(put('/pods/ns-77', 2));
  expect(called.length).toBe(4);
  watchers.dispatch(put('/pods/ns-7/b', 3));
  expect(called.at(-1)).toBe('/pods/ns-7/');
});

it('a watch that ends in the callback that told it of the end is not told again', () => {
  const watchers = createWatchers(silentLogger);
  const ends: string[] = [];
  watchers.add(
    {
      prefix: '',
      seen: 0,
      onEvent: () => undefined,
      onEnd: (why) => {
        ends.push(why);
        watchers.end('closed');
        throw new TypeError('no');
      },
    },
    [],
  );
  watchers.end('closed');
  expect(ends).toEqual(['closed']);
});
