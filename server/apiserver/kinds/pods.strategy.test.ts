import { describe, expect, it } from 'vitest';
import type { Binding, Pod, UnstructuredObject } from '#server/kube';
import { bindPod } from './pod-binding.ts';
import { podStrategy } from './pod-strategy.ts';
import {
  contextOf,
  created,
  facilities,
  kindOf,
  NOW,
  podOf,
  refusalOf,
  updated,
  workloadOf,
} from './testing/context.ts';

const asPod = (object: UnstructuredObject): Pod => object as unknown as Pod;
const bindingTo = (name: string, kind = 'Node'): Binding => ({ target: { kind, name } });

async function through(
  subresource: string,
  old: UnstructuredObject,
  change: (pod: Pod) => void,
): Promise<Pod> {
  const next = structuredClone(old);
  change(asPod(next));
  kindOf(next).strategy.defaults?.(next);
  await kindOf(next).strategy.prepareForUpdate?.(next, old, contextOf(facilities(), subresource));
  return asPod(next);
}

describe('deleting pods', () => {
  it.each<[string, Record<string, unknown>, string, number | undefined, number]>([
    ['not on a node', {}, 'Pending', undefined, 0],
    ['not on a node, though asked', {}, 'Pending', 20, 0],
    ['running', { nodeName: 'n' }, 'Running', undefined, 30],
    [
      'running with a period of its own',
      { nodeName: 'n', terminationGracePeriodSeconds: 5 },
      'Running',
      undefined,
      5,
    ],
    ['running, asked', { nodeName: 'n' }, 'Running', 2, 2],
    ['running, at once', { nodeName: 'n' }, 'Running', 0, 0],
    ['running, asked nonsense', { nodeName: 'n' }, 'Running', -7, 1],
    ['done', { nodeName: 'n' }, 'Succeeded', 20, 0],
    ['failed', { nodeName: 'n' }, 'Failed', undefined, 0],
  ])('%s', async (_, spec, phase, asked, seconds) => {
    const pod = await created(podOf(spec));
    asPod(pod).status = { phase };
    expect(podStrategy.gracePeriod?.(pod, asked)).toBe(seconds);
  });
});

describe('quality of service', () => {
  const resources = (limits: object | undefined, requests?: object): object => ({
    containers: [
      {
        name: 'c',
        image: 'i',
        resources: { ...(limits ? { limits } : {}), ...(requests ? { requests } : {}) },
      },
    ],
  });
  it.each<[string, object]>([
    ['BestEffort', {}],
    ['BestEffort', resources({ 'example.com/gpu': '1' })],
    ['Burstable', resources(undefined, { cpu: '1' })],
    ['Burstable', resources({ cpu: '1' })],
    ['Burstable', resources({ cpu: '1', memory: '1Gi' }, { cpu: '500m' })],
    ['Guaranteed', resources({ cpu: '1', memory: '1Gi' })],
    ['Guaranteed', resources({ cpu: '1', memory: '1Gi' }, { cpu: '1000m', memory: '1024Mi' })],
  ])('%s', async (expected, spec) => {
    expect(asPod(await created(podOf({ ...spec }))).status?.qosClass).toBe(expected);
  });
});

describe('binding', () => {
  it('sets the node and says the pod is scheduled', async () => {
    const pod = asPod(await created(podOf()));
    bindPod(pod, bindingTo('n'), NOW);
    expect(pod.spec.nodeName).toBe('n');
    expect(pod.status?.conditions).toEqual([
      {
        type: 'PodScheduled',
        status: 'True',
        lastProbeTime: null,
        lastTransitionTime: '2026-01-01T00:00:00Z',
      },
    ]);
  });

  it('happens once', async () => {
    const pod = asPod(await created(podOf()));
    bindPod(pod, bindingTo('n'), NOW);
    expect(() => bindPod(pod, bindingTo('m'), NOW)).toThrow(
      'Operation cannot be fulfilled on pods/binding "a": pod a is already assigned to node "n"',
    );
  });

  it('leads to nodes only', async () => {
    const pod = asPod(await created(podOf()));
    expect(() => bindPod(pod, bindingTo('n', 'Shelf'), NOW)).toThrow(
      'Binding "a" is invalid: target.kind: Unsupported value: "Shelf": supported values: "<empty>", "Node"',
    );
  });

  it('does not count as a change of the spec', async () => {
    const old = await created(podOf());
    const next = structuredClone(old);
    bindPod(asPod(next), bindingTo('n'), NOW);
    expect(podStrategy.raisesGeneration?.(next, old)).toBe(false);
  });
});

describe('ephemeral containers', () => {
  const debug = { name: 'debug', image: 'busybox' };

  it('come through their own endpoint, with defaults', async () => {
    const pod = await through('ephemeralcontainers', await created(podOf()), ({ spec }) => {
      spec.ephemeralContainers = [{ ...debug, targetContainerName: 'c' }];
    });
    expect(pod.spec.ephemeralContainers).toEqual([
      {
        ...debug,
        targetContainerName: 'c',
        imagePullPolicy: 'Always',
        resources: {},
        terminationMessagePath: '/dev/termination-log',
        terminationMessagePolicy: 'File',
      },
    ]);
  });

  it('never leave, and look at containers that are there', async () => {
    const one = await through('ephemeralcontainers', await created(podOf()), ({ spec }) => {
      spec.ephemeralContainers = [debug];
    });
    const old = one as unknown as UnstructuredObject;
    expect(
      await refusalOf(() =>
        through('ephemeralcontainers', old, ({ spec }) => delete spec.ephemeralContainers),
      ),
    ).toBe(
      'Pod "a" is invalid: spec.ephemeralContainers: Forbidden: existing ephemeral containers "debug" may not be removed\n',
    );
    const astray = (pod: Pod): void => {
      pod.spec.ephemeralContainers = [
        ...(pod.spec.ephemeralContainers ?? []),
        { name: 'd', image: 'i', targetContainerName: 'x' },
      ];
    };
    expect(await refusalOf(() => through('ephemeralcontainers', old, astray))).toBe(
      'Pod "a" is invalid: spec.ephemeralContainers[1].targetContainerName: Not found: "x"',
    );
  });

  it('do not come through the front door', async () => {
    const old = await created(podOf());
    const change = (object: UnstructuredObject): void =>
      void (asPod(object).spec.ephemeralContainers = [debug]);
    expect(await refusalOf(() => updated(old, change))).toContain(
      'spec: Forbidden: pod updates may not change fields',
    );
  });
});

describe('host network', () => {
  const spec = { hostNetwork: true, containers: [{ name: 'c', image: 'i', ports: [{ containerPort: 80 }] }] };

  it('gives pods their host ports', async () => {
    expect(asPod(await created(podOf(spec))).spec.containers[0]?.ports).toEqual([
      { containerPort: 80, hostPort: 80, protocol: 'TCP' },
    ]);
  });

  it('leaves templates without them', async () => {
    const set = await created(
      workloadOf('DaemonSet', { template: { metadata: { labels: { app: 'a' } }, spec } }),
    );
    expect(set.spec).toMatchObject({
      template: { spec: { containers: [{ ports: [{ containerPort: 80, protocol: 'TCP' }] }] } },
    });
  });
});

describe('status', () => {
  it('keeps what the status endpoint may not touch', async () => {
    const old = await created(
      podOf({}, { metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'n', uid: 'u' }] } }),
    );
    const pod = await through('status', old, (next) => {
      delete next.metadata.ownerReferences;
      next.status = { phase: 'Running', podIP: '10.0.0.1' };
    });
    expect(pod.metadata.ownerReferences).toEqual(asPod(old).metadata.ownerReferences);
    expect(pod.status).toEqual({
      phase: 'Running',
      podIP: '10.0.0.1',
      podIPs: [{ ip: '10.0.0.1' }],
      qosClass: 'BestEffort',
    });
  });
});
