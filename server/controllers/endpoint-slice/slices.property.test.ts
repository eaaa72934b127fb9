import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Endpoint, EndpointSlice, Service } from '#server/kube';
import { type EndpointGroup, planSlices, SLICE_LIMIT } from './slices.ts';

const SERVICE: Service = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'web', namespace: 'default', uid: 'service', labels: { tier: 'front' } },
  spec: { clusterIP: '10.96.0.9', selector: { app: 'web' } },
};

function endpoint(index: number, ready: boolean): Endpoint {
  return {
    addresses: [`10.244.${index >> 8}.${index & 255}`],
    conditions: { ready, serving: ready, terminating: false },
    targetRef: { kind: 'Pod', namespace: 'default', name: `web-${index}`, uid: `pod-${index}` },
  };
}

const PORTS = [[{ name: '', protocol: 'TCP', port: 80 }], [{ name: '', protocol: 'TCP', port: 8080 }]];

function group(ports: number, members: readonly (readonly [number, boolean])[]): EndpointGroup {
  return {
    addressType: 'IPv4',
    ports: PORTS[ports] ?? [],
    endpoints: members.map(([index, ready]) => endpoint(index, ready)),
  };
}

/** What an API server would hold after the plan was carried out. */
function carryOut(
  existing: readonly EndpointSlice[],
  groups: EndpointGroup[],
  counter: { next: number },
): EndpointSlice[] {
  const plan = planSlices(SERVICE, existing, groups, ['IPv4'], '2026-01-01T00:00:00Z');
  const after = new Map(existing.map((slice) => [slice.metadata.name, slice]));
  for (const slice of plan.remove) after.delete(slice.metadata.name);
  for (const slice of plan.update) after.set(slice.metadata.name, slice);
  for (const slice of plan.create) {
    const name = `web-${String(counter.next++).padStart(5, '0')}`;
    after.set(name, { ...slice, metadata: { ...slice.metadata, name, uid: name } });
  }
  return [...after.values()];
}

const members = fc
  .uniqueArray(fc.tuple(fc.integer({ min: 0, max: 400 }), fc.boolean()), {
    selector: ([index]) => index,
    maxLength: 260,
  })
  .map((list) => list.map(([index, ready]) => [index, ready] as const));
const states = fc.array(fc.tuple(members, members), { minLength: 1, maxLength: 5 });

it('slices hold exactly the endpoints there are, at most a hundred each, and a second look changes nothing', () => {
  fc.assert(
    fc.property(states, (history) => {
      const counter = { next: 0 };
      let slices: EndpointSlice[] = [];
      for (const [first, second] of history) {
        const groups = [group(0, first), group(1, second)].filter(({ endpoints }) => endpoints.length > 0);
        slices = carryOut(slices, groups, counter);
        expect(slices.length).toBeGreaterThan(0);
        for (const slice of slices) expect(slice.endpoints?.length).toBeLessThanOrEqual(SLICE_LIMIT);
        for (const wanted of groups) {
          const held = slices
            .filter(({ ports }) => JSON.stringify(ports) === JSON.stringify(wanted.ports))
            .flatMap(({ endpoints }) => endpoints ?? []);
          const sorted = (list: Endpoint[]): string[] => list.map((each) => JSON.stringify(each)).sort();
          expect(sorted(held)).toEqual(sorted(wanted.endpoints));
        }
        const total = groups.reduce((sum, { endpoints }) => sum + endpoints.length, 0);
        expect(slices.flatMap(({ endpoints }) => endpoints ?? []).length).toBe(total);
        const again = planSlices(SERVICE, slices, groups, ['IPv4']);
        expect(again).toEqual({ create: [], update: [], remove: [] });
      }
    }),
    { numRuns: 60 },
  );
});

it('endpoints that stay keep their slice and their order', () => {
  const counter = { next: 0 };
  const before = carryOut(
    [],
    [
      group(0, [
        [3, true],
        [1, true],
        [2, true],
      ]),
    ],
    counter,
  );
  const after = carryOut(
    before,
    [
      group(0, [
        [1, true],
        [2, false],
        [3, true],
        [4, true],
      ]),
    ],
    counter,
  );
  expect(
    after.map(({ metadata, endpoints }) => [
      metadata.name,
      endpoints?.map(({ targetRef }) => targetRef?.name),
    ]),
  ).toEqual([['web-00000', ['web-3', 'web-1', 'web-2', 'web-4']]]);
});
