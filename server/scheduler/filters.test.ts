import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Node, type Pod, tolerates } from '#server/kube';
import { rejectionOf } from './filters.ts';
import { describeNode, podRequests } from './node-info.ts';
import { unschedulableMessage } from './verdict.ts';

function node(
  name: string,
  tweak: Partial<{
    labels: Record<string, string>;
    spec: Node['spec'];
    allocatable: Record<string, string>;
  }> = {},
): Node {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { 'kubernetes.io/hostname': name, ...tweak.labels } },
    spec: tweak.spec ?? {},
    status: { allocatable: { cpu: '2', memory: '4Gi', pods: '110', ...tweak.allocatable } },
  };
}

function pod(name: string, spec: Partial<Pod['spec']> = {}, labels: Record<string, string> = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', labels },
    spec: { containers: [{ name: 'c', image: 'nginx' }], ...spec },
  };
}

const requesting = (requests: Record<string, string>): Partial<Pod['spec']> => ({
  containers: [{ name: 'c', image: 'nginx', resources: { requests } }],
});

describe('filters', () => {
  const uninitialized = {
    key: 'node.cloudprovider.kubernetes.io/uninitialized',
    value: 'true',
    effect: 'NoSchedule',
  };
  const cases: {
    what: string;
    pod: Pod;
    node: Node;
    others?: Pod[];
    want: { reasons: string[]; helpedByPreemption: boolean } | undefined;
  }[] = [
    { what: 'a plain pod fits a plain node', pod: pod('p'), node: node('n'), want: undefined },
    {
      what: 'a taint nobody tolerates',
      pod: pod('p'),
      node: node('n', { spec: { taints: [uninitialized] } }),
      want: { reasons: ['node(s) had untolerated taint(s)'], helpedByPreemption: false },
    },
    {
      what: 'PreferNoSchedule keeps nobody away',
      pod: pod('p'),
      node: node('n', { spec: { taints: [{ ...uninitialized, effect: 'PreferNoSchedule' }] } }),
      want: undefined,
    },
    {
      what: 'an Exists toleration without key tolerates all',
      pod: pod('p', { tolerations: [{ operator: 'Exists' }] }),
      node: node('n', { spec: { taints: [uninitialized], unschedulable: true } }),
      want: undefined,
    },
    {
      what: 'a cordoned node',
      pod: pod('p'),
      node: node('n', { spec: { unschedulable: true } }),
      want: { reasons: ['node(s) were unschedulable'], helpedByPreemption: false },
    },
    {
      what: 'a nodeSelector for another host',
      pod: pod('p', { nodeSelector: { 'kubernetes.io/hostname': 'other' } }),
      node: node('n'),
      want: { reasons: ["node(s) didn't match Pod's node affinity/selector"], helpedByPreemption: false },
    },
    {
      what: 'more than is free: evicting could help',
      pod: pod('p', requesting({ cpu: '1500m' })),
      node: node('n'),
      others: [pod('o', requesting({ cpu: '1' }))],
      want: { reasons: ['Insufficient cpu'], helpedByPreemption: true },
    },
    {
      what: 'more than there is: nothing could help',
      pod: pod('p', requesting({ cpu: '3', memory: '8Gi' })),
      node: node('n'),
      want: { reasons: ['Insufficient cpu', 'Insufficient memory'], helpedByPreemption: false },
    },
    {
      what: 'a full node',
      pod: pod('p'),
      node: node('n', { allocatable: { pods: '1' } }),
      others: [pod('o')],
      want: { reasons: ['Too many pods'], helpedByPreemption: true },
    },
    {
      what: 'a host port in use',
      pod: pod('p', {
        containers: [{ name: 'c', image: 'i', ports: [{ containerPort: 80, hostPort: 80 }] }],
      }),
      node: node('n'),
      others: [
        pod('o', { containers: [{ name: 'c', image: 'i', ports: [{ containerPort: 8080, hostPort: 80 }] }] }),
      ],
      want: {
        reasons: ["node(s) didn't have free ports for the requested pod ports"],
        helpedByPreemption: true,
      },
    },
    {
      what: 'anti-affinity to a pod on the node',
      pod: pod('p', {
        affinity: {
          podAntiAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: [
              { labelSelector: { matchLabels: { app: 'a' } }, topologyKey: 'kubernetes.io/hostname' },
            ],
          },
        },
      }),
      node: node('n'),
      others: [pod('o', {}, { app: 'a' })],
      want: { reasons: ["node(s) didn't match pod anti-affinity rules"], helpedByPreemption: true },
    },
    {
      what: 'affinity to a pod that is nowhere',
      pod: pod('p', {
        affinity: {
          podAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: [
              { labelSelector: { matchLabels: { app: 'a' } }, topologyKey: 'kubernetes.io/hostname' },
            ],
          },
        },
      }),
      node: node('n'),
      want: { reasons: ["node(s) didn't match pod affinity rules"], helpedByPreemption: false },
    },
  ];
  it.each(cases)('$what', ({ pod: candidate, node: target, others = [], want }) => {
    const info = describeNode(target, others);
    expect(rejectionOf(candidate, info, [info])).toEqual(want);
  });

  it('words the verdict over all nodes', () => {
    expect(
      unschedulableMessage(3, [
        { reasons: ['node(s) had untolerated taint(s)'], helpedByPreemption: false },
        { reasons: ['Insufficient cpu', 'Insufficient memory'], helpedByPreemption: true },
        { reasons: ['Insufficient cpu'], helpedByPreemption: true },
      ]),
    ).toBe(
      '0/3 nodes are available: 1 Insufficient memory, 1 node(s) had untolerated taint(s), 2 Insufficient cpu. no new claims to deallocate, ' +
        'preemption: 0/3 nodes are available: 1 Preemption is not helpful for scheduling, 2 No preemption victims found for incoming pod.',
    );
    expect(unschedulableMessage(0, [])).toBe('no nodes available to schedule pods');
  });

  it('counts the largest init container, sidecars and overhead', () => {
    const container = (cpu: string, restartPolicy?: string): Pod['spec']['containers'][number] => ({
      name: 'c',
      image: 'i',
      resources: { requests: { cpu } },
      ...(restartPolicy ? { restartPolicy } : {}),
    });
    const big = pod('p', {
      initContainers: [container('100m', 'Always'), container('2')],
      containers: [container('500m'), container('500m')],
      overhead: { cpu: '10m' },
    });
    expect(Object.fromEntries(podRequests(big))).toEqual({ cpu: 2110n, pods: 1000n });
  });

  it('adding a taint never makes a node fit, adding a toleration never unfits it', () => {
    const key = fc.constantFrom('a', 'b');
    const value = fc.constantFrom('', 'x', 'y');
    const effect = fc.constantFrom('NoSchedule', 'PreferNoSchedule', 'NoExecute');
    const taint = fc.record({ key, value, effect });
    const toleration = fc.record({ key, value, effect, operator: fc.constantFrom('Exists', 'Equal') });
    fc.assert(
      fc.property(
        fc.array(taint),
        fc.array(toleration),
        taint,
        toleration,
        (taints, tolerations, more, extra) => {
          const fits = (ts: typeof taints, os: typeof tolerations): boolean => {
            const info = describeNode(node('n', { spec: { taints: ts } }), []);
            return rejectionOf(pod('p', { tolerations: os }), info, [info]) === undefined;
          };
          if (fits([...taints, more], tolerations)) expect(fits(taints, tolerations)).toBe(true);
          if (fits(taints, tolerations)) expect(fits(taints, [...tolerations, extra])).toBe(true);
          expect(tolerates({ operator: 'Exists' }, more)).toBe(true);
        },
      ),
    );
  });
});
