import { afterEach, beforeEach, expect, it } from 'vitest';
import { createManualClock, type ManualClock } from '#server/base';
import { createClusterRoleAggregationController } from '#server/controllers/cluster-role-aggregation';
import { type Cluster, startCluster } from '#server/controllers/testing';
import { createTokenCleaner } from '#server/controllers/token-cleaner';
import { clusterRoles, events, formatTime, secrets } from '#server/kube';
import { createEventTtl } from './index.ts';

let cluster: Cluster;
let clock: ManualClock;

beforeEach(async () => {
  clock = createManualClock();
  cluster = await startCluster({ clock });
});

afterEach(() => cluster.stop());

const MINUTE = 60_000;

it('events go an hour after they last happened', async () => {
  const controller = createEventTtl({ client: cluster.admin, clock } as never);
  controller.start();
  const time = formatTime(clock.now());
  const event = (name: string) => ({
    metadata: { name, namespace: 'default' },
    involvedObject: { kind: 'Pod', namespace: 'default', name: 'web' },
    firstTimestamp: time,
    lastTimestamp: time,
    reason: 'Test',
    type: 'Normal',
  });
  await cluster.admin.create(events, event('once'));
  await cluster.admin.create(events, event('again'));
  await clock.advance(50 * MINUTE);
  await cluster.admin.patch(
    events,
    { namespace: 'default', name: 'again' },
    { type: 'merge', body: { lastTimestamp: formatTime(clock.now()), count: 2 } },
  );
  const names = async () =>
    (await cluster.admin.list(events, { namespace: 'default' })).items.map(({ metadata }) => metadata.name);
  await clock.advance(9 * MINUTE);
  expect((await names()).sort()).toEqual(['again', 'once']);
  await clock.advance(2 * MINUTE);
  await cluster.eventually(async () => expect(await names()).toEqual(['again']));
  await clock.advance(60 * MINUTE);
  await cluster.eventually(async () => expect(await names()).toEqual([]));
  expect(clock.pending).toBeLessThanOrEqual(1);
  await controller.stop();
});

it('bootstrap tokens go when they expire', async () => {
  cluster.run('token-cleaner', createTokenCleaner);
  const token = (id: string, expiration?: number) => ({
    metadata: { name: `bootstrap-token-${id}`, namespace: 'kube-system' },
    type: 'bootstrap.kubernetes.io/token',
    stringData: {
      'token-id': id,
      'token-secret': '0123456789abcdef',
      ...(expiration ? { expiration: formatTime(expiration) } : {}),
    },
  });
  await cluster.admin.create(secrets, token('aaaaaa', clock.now() + 10 * MINUTE));
  await cluster.admin.create(secrets, token('bbbbbb'));
  const names = async () =>
    (await cluster.admin.list(secrets, { namespace: 'kube-system' })).items.map(
      ({ metadata }) => metadata.name,
    );
  await clock.advance(9 * MINUTE);
  expect((await names()).sort()).toEqual(['bootstrap-token-aaaaaa', 'bootstrap-token-bbbbbb']);
  await clock.advance(2 * MINUTE);
  await cluster.eventually(async () => expect(await names()).toEqual(['bootstrap-token-bbbbbb']));
});

it('aggregated roles follow the roles they select', async () => {
  cluster.run('clusterrole-aggregation-controller', createClusterRoleAggregationController);
  const label = { 'lab.example/part': 'yes' };
  await cluster.admin.create(clusterRoles, {
    metadata: { name: 'whole' },
    aggregationRule: { clusterRoleSelectors: [{ matchLabels: label }] },
  });
  const rule = (resource: string) => ({ apiGroups: ['lab.example'], resources: [resource], verbs: ['get'] });
  await cluster.admin.create(clusterRoles, {
    metadata: { name: 'part-b', labels: label },
    rules: [rule('b'), rule('shared')],
  });
  await cluster.admin.create(clusterRoles, {
    metadata: { name: 'part-a', labels: label },
    rules: [rule('a'), rule('shared')],
  });
  const rules = (names: string[]) =>
    cluster.eventually(async () =>
      expect((await cluster.admin.get(clusterRoles, { name: 'whole' })).rules ?? []).toEqual(names.map(rule)),
    );
  await rules(['a', 'shared', 'b']);
  await cluster.admin.delete(clusterRoles, { name: 'part-a' });
  await rules(['b', 'shared']);
});
