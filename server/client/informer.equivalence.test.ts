import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createManualClock, createSeededIds, silentLogger } from '#server/base';
import { type ConfigMap, configMaps, failure, isNotFound, objectKey } from '#server/kube';
import { createInformerFactory } from './informer.ts';
import { createFakeBackend } from './testing/index.ts';

type Step =
  | { do: 'write'; name: string; label: string }
  | { do: 'delete'; name: string }
  | { do: 'disconnect' | 'reconnect' | 'compact' | 'bookmark' | 'endWatches' | 'refuse' }
  | { do: 'wait'; milliseconds: number };

const name = fc.constantFrom('a', 'b', 'c', 'd');
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant('write' as const), name, label: fc.constantFrom('x', 'y') }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('delete' as const), name }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom(
        'disconnect' as const,
        'reconnect' as const,
        'compact' as const,
        'bookmark' as const,
        'endWatches' as const,
        'refuse' as const,
      ),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('wait' as const),
      milliseconds: fc.integer({ min: 0, max: 3000 }),
    }),
  },
);

const byKey = (objects: ConfigMap[]): Map<string, ConfigMap> =>
  new Map(objects.map((object) => [objectKey(object), object]));

it.each([{}, { labelSelector: 'v=x' }])(
  'ends up equal to the server whatever happens, query %o',
  async (query) => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const clock = createManualClock();
        const backend = createFakeBackend({ clock });
        const client = backend.client();
        const factory = createInformerFactory({ client, clock, log: silentLogger, ids: createSeededIds() });
        const informer = factory.informer(configMaps, query);
        informer.addIndex('v', (object) => [object.metadata.labels?.['v'] ?? '']);

        // What a handler that only listens believes there is; it refuses impossible stories.
        const believed = new Map<string, ConfigMap>();
        informer.on({
          added(object) {
            expect(believed.has(objectKey(object))).toBe(false);
            believed.set(objectKey(object), object);
          },
          updated(old, now) {
            expect(believed.get(objectKey(now))).toBe(old);
            expect(Number(now.metadata.resourceVersion)).toBeGreaterThan(
              Number(old.metadata.resourceVersion),
            );
            expect(now.metadata.uid).toBe(old.metadata.uid);
            believed.set(objectKey(now), now);
          },
          deleted(object) {
            expect(believed.get(objectKey(object))?.metadata.uid).toBe(object.metadata.uid);
            believed.delete(objectKey(object));
          },
        });
        factory.start();

        // Writers are elsewhere: they reach the server whether or not the informer does.
        const asWriter = async (write: () => Promise<unknown>): Promise<void> => {
          const { reachable, intercept } = backend;
          const watch = backend.watch.bind(backend);
          if (!reachable) {
            backend.watch = (_request, _onEvent, onEnd) => {
              queueMicrotask(() => onEnd(failure(500, 'InternalError', 'off')));
              return { stop: () => undefined };
            };
            backend.reachable = true;
          }
          backend.intercept = undefined;
          await write();
          backend.intercept = intercept;
          backend.watch = watch;
          backend.reachable = reachable;
        };
        const run = async (one: Step): Promise<unknown> => {
          switch (one.do) {
            case 'write': {
              const object = {
                metadata: { name: one.name, namespace: 'n', labels: { v: one.label } },
                data: { at: String(backend.requests.length) },
              };
              return asWriter(() =>
                client.patch(configMaps, { namespace: 'n', name: one.name }, { type: 'apply', body: object }),
              );
            }
            case 'delete':
              return asWriter(() =>
                client.delete(configMaps, { namespace: 'n', name: one.name }).catch((error: unknown) => {
                  if (!isNotFound(error)) throw error;
                }),
              );
            case 'disconnect':
              backend.reachable = false;
              return;
            case 'reconnect':
              backend.reachable = true;
              backend.intercept = undefined;
              return;
            case 'refuse':
              backend.intercept = () => {
                throw failure(403, 'Forbidden', 'not today');
              };
              return;
            case 'compact':
              return backend.compact();
            case 'bookmark':
              return backend.sendBookmarks();
            case 'endWatches':
              return backend.endWatches();
            case 'wait':
              return clock.advance(one.milliseconds);
          }
        };
        for (const one of steps) await run(one);
        backend.reachable = true;
        backend.intercept = undefined;
        await clock.advance(120_000);

        const truth = byKey((await client.list(configMaps, query)).items);
        expect(byKey(informer.list())).toEqual(truth);
        expect(byKey(informer.list('n'))).toEqual(truth);
        expect(byKey([...informer.byIndex('v', 'x'), ...informer.byIndex('v', 'y')])).toEqual(truth);
        expect(believed).toEqual(truth);
        expect(informer.hasSynced).toBe(true);
        expect(backend.watches).toBe(1);
        factory.stop();
        await clock.advance(0);
        expect([backend.watches, clock.pending]).toEqual([0, 0]);
      }),
      { numRuns: 150 },
    );
  },
);
