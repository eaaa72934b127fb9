import { expect, it } from 'vitest';
import type { Pod } from '#server/kube';
import { podsToDelete } from './deletion-order.ts';

const NOW = Date.parse('2026-01-02T00:00:00Z');

function pod(
  name: string,
  rest: {
    node?: string;
    phase?: string;
    ready?: string;
    cost?: string;
    restarts?: number;
    created?: string;
  } = {},
): Pod {
  const { node = 'a', phase = 'Running', ready, cost, restarts = 0, created = '2026-01-01T00:00:00Z' } = rest;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      uid: name,
      creationTimestamp: created,
      ...(cost ? { annotations: { 'controller.kubernetes.io/pod-deletion-cost': cost } } : {}),
    },
    spec: { containers: [], ...(node ? { nodeName: node } : {}) },
    status: {
      phase,
      ...(ready ? { conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: ready }] } : {}),
      containerStatuses: [
        { name: 'main', ready: ready !== undefined, restartCount: restarts, image: '', imageID: '' },
      ],
    },
  };
}

const READY = '2026-01-01T01:00:00Z';
const order = (pods: Pod[], related = pods): string[] =>
  podsToDelete(pods, related, pods.length - 1, NOW).map(({ metadata }) => metadata.name);

it.each([
  ['unassigned before assigned', [pod('keep'), pod('go', { node: '' })], ['go']],
  ['pending before running', [pod('keep'), pod('go', { phase: 'Pending' })], ['go']],
  ['not ready before ready', [pod('keep', { ready: READY }), pod('go')], ['go']],
  ['cheap before dear', [pod('keep', { cost: '10' }), pod('go', { cost: '-1' })], ['go']],
  [
    'lately ready before long ready',
    [pod('keep', { ready: READY }), pod('go', { ready: '2026-01-01T23:59:50Z' })],
    ['go'],
  ],
  ['often restarted before steady', [pod('keep'), pod('go', { restarts: 3 })], ['go']],
  ['young before old', [pod('keep'), pod('go', { created: '2026-01-01T23:59:00Z' })], ['go']],
  [
    'crowded before alone',
    [pod('keep', { node: 'b', ready: READY }), pod('x', { ready: READY }), pod('y', { ready: READY })],
    ['x', 'y'],
  ],
])('%s', (_, pods, gone) => {
  expect(order(pods)).toEqual(gone);
  expect(order([...pods].reverse()).sort()).toEqual([...gone].sort());
});
