import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Deployment, ReplicaSet } from '#server/kube';
import { proportionalSizes } from './proportions.ts';
import {
  maxSurge,
  maxUnavailable,
  newSetSize,
  shrinkOldSets,
  totalAvailable,
  totalWanted,
  wanted,
} from './strategy.ts';

interface World {
  deployment: Deployment;
  current: ReplicaSet;
  old: ReplicaSet[];
}

function set(name: string, replicas: number, available: number): ReplicaSet {
  return {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: { name },
    spec: { replicas },
    status: { replicas, availableReplicas: available },
  };
}

function deployment(replicas: number, surge: number | string, unavailable: number | string): Deployment {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web' },
    spec: {
      replicas,
      template: {},
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: surge, maxUnavailable: unavailable } },
    },
  };
}

const amount = fc.oneof(
  fc.integer({ min: 0, max: 6 }),
  fc.integer({ min: 0, max: 100 }).map((percent) => `${percent}%`),
);
const rollout = fc.record({ replicas: fc.integer({ min: 1, max: 20 }), surge: amount, unavailable: amount });

/** One look of the controller, as deployment-controller.ts takes it. */
function step({ deployment: it, current, old }: World): boolean {
  const size = newSetSize(it, [...old, current], wanted(current));
  if (size !== wanted(current)) {
    current.spec.replicas = size;
    return true;
  }
  const changes = shrinkOldSets(
    it,
    old.filter((each) => wanted(each) > 0),
    current,
  );
  for (const { set: each, size: next } of changes) {
    each.spec.replicas = next;
    // ReplicaSets delete pods that are not available first.
    each.status = { replicas: next, availableReplicas: Math.min(each.status?.availableReplicas ?? 0, next) };
  }
  return changes.length > 0;
}

it('a rollout never has more than replicas + maxSurge, never fewer available than replicas − maxUnavailable, and ends', () => {
  fc.assert(
    fc.property(
      rollout,
      fc.array(fc.nat({ max: 1 }), { maxLength: 60 }),
      ({ replicas, surge, unavailable }, luck) => {
        const it = deployment(replicas, surge, unavailable);
        const world: World = {
          deployment: it,
          current: set('new', 0, 0),
          old: [set('old', replicas, replicas)],
        };
        const all = (): ReplicaSet[] => [...world.old, world.current];
        const check = (): void => {
          expect(totalWanted(all())).toBeLessThanOrEqual(replicas + maxSurge(it));
          expect(totalAvailable(all())).toBeGreaterThanOrEqual(replicas - maxUnavailable(it));
        };
        for (let round = 0; round < 200; round++) {
          const moved = step(world);
          check();
          const { status } = world.current;
          const pending = wanted(world.current) - (status?.availableReplicas ?? 0);
          if (!moved && pending === 0) break;
          // Pods become available when they like, at last all of them.
          const lucky = luck[round] ?? 1;
          world.current.status = {
            replicas: wanted(world.current),
            availableReplicas: (status?.availableReplicas ?? 0) + Math.min(pending, lucky),
          };
          check();
        }
        expect(all().map(wanted)).toEqual([0, replicas]);
      },
    ),
  );
});

it('unhealthy old pods go first and never block a rollout', () => {
  fc.assert(
    fc.property(rollout, fc.integer({ min: 0, max: 20 }), ({ replicas, surge, unavailable }, healthy) => {
      const it = deployment(replicas, surge, unavailable);
      const available = Math.min(healthy, replicas);
      const old = set('old', replicas, available);
      const [change] = shrinkOldSets(it, [old], set('new', 0, 0));
      const size = change?.size ?? replicas;
      const lost = Math.max(0, available - size);
      expect(available - lost).toBeGreaterThanOrEqual(Math.min(available, replicas - maxUnavailable(it)));
    }),
  );
});

it('scaling in the middle of a rollout shares the change out and meets the new size exactly', () => {
  fc.assert(
    fc.property(
      rollout,
      fc.integer({ min: 0, max: 30 }),
      fc.array(fc.integer({ min: 1, max: 10 }), { minLength: 2, maxLength: 4 }),
      ({ surge, unavailable }, replicas, sizes) => {
        const it = deployment(replicas, surge, unavailable);
        const total = sizes.reduce((sum, size) => sum + size, 0);
        const sets = sizes.map((size, index) => {
          const made = set(`set-${index}`, size, size);
          made.metadata.annotations = { 'deployment.kubernetes.io/max-replicas': String(total) };
          return made;
        });
        const after = proportionalSizes(it, sets);
        expect(after.every(({ size }) => size >= 0)).toBe(true);
        const sum = after.reduce((all, { size }) => all + size, 0);
        expect(sum).toBe(replicas === 0 ? 0 : replicas + maxSurge(it));
      },
    ),
  );
});
