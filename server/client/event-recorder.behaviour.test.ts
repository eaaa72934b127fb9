import { describe, expect, it, vi } from 'vitest';
import { createManualClock, createSeededIds, silentLogger } from '#server/base';
import { type Event, events, failure, type KubeObject } from '#server/kube';
import { createEventRecorder } from './event-recorder.ts';
import { createFakeBackend } from './testing/index.ts';

const START = Date.UTC(2026, 0, 1);

function setup(options: { host?: string } = {}) {
  const clock = createManualClock(START);
  const backend = createFakeBackend({ clock });
  const client = backend.client();
  const log = { ...silentLogger, warn: vi.fn() };
  const recorder = createEventRecorder({
    client,
    component: 'kubelet',
    clock,
    ids: createSeededIds(),
    log,
    ...options,
  });
  const list = async (): Promise<Event[]> => {
    await recorder.flush();
    const { items } = await client.list(events);
    return [...items].sort((a, b) => Number(a.metadata.resourceVersion) - Number(b.metadata.resourceVersion));
  };
  return { clock, backend, client, log, recorder, list };
}

const pod = (name = 'p'): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'n', uid: `uid-${name}`, resourceVersion: '7' },
});

describe('event recorder', () => {
  it('writes an event as client-go does', async () => {
    const { recorder, list } = setup({ host: 'node-1' });
    recorder.event(pod(), 'Normal', 'Pulled', 'Container image already present', {
      fieldPath: 'spec.containers{c}',
      annotations: { a: 'b' },
    });
    const [event] = await list();
    const { metadata, ...rest } = event as Event;
    expect(metadata).toMatchObject({ namespace: 'n', annotations: { a: 'b' } });
    const nanos = BigInt(`0x${/^p\.([0-9a-f]+)$/.exec(metadata.name)?.[1]}`);
    expect(Number(nanos / 1_000_000n)).toBe(START);
    expect(rest).toEqual({
      apiVersion: 'v1',
      kind: 'Event',
      involvedObject: {
        kind: 'Pod',
        namespace: 'n',
        name: 'p',
        uid: 'uid-p',
        apiVersion: 'v1',
        resourceVersion: '7',
        fieldPath: 'spec.containers{c}',
      },
      reason: 'Pulled',
      message: 'Container image already present',
      source: { component: 'kubelet', host: 'node-1' },
      firstTimestamp: '2026-01-01T00:00:00Z',
      lastTimestamp: '2026-01-01T00:00:00Z',
      count: 1,
      type: 'Normal',
      reportingComponent: 'kubelet',
      reportingInstance: 'node-1',
    });
  });

  it('puts events of nodes into `default`, with the uid it was given', async () => {
    const { recorder, list } = setup();
    recorder.event(
      { apiVersion: 'v1', kind: 'Node', metadata: { name: 'node-1', uid: 'node-1' } },
      'Normal',
      'Starting',
      'Starting kubelet.',
    );
    const [event] = await list();
    expect(event?.metadata.namespace).toBe('default');
    expect(event?.involvedObject).toEqual({ kind: 'Node', name: 'node-1', uid: 'node-1', apiVersion: 'v1' });
  });

  it('counts what happens again on the one event', async () => {
    const { clock, backend, recorder, list } = setup();
    for (let i = 0; i < 3; i++) {
      recorder.event(pod(), 'Warning', 'BackOff', 'Back-off restarting failed container');
      await clock.advance(60_000);
    }
    const [event, ...others] = await list();
    expect(others).toEqual([]);
    expect(event).toMatchObject({
      count: 3,
      firstTimestamp: '2026-01-01T00:00:00Z',
      lastTimestamp: '2026-01-01T00:02:00Z',
    });
    const [, again] = backend.requests.filter(
      (request) => request.verb === 'create' || request.verb === 'patch',
    );
    expect(again).toMatchObject({
      verb: 'patch',
      contentType: 'application/strategic-merge-patch+json',
      body: {
        count: 2,
        lastTimestamp: '2026-01-01T00:01:00Z',
        message: 'Back-off restarting failed container',
      },
    });
  });

  it('begins anew, with the count so far, when the event has been deleted meanwhile', async () => {
    const { client, recorder, list } = setup();
    recorder.event(pod(), 'Normal', 'Scheduled', 'x');
    recorder.event(pod(), 'Normal', 'Scheduled', 'x');
    await recorder.flush();
    await client.deleteCollection(events, { namespace: 'n' });
    recorder.event(pod(), 'Normal', 'Scheduled', 'x');
    expect((await list()).map((event) => event.count)).toEqual([3]);
  });

  it('tells apart what differs in object, reason, type or part', async () => {
    const { recorder, list } = setup();
    recorder.event(pod('a'), 'Normal', 'R', 'm');
    recorder.event(pod('b'), 'Normal', 'R', 'm');
    recorder.event(pod('a'), 'Warning', 'R', 'm');
    recorder.event(pod('a'), 'Normal', 'Q', 'm');
    recorder.event(pod('a'), 'Normal', 'R', 'm', { fieldPath: 'spec.containers{c}' });
    const all = await list();
    expect(all.map((event) => event.count)).toEqual([1, 1, 1, 1, 1]);
    expect(new Set(all.map((event) => event.metadata.name)).size).toBe(5);
  });

  it('combines the tenth and further messages of one kind within ten minutes into one event', async () => {
    const { clock, recorder, list } = setup();
    for (let i = 1; i <= 12; i++) {
      recorder.event(pod(), 'Warning', 'Failed', `attempt ${i}`);
      await clock.advance(1000);
    }
    const all = await list();
    expect(all.map((event) => [event.message, event.count])).toEqual([
      ...Array.from({ length: 9 }, (_, i) => [`attempt ${i + 1}`, 1]),
      ['(combined from similar events): attempt 12', 3],
    ]);
    expect(all.at(-1)).toMatchObject({
      reason: 'Failed',
      source: { component: 'kubelet' },
      firstTimestamp: '2026-01-01T00:00:09Z',
      lastTimestamp: '2026-01-01T00:00:11Z',
    });
    await clock.advance(601_000);
    recorder.event(pod(), 'Warning', 'Failed', 'attempt 13');
    expect((await list()).at(-1)).toMatchObject({ message: 'attempt 13', count: 1 });
  });

  it('lets a source tell 25 things at once about an object, then one more every five minutes', async () => {
    const { clock, recorder, list } = setup();
    const tell = (times: number): void => {
      for (let i = 0; i < times; i++) recorder.event(pod(), 'Normal', `Reason${i % 2}`, 'm');
    };
    const told = async (): Promise<number> =>
      (await list()).reduce((sum, event) => Math.max(sum, event.count ?? 0), 0);
    tell(40);
    expect((await list()).map((event) => event.count)).toEqual([12, 13]);
    recorder.event(pod('other'), 'Normal', 'R', 'm');
    expect(await list()).toHaveLength(3);
    await clock.advance(299_999);
    tell(1);
    expect(await told()).toBe(13);
    await clock.advance(1);
    tell(2);
    expect(await told()).toBeGreaterThan(13);
  });

  it('holds events back while there is no API server, in order, and gives up after twelve tries', async () => {
    const { clock, backend, recorder, log, list } = setup();
    backend.reachable = false;
    recorder.event(pod(), 'Normal', 'First', 'm');
    recorder.event(pod(), 'Normal', 'Second', 'm');
    await clock.advance(15_000);
    backend.reachable = true;
    await clock.advance(10_000);
    expect((await list()).map((event) => event.reason)).toEqual(['First', 'Second']);
    backend.reachable = false;
    recorder.event(pod(), 'Normal', 'Lost', 'm');
    await clock.advance(200_000);
    expect(log.warn.mock.calls).toEqual([
      [{ component: 'kubelet', reason: 'Lost' }, 'an event was given up, no API server answered'],
    ]);
    backend.reachable = true;
    recorder.event(pod(), 'Normal', 'Third', 'm');
    expect((await list()).map((event) => event.reason)).toEqual(['First', 'Second', 'Third']);
  });

  it('drops what the server refuses', async () => {
    const { backend, recorder, log, list } = setup();
    backend.intercept = (request) => {
      const event = request.body as Event | undefined;
      if (event?.reason === 'Bad') throw failure(403, 'Forbidden', 'no');
      if (event?.reason === 'Late')
        throw failure(403, 'Forbidden', 'no', { causes: [{ reason: 'NamespaceTerminating' }] });
    };
    for (const reason of ['Bad', 'Late', 'Good']) recorder.event(pod(), 'Normal', reason, 'm');
    expect((await list()).map((event) => event.reason)).toEqual(['Good']);
    expect(log.warn).toHaveBeenCalledTimes(1);
  });

  it('drops what exceeds the queue, and everything after stop', async () => {
    const { clock, backend, recorder, log, list } = setup();
    backend.reachable = false;
    for (let i = 0; i < 1100; i++) recorder.event(pod(`p${i}`), 'Normal', 'R', 'm');
    expect(log.warn).toHaveBeenCalledTimes(100);
    await clock.advance(1);
    recorder.stop();
    recorder.event(pod(), 'Normal', 'R', 'm');
    backend.reachable = true;
    expect(await list()).toEqual([]);
    expect(clock.pending).toBe(0);
  });
});
