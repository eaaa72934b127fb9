import { describe, expect, it } from 'vitest';
import { createManualClock, createSeededIds, type ManualClock, silentLogger } from '#server/base';
import { events, type Lease, leases } from '#server/kube';
import type { Client } from './contract.ts';
import { createEventRecorder } from './event-recorder.ts';
import { type LeaderElectionOptions, runLeaderElection } from './leader-election.ts';
import { createFakeBackend } from './testing/index.ts';

const START = Date.UTC(2026, 0, 1);
const lease = { namespace: 'kube-system', name: 'cloud-controller-manager' };

function candidate(
  identity: string,
  client: Client,
  clock: ManualClock,
  extra: Partial<LeaderElectionOptions> = {},
) {
  const told: string[] = [];
  const at = (): number => (clock.now() - START) / 1000;
  const election = runLeaderElection({
    client,
    clock,
    ids: createSeededIds(),
    log: silentLogger,
    lease,
    identity,
    onStarted(signal) {
      told.push(`started ${at()}`);
      signal.addEventListener('abort', () => told.push(`aborted ${at()}`));
    },
    onStopped: () => told.push(`stopped ${at()}`),
    onNewLeader: (leader) => told.push(`leader ${leader}`),
    ...extra,
  });
  return { election, told };
}

function setup() {
  const clock = createManualClock(START);
  const backend = createFakeBackend({ clock });
  const client = backend.client();
  const read = async (): Promise<Lease['spec']> => (await client.get(leases, lease)).spec;
  return { clock, backend, client, read };
}

describe('leader election', () => {
  it('takes a lease nobody holds at once, and renews it', async () => {
    const { clock, client, read } = setup();
    const { election, told } = candidate('a', client, clock);
    await clock.advance(0);
    expect(election.isLeader).toBe(true);
    expect(told).toEqual(['leader a', 'started 0']);
    expect(await read()).toEqual({
      holderIdentity: 'a',
      leaseDurationSeconds: 15,
      acquireTime: '2026-01-01T00:00:00.000000Z',
      renewTime: '2026-01-01T00:00:00.000000Z',
      leaseTransitions: 0,
    });
    await clock.advance(7000);
    expect(await read()).toMatchObject({
      acquireTime: '2026-01-01T00:00:00.000000Z',
      renewTime: '2026-01-01T00:00:06.000000Z',
      leaseTransitions: 0,
    });
    await election.stop();
    expect(told).toEqual(['leader a', 'started 0', 'aborted 7', 'stopped 7']);
    expect(clock.pending).toBe(0);
  });

  it('lets one of several lead; when it dies the next takes over once the lease has run out', async () => {
    const { clock, client, read } = setup();
    const first = candidate('a', client, clock);
    await clock.advance(1000);
    const second = candidate('b', client, clock);
    await clock.advance(60_000);
    expect([first.election.isLeader, second.election.isLeader]).toEqual([true, false]);
    await first.election.stop();
    await clock.advance(14_000);
    expect(second.election.isLeader).toBe(false);
    await clock.advance(6000);
    expect(second.election.isLeader).toBe(true);
    expect(second.told.slice(0, 2)).toEqual(['leader a', 'leader b']);
    expect(await read()).toMatchObject({ holderIdentity: 'b', leaseTransitions: 1 });
    await second.election.stop();
  });

  it('need not be waited for when it gives the lease up', async () => {
    const { clock, client, read } = setup();
    const first = candidate('a', client, clock);
    await clock.advance(1000);
    const second = candidate('b', client, clock);
    await clock.advance(0);
    await first.election.stop(true);
    expect(await read()).toMatchObject({ holderIdentity: '', leaseDurationSeconds: 1, leaseTransitions: 0 });
    await clock.advance(4400);
    expect(second.election.isLeader).toBe(true);
    await second.election.stop(true);
  });

  it('is over when the lease cannot be renewed for ten seconds', async () => {
    const { clock, backend, client } = setup();
    const { election, told } = candidate('a', client, clock);
    await clock.advance(1000);
    backend.reachable = false;
    await clock.advance(10_999);
    expect(election.isLeader).toBe(true);
    await clock.advance(1001);
    expect(election.isLeader).toBe(false);
    await election.finished;
    expect(told).toEqual(['leader a', 'started 0', 'aborted 12', 'stopped 12']);
    backend.reachable = true;
    await clock.advance(60_000);
    expect(election.isLeader).toBe(false);
    expect(clock.pending).toBe(0);
  });

  it('survives an API server that is away for less', async () => {
    const { clock, backend, client } = setup();
    const { election, told } = candidate('a', client, clock);
    await clock.advance(1000);
    backend.reachable = false;
    await clock.advance(8000);
    backend.reachable = true;
    await clock.advance(60_000);
    expect(election.isLeader).toBe(true);
    expect(told).toEqual(['leader a', 'started 0']);
    await election.stop();
  });

  it('is lost to somebody who wrote himself in, as soon as that is seen', async () => {
    const { clock, client } = setup();
    const { election, told } = candidate('a', client, clock);
    await clock.advance(1000);
    await client.patch(leases, lease, { type: 'merge', body: { spec: { holderIdentity: 'thief' } } });
    await clock.advance(20_000);
    expect(election.isLeader).toBe(false);
    expect(told).toEqual(['leader a', 'started 0', 'leader thief', 'aborted 12', 'stopped 12']);
  });

  it('survives a write of somebody else that leaves the holder alone', async () => {
    const { clock, client, read } = setup();
    const { election } = candidate('a', client, clock);
    await clock.advance(1000);
    await client.patch(leases, lease, { type: 'merge', body: { metadata: { labels: { a: 'b' } } } });
    await clock.advance(20_000);
    expect(election.isLeader).toBe(true);
    expect(await read()).toMatchObject({ holderIdentity: 'a', renewTime: '2026-01-01T00:00:20.000000Z' });
    expect((await client.get(leases, lease)).metadata.labels).toEqual({ a: 'b' });
    await election.stop();
  });

  it('believes what it sees change, not the times other clocks wrote', async () => {
    const { clock, client } = setup();
    await client.create(leases, {
      metadata: lease,
      spec: {
        holderIdentity: 'old',
        leaseDurationSeconds: 15,
        renewTime: '1999-01-01T00:00:00.000000Z',
        leaseTransitions: 4,
      },
    });
    const { election } = candidate('a', client, clock);
    await clock.advance(14_999);
    expect(election.isLeader).toBe(false);
    await clock.advance(5000);
    expect(election.isLeader).toBe(true);
    expect((await client.get(leases, lease)).spec.leaseTransitions).toBe(5);
    await election.stop();
  });

  it('stops while it waits without ever having led', async () => {
    const { clock, backend, client } = setup();
    backend.reachable = false;
    const { election, told } = candidate('a', client, clock);
    await clock.advance(5000);
    await election.stop(true);
    expect([told, clock.pending]).toEqual([[], 0]);
  });

  it('records events on the lease', async () => {
    const { clock, client } = setup();
    const recorder = createEventRecorder({
      client,
      component: 'ccm',
      clock,
      ids: createSeededIds(2),
      log: silentLogger,
    });
    const { election } = candidate('a', client, clock, { recorder });
    await clock.advance(1000);
    await election.stop();
    await recorder.flush();
    const { items } = await client.list(events, { namespace: 'kube-system' });
    expect(
      items.map((event) => [
        event.reason,
        event.message,
        event.involvedObject.kind,
        event.involvedObject.apiVersion,
      ]),
    ).toEqual([
      ['LeaderElection', 'a became leader', 'Lease', 'coordination.k8s.io/v1'],
      ['LeaderElection', 'a stopped leading', 'Lease', 'coordination.k8s.io/v1'],
    ]);
  });

  it('refuses durations that cannot work', () => {
    const { clock, client } = setup();
    expect(() => candidate('a', client, clock, { renewDeadline: 15_000 })).toThrow(
      'leaseDuration must be greater than renewDeadline',
    );
    expect(() => candidate('a', client, clock, { retryPeriod: 9000 })).toThrow(
      'renewDeadline must be greater than',
    );
  });
});
