import { describe, expect, it, vi } from 'vitest';
import { createManualClock, createSeededIds, type Logger, silentLogger } from '#server/base';
import { type ConfigMap, configMaps, failure, type Node, nodes, type Pod, pods } from '#server/kube';
import { createInformerFactory, type Informer, InformerStoppedError } from './informer.ts';
import { createFakeBackend } from './testing/index.ts';

function setup(log: Logger = silentLogger) {
  const clock = createManualClock();
  const backend = createFakeBackend({ clock });
  const client = backend.client();
  const factory = createInformerFactory({ client, clock, log, ids: createSeededIds() });
  return { clock, backend, client, factory };
}

/** Writes down what an informer tells, as `+name`, `~name`, `-name`. */
function journal<T extends ConfigMap | Node | Pod>(informer: Informer<T>): { told: string[]; stop(): void } {
  const told: string[] = [];
  const subscription = informer.on({
    added: (object) => told.push(`+${object.metadata.name}`),
    updated: (old, now) =>
      told.push(`~${now.metadata.name} ${old.metadata.resourceVersion}>${now.metadata.resourceVersion}`),
    deleted: (object) => told.push(`-${object.metadata.name}`),
  });
  return { told, stop: () => subscription.stop() };
}

const label = (value: string) => ({ type: 'merge' as const, body: { metadata: { labels: { v: value } } } });

describe('informer', () => {
  it('lists, tells of what there is, syncs, then follows the watch synchronously', async () => {
    const { client, factory } = setup();
    await client.create(nodes, { metadata: { name: 'a' }, spec: {} });
    const informer = factory.informer(nodes);
    const { told } = journal(informer);
    expect(informer.hasSynced).toBe(false);
    factory.start();
    await factory.synced();
    expect(informer.hasSynced).toBe(true);
    expect(told).toEqual(['+a']);
    await client.create(nodes, { metadata: { name: 'b' }, spec: {} });
    await client.patch(nodes, { name: 'a' }, label('1'));
    await client.delete(nodes, { name: 'b' });
    expect(told).toEqual(['+a', '+b', '~a 1>3', '-b']);
    expect(informer.list().map((node) => node.metadata.name)).toEqual(['a']);
    expect(informer.get('a')).toBe(await client.get(nodes, { name: 'a' }));
    factory.stop();
  });

  it('is shared per collection and query, and started once', async () => {
    const { backend, factory } = setup();
    const one = factory.informer(pods, { namespace: 'n' });
    expect(factory.informer(pods, { namespace: 'n' })).toBe(one);
    expect(factory.informer(pods)).not.toBe(one);
    factory.start();
    factory.start();
    const late = factory.informer(nodes);
    factory.start();
    await factory.synced();
    expect(late.hasSynced).toBe(true);
    expect(backend.requests.map((request) => request.resource.plural)).toEqual(['pods', 'pods', 'nodes']);
    expect(backend.watches).toBe(3);
    factory.stop();
    expect(backend.watches).toBe(0);
  });

  it('sees an object come and go as its labels match the selector', async () => {
    const { client, factory } = setup();
    const { told } = journal(factory.informer(nodes, { labelSelector: 'v=1' }));
    factory.start();
    await factory.synced();
    await client.create(nodes, { metadata: { name: 'a' }, spec: {} });
    await client.patch(nodes, { name: 'a' }, label('1'));
    await client.patch(nodes, { name: 'a' }, label('2'));
    expect(told).toEqual(['+a', '-a']);
    factory.stop();
  });

  it('watches on from the last version after a lost connection, without listing again', async () => {
    const { clock, backend, client, factory } = setup();
    await client.create(nodes, { metadata: { name: 'a' }, spec: {} });
    const { told } = journal(factory.informer(nodes));
    factory.start();
    await factory.synced();
    backend.sendBookmarks();
    backend.reachable = false;
    await clock.advance(10_000);
    backend.reachable = true;
    await client.create(nodes, { metadata: { name: 'b' }, spec: {} });
    await client.delete(nodes, { name: 'a' });
    await clock.advance(60_000);
    expect(told).toEqual(['+a', '+b', '-a']);
    expect(backend.requests.filter((request) => request.verb === 'list')).toHaveLength(1);
    factory.stop();
    expect(clock.pending).toBe(0);
  });

  it('lists again after 410 and makes up the deletions it missed', async () => {
    const { clock, backend, client, factory } = setup();
    for (const name of ['a', 'b', 'c']) await client.create(nodes, { metadata: { name }, spec: {} });
    const informer = factory.informer(nodes);
    const { told } = journal(informer);
    factory.start();
    await factory.synced();
    told.length = 0;
    backend.reachable = false;
    await clock.advance(1);
    backend.reachable = true;
    await client.delete(nodes, { name: 'a' });
    await client.patch(nodes, { name: 'b' }, label('1'));
    await client.delete(nodes, { name: 'c' });
    await client.create(nodes, { metadata: { name: 'c' }, spec: {} });
    await client.create(nodes, { metadata: { name: 'd' }, spec: {} });
    backend.compact();
    await clock.advance(60_000);
    expect(told).toEqual(['~b 2>5', '-c', '+c', '+d', '-a']);
    const lists = backend.requests.filter((request) => request.verb === 'list');
    expect(lists.map((request) => request.query['resourceVersion'])).toEqual(['0', '']);
    factory.stop();
  });

  it('keeps the version of a bookmark, so that a compaction below it costs no list', async () => {
    const { clock, backend, client, factory } = setup();
    factory.informer(nodes);
    factory.start();
    await factory.synced();
    await client.create(pods, { metadata: { name: 'p', namespace: 'n' }, spec: { containers: [] } });
    backend.sendBookmarks();
    backend.compact();
    backend.endWatches();
    await clock.advance(10_000);
    expect(backend.requests.filter((request) => request.verb === 'list')).toHaveLength(1);
    expect(backend.watches).toBe(1);
    factory.stop();
  });

  it('does not spin when watches end at once or are refused', async () => {
    const { clock, backend, factory } = setup();
    factory.informer(nodes);
    factory.start();
    await factory.synced();
    let opened = 0;
    const original = backend.watch.bind(backend);
    backend.watch = (request, onEvent, onEnd) => {
      opened += 1;
      if (opened > 40) return original(request, onEvent, onEnd);
      queueMicrotask(() => onEnd(opened % 2 ? undefined : failure(403, 'Forbidden', 'no')));
      return { stop: () => undefined };
    };
    backend.endWatches();
    await clock.advance(60_000);
    expect(opened).toBeGreaterThan(3);
    expect(opened).toBeLessThan(15);
    factory.stop();
  });

  it('waits for an API server that is not there yet', async () => {
    const { clock, backend, client, factory } = setup();
    backend.reachable = false;
    const informer = factory.informer(nodes);
    factory.start();
    await clock.advance(5000);
    expect(informer.hasSynced).toBe(false);
    backend.reachable = true;
    await client.create(nodes, { metadata: { name: 'a' }, spec: {} });
    await clock.advance(20_000);
    expect(informer.hasSynced).toBe(true);
    expect(informer.list()).toHaveLength(1);
    factory.stop();
  });

  it('looks up by namespace and by index, also one added late', async () => {
    const { client, factory } = setup();
    const informer = factory.informer(pods);
    informer.addIndex('node', (pod) => (pod.spec?.nodeName ? [pod.spec.nodeName] : []));
    factory.start();
    await factory.synced();
    const create = (namespace: string, name: string, nodeName?: string) =>
      client.create(pods, {
        metadata: { namespace, name, labels: { app: name } },
        spec: { containers: [], ...(nodeName ? { nodeName } : {}) },
      });
    await create('n', 'a', 'node-1');
    await create('n', 'b');
    await create('m', 'a', 'node-1');
    informer.addIndex('app', (pod) => [pod.metadata.labels?.['app'] ?? '']);
    const names = (list: Pod[]): string[] =>
      list.map((pod) => `${pod.metadata.namespace}/${pod.metadata.name}`).sort();
    expect(names(informer.list('n'))).toEqual(['n/a', 'n/b']);
    expect(names(informer.byIndex('node', 'node-1'))).toEqual(['m/a', 'n/a']);
    expect(names(informer.byIndex('app', 'a'))).toEqual(['m/a', 'n/a']);
    await client.patch(
      pods,
      { namespace: 'n', name: 'b' },
      { type: 'merge', body: { spec: { nodeName: 'node-1' } } },
    );
    await client.delete(pods, { namespace: 'm', name: 'a' }, { gracePeriodSeconds: 0 });
    expect(names(informer.byIndex('node', 'node-1'))).toEqual(['n/a', 'n/b']);
    expect(names(informer.list('m'))).toEqual([]);
    expect(informer.byIndex('node', 'other')).toEqual([]);
    expect(() => informer.byIndex('zone', 'x')).toThrow('no index called zone');
    expect(() => informer.addIndex('app', () => [])).toThrow('two indexes called app');
    factory.stop();
  });

  it('tells late handlers what is cached before `on` returns, and stopped ones nothing', async () => {
    const { client, factory } = setup();
    const informer = factory.informer(nodes);
    factory.start();
    await factory.synced();
    await client.create(nodes, { metadata: { name: 'a' }, spec: {} });
    const first = journal(informer);
    const second = journal(informer);
    expect(first.told).toEqual(['+a']);
    first.stop();
    await client.create(nodes, { metadata: { name: 'b' }, spec: {} });
    expect([first.told, second.told]).toEqual([['+a'], ['+a', '+b']]);
    factory.stop();
  });

  it('finishes telling of one change before the next, when a handler writes', async () => {
    const { client, factory } = setup();
    const informer = factory.informer(nodes);
    const order: string[] = [];
    informer.on({
      added(node) {
        order.push(`first +${node.metadata.name}`);
        if (node.metadata.name === 'a') void client.create(nodes, { metadata: { name: 'b' }, spec: {} });
      },
    });
    informer.on({ added: (node) => order.push(`second +${node.metadata.name}`) });
    factory.start();
    await factory.synced();
    await client.create(nodes, { metadata: { name: 'a' }, spec: {} });
    expect(order).toEqual(['first +a', 'second +a', 'first +b', 'second +b']);
    factory.stop();
  });

  it('lists again when a handler brings more events than may wait', async () => {
    const { clock, backend, client, factory } = setup();
    const informer = factory.informer(configMaps);
    let writes = 0;
    informer.on({
      added(map) {
        if (map.metadata.name !== 'trigger') return;
        for (; writes < 10_002; writes++) {
          void client.create(configMaps, { metadata: { namespace: 'n', name: `m${writes}` } });
        }
      },
    });
    const { told } = journal(informer);
    factory.start();
    await factory.synced();
    await client.create(configMaps, { metadata: { namespace: 'n', name: 'trigger' } });
    await clock.advance(1000);
    expect(informer.list()).toHaveLength(10_003);
    expect([told.length, new Set(told).size]).toEqual([10_003, 10_003]);
    expect(backend.requests.filter((request) => request.verb === 'list')).toHaveLength(2);
    factory.stop();
  });

  it('survives a handler that throws, and says so', async () => {
    const log = { ...silentLogger, error: vi.fn() };
    const { client, factory } = setup(log);
    const informer = factory.informer(nodes);
    informer.on({
      added() {
        throw new TypeError('broken');
      },
    });
    const { told } = journal(informer);
    factory.start();
    await factory.synced();
    await client.create(nodes, { metadata: { name: 'a' }, spec: {} });
    expect(told).toEqual(['+a']);
    expect(log.error.mock.calls).toEqual([
      [{ resource: 'nodes', key: 'a', error: 'broken' }, 'an informer handler threw'],
    ]);
    factory.stop();
  });

  it('rejects `synced` when stopped before the first list', async () => {
    const { backend, factory } = setup();
    backend.reachable = false;
    const informer = factory.informer(nodes);
    factory.start();
    const synced = factory.synced();
    factory.stop();
    await expect(synced).rejects.toThrow(InformerStoppedError);
    await expect(informer.synced).rejects.toThrow(InformerStoppedError);
    factory.start();
    expect(backend.watches).toBe(0);
  });
});
