import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createManualClock, type ManualClock } from '#server/base';
import { type ConfigMap, configMaps, matchesLabelSelector, type WatchEvent } from '#server/kube';
import { configMap } from './testing/objects.ts';
import { ADMIN, startTestServer, type TestServer } from './testing/server.ts';

let t: TestServer;
let clock: ManualClock;

beforeEach(async () => {
  clock = createManualClock();
  t = await startTestServer({ clock });
});

afterEach(async () => {
  await t.close();
});

interface Recorded {
  events: WatchEvent[];
  ends: unknown[];
  stop(): void;
}

function watch(query: Record<string, string>): Recorded {
  const events: WatchEvent[] = [];
  const ends: unknown[] = [];
  const running = t.server.backend.watch(
    {
      user: ADMIN,
      userAgent: 'test',
      verb: 'watch',
      resource: { group: '', version: 'v1', plural: 'configmaps' },
      namespace: 'default',
      query,
    },
    (event) => events.push(event),
    (error) => ends.push(error),
  );
  return { events, ends, stop: () => running.stop() };
}

const brief = (events: readonly WatchEvent[]): string[] =>
  events.map(({ type, object }) => `${type} ${object.metadata.name}`);

describe('a watch', () => {
  it('without a revision begins with what exists', async () => {
    await t.admin.create(configMaps, configMap('a'));
    const seen = watch({});
    await t.admin.create(configMaps, configMap('b'));
    expect(brief(seen.events)).toEqual(['ADDED a', 'ADDED b']);
  });

  it('from a revision tells what came after it, deletions at their own revision', async () => {
    const made = await t.admin.create(configMaps, configMap('a'));
    await t.admin.update(configMaps, { ...made, data: { x: '1' } });
    await t.admin.delete(configMaps, { namespace: 'default', name: 'a' });
    const seen = watch({ resourceVersion: made.metadata.resourceVersion ?? '' });
    expect(brief(seen.events)).toEqual(['MODIFIED a', 'DELETED a']);
    expect(seen.events.at(-1)?.object.metadata.resourceVersion).toBe(String(t.store.revision));
  });

  it('shares its frozen events with every other', async () => {
    const [one, two] = [watch({}), watch({})];
    await t.admin.create(configMaps, configMap('a'));
    expect(one.events[0]).toBe(two.events[0]);
    expect(Object.isFrozen(one.events[0]?.object.metadata)).toBe(true);
  });

  it('that asks for initial events gets their end', async () => {
    await t.admin.create(configMaps, configMap('a'));
    const seen = watch({
      sendInitialEvents: 'true',
      resourceVersionMatch: 'NotOlderThan',
      allowWatchBookmarks: 'true',
    });
    expect(brief(seen.events.slice(0, 1))).toEqual(['ADDED a']);
    expect(seen.events[1]).toEqual({
      type: 'BOOKMARK',
      object: {
        kind: 'ConfigMap',
        apiVersion: 'v1',
        metadata: {
          name: '',
          resourceVersion: String(t.store.revision),
          annotations: { 'k8s.io/initial-events-end': 'true' },
        },
      },
    });
  });

  it('gets a bookmark about every minute, when there is something to tell', async () => {
    const seen = watch({ allowWatchBookmarks: 'true' });
    const other = watch({});
    await t.admin.create(configMaps, { metadata: { name: 'x', namespace: 'kube-system' } });
    await clock.advance(60_000);
    expect(seen.events.map(({ type }) => type)).toEqual(['BOOKMARK']);
    await clock.advance(600_000);
    expect(seen.events).toHaveLength(1);
    seen.stop();
    other.stop();
    expect(clock.pending).toBe(0);
  });

  it('ends after its timeout, and with 410 for what is forgotten', async () => {
    const seen = watch({ timeoutSeconds: '5' });
    await clock.advance(5000);
    expect(seen.ends).toEqual([undefined]);
    const made = await t.admin.create(configMaps, configMap('a'));
    await t.admin.create(configMaps, configMap('b'));
    t.store.compact(t.store.revision);
    const late = watch({ resourceVersion: made.metadata.resourceVersion ?? '' });
    expect(late.events).toEqual([]);
    expect(late.ends).toMatchObject([
      {
        code: 410,
        reason: 'Expired',
        message: expect.stringMatching(/^too old resource version: \d+ \(\d+\)$/),
      },
    ]);
  });

  it('stops inside its own callback', async () => {
    await t.admin.create(configMaps, configMap('a'));
    await t.admin.create(configMaps, configMap('b'));
    let count = 0;
    const running = t.admin.watch(
      configMaps,
      { namespace: 'default', resourceVersion: String(t.store.revision) },
      () => {
        count++;
        running.stop();
      },
      () => undefined,
    );
    await t.admin.create(configMaps, configMap('c'));
    await t.admin.create(configMaps, configMap('d'));
    expect(count).toBe(1);
  });

  it('ends with the server', async () => {
    const seen = watch({});
    await t.server.close();
    expect(seen.ends).toEqual([undefined]);
  });
});

const step = fc.record({
  name: fc.constantFrom('a', 'b', 'c'),
  action: fc.constantFrom('write', 'write', 'delete'),
  color: fc.constantFrom('red', 'blue', undefined),
});

describe('any selector', () => {
  it('gives, event by event, what listing with it gives', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 25 }),
        fc.constantFrom(
          { labelSelector: 'color=red' },
          { labelSelector: 'color' },
          { labelSelector: 'color!=blue' },
          { fieldSelector: 'metadata.name=a' },
          { fieldSelector: 'metadata.name!=b', labelSelector: 'color in (red,blue)' },
          {},
        ),
        async (steps, selector) => {
          await t.admin.deleteCollection(configMaps, { namespace: 'default' });
          const start = String(t.store.revision);
          const live = watch({ ...selector, resourceVersion: start });
          const state = new Map<string, ConfigMap>();
          let applied = 0;
          for (const { name, action, color } of steps) {
            await perform(name, action, color);
            for (const event of live.events.slice(applied)) fold(state, event);
            applied = live.events.length;
            const listed = await t.admin.list(configMaps, { namespace: 'default', ...selector });
            expect([...state.values()].sort((x, y) => (x.metadata.name < y.metadata.name ? -1 : 1))).toEqual(
              listed.items,
            );
          }
          const replay = watch({ ...selector, resourceVersion: start });
          expect(replay.events).toEqual(live.events);
          live.stop();
          replay.stop();
        },
      ),
      { numRuns: 40 },
    );
  });
});

async function perform(name: string, action: string, color: string | undefined): Promise<void> {
  const ref = { namespace: 'default', name };
  const exists = (await t.admin.list(configMaps, { namespace: 'default' })).items.some(
    (one) => one.metadata.name === name,
  );
  if (action === 'delete') {
    if (exists) await t.admin.delete(configMaps, ref);
    return;
  }
  const wanted = configMap(name, { n: String(t.store.revision) }, color ? { color } : {});
  if (exists) await t.admin.update(configMaps, wanted);
  else await t.admin.create(configMaps, wanted);
}

function fold(state: Map<string, ConfigMap>, { type, object }: WatchEvent<ConfigMap>): void {
  const { name } = object.metadata;
  if (type === 'ADDED') expect(state.has(name)).toBe(false);
  else expect(state.has(name)).toBe(true);
  if (type === 'DELETED') state.delete(name);
  else state.set(name, object);
  expect(matchesLabelSelector({}, object.metadata.labels)).toBe(true);
}
