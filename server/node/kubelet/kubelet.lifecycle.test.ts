import { afterEach, describe, expect, it } from 'vitest';
import { configMaps, events, type Pod, pods, secrets, services } from '#server/kube';
import type { Image, Process, Program } from '../contract.ts';
import { untilStopped } from '../programs/http-server.ts';
import { type NodeHarness, startNode } from '../testing/harness.ts';

let harness: NodeHarness | undefined;

afterEach(async () => {
  await harness?.stop();
  harness = undefined;
});

/** An image whose one program is given. */
const image = (name: string, run: Program['run']): Image => ({
  repository: `docker.io/lab/${name}`,
  tags: ['1'],
  entrypoint: [`/${name}`],
  command: [],
  size: 1,
  programs: { [`/${name}`]: { run } },
});
const status = (pod: Pod, name: string) =>
  [
    ...(pod.status?.initContainerStatuses ?? []),
    ...(pod.status?.containerStatuses ?? []),
    ...(pod.status?.ephemeralContainerStatuses ?? []),
  ].find((one) => one.name === name);
const isReady = (name: string) => (pod: Pod) => status(pod, name)?.ready === true;
const serve = async (process: Process) => {
  await untilStopped(process);
  return 0;
};

describe('kubelet lifecycle', () => {
  it('runs init containers in order, sidecars beside, and the rest afterwards', async () => {
    const order: string[] = [];
    const note = (name: string, then: Program['run']) =>
      image(name, (process) => (order.push(name), then(process)));
    harness = await startNode({
      images: [
        note('one', async () => 0),
        note('side', serve),
        note('two', async () => 0),
        note('main', serve),
      ],
    });
    await harness.createPod({
      metadata: { name: 'p' },
      spec: {
        initContainers: [
          { name: 'one', image: 'lab/one:1' },
          { name: 'side', image: 'lab/side:1', restartPolicy: 'Always' },
          { name: 'two', image: 'lab/two:1' },
        ],
        containers: [{ name: 'main', image: 'lab/main:1' }],
      },
    });
    const pod = await harness.untilPod('p', isReady('main'));
    expect(order).toEqual(['one', 'side', 'two', 'main']);
    expect(
      ['one', 'side', 'two'].map((name) => [
        status(pod, name)?.ready,
        Object.keys(status(pod, name)?.state ?? {})[0],
      ]),
    ).toEqual([
      [true, 'terminated'],
      [true, 'running'],
      [true, 'terminated'],
    ]);
  });

  it('fails the pod of an init container that may not be restarted', async () => {
    harness = await startNode({ images: [image('bad', async () => 3)] });
    await harness.createPod({
      metadata: { name: 'p' },
      spec: {
        restartPolicy: 'Never',
        initContainers: [{ name: 'bad', image: 'lab/bad:1' }],
        containers: [{ name: 'main', image: 'nginx:1.29' }],
      },
    });
    const pod = await harness.untilPod('p', (one) => one.status?.phase === 'Failed');
    expect(pod.status?.conditions?.find((condition) => condition.type === 'Initialized')).toMatchObject({
      status: 'False',
      reason: 'ContainersNotInitialized',
      message: 'containers with incomplete status: [bad]',
    });
    expect(status(pod, 'main')?.state).toEqual({ waiting: { reason: 'PodInitializing' } });
  });

  it('kills what fails its liveness probe and starts it again', async () => {
    let healthy = true;
    harness = await startNode({
      images: [
        image('web', async (process) => {
          const listener = process.network.listen(8080, ({ stream }) => stream.destroy(), {
            health: () => ({ status: healthy ? 200 : 500, body: '' }),
          });
          await untilStopped(process);
          listener.close();
          healthy = true;
          return 0;
        }),
      ],
    });
    await harness.createPod({
      metadata: { name: 'p' },
      spec: {
        containers: [
          {
            name: 'c',
            image: 'lab/web:1',
            livenessProbe: { httpGet: { port: 8080, path: '/healthz' }, failureThreshold: 2 },
          },
        ],
      },
    });
    await harness.untilPod('p', isReady('c'));
    healthy = false;
    await harness.clock.advance(20_000);
    const pod = await harness.untilPod(
      'p',
      (one) => status(one, 'c')?.restartCount === 1 && isReady('c')(one),
    );
    expect(pod.status?.phase).toBe('Running');
    const told = (await harness.client.list(events, {})).items.map((event) => event.message);
    expect(told).toContain('Liveness probe failed: HTTP probe failed with statuscode: 500');
    expect(told).toContain('Container c failed liveness probe, will be restarted');
  });

  it('is not ready until its readiness probe succeeds', async () => {
    let open = false;
    harness = await startNode({
      images: [
        image('slow', async (process) => {
          process.network.listen(80, ({ stream }) => stream.destroy(), {
            health: () => ({ status: open ? 200 : 503, body: '' }),
          });
          return serve(process);
        }),
      ],
    });
    await harness.createPod({
      metadata: { name: 'p' },
      spec: {
        containers: [
          { name: 'c', image: 'lab/slow:1', readinessProbe: { httpGet: { port: 80 }, periodSeconds: 5 } },
        ],
      },
    });
    const before = await harness.untilPod('p', (pod) => status(pod, 'c')?.started === true);
    expect(before.status?.conditions?.find((condition) => condition.type === 'Ready')).toMatchObject({
      status: 'False',
      reason: 'ContainersNotReady',
      message: 'containers with unready status: [c]',
    });
    open = true;
    await harness.clock.advance(5_000);
    const after = await harness.untilPod('p', isReady('c'));
    const ready = after.status?.conditions?.find((condition) => condition.type === 'Ready');
    expect([ready?.status, ready?.reason, ready?.message]).toEqual(['True', undefined, undefined]);
  });

  it('runs the preStop hook, sends SIGTERM, and kills after the grace period', async () => {
    const seen: string[] = [];
    harness = await startNode({
      images: [
        {
          ...image('deaf', async (process) => {
            process.onSignal((signal) => seen.push(signal));
            await new Promise(() => undefined);
            return 0;
          }),
          programs: {
            '/deaf': {
              run: async (process) => {
                process.onSignal((signal) => seen.push(signal));
                await new Promise(() => undefined);
                return 0;
              },
            },
            '/bye': { run: async () => (seen.push('hook'), 0) },
          },
        },
      ],
    });
    await harness.createPod({
      metadata: { name: 'p' },
      spec: {
        containers: [
          { name: 'c', image: 'lab/deaf:1', lifecycle: { preStop: { exec: { command: ['/bye'] } } } },
        ],
      },
    });
    await harness.untilPod('p', isReady('c'));
    await harness.client.delete(pods, { namespace: 'default', name: 'p' }, { gracePeriodSeconds: 30 });
    await harness.until('SIGTERM', () => seen.includes('SIGTERM'));
    expect(seen).toEqual(['hook', 'SIGTERM']);
    expect((await harness.client.list(pods, {})).items).toHaveLength(1);
    await harness.clock.advance(30_000);
    await harness.until('gone', async () => (await harness!.client.list(pods, {})).items.length === 0);
    expect((await harness.client.list(events, {})).items.map((event) => event.message)).toContain(
      'Stopping container c',
    );
  });

  it('makes the environment of services, maps, secrets and fields', async () => {
    let env: Readonly<Record<string, string>> = {};
    let argv: readonly string[] = [];
    harness = await startNode({
      images: [
        image('env', async (process) => {
          env = process.env;
          argv = process.argv;
          return serve(process);
        }),
      ],
    });
    await harness.client.create(services, {
      metadata: { name: 'kubernetes', namespace: 'default' },
      spec: { clusterIP: '10.96.0.1', ports: [{ name: 'https', port: 443 }] },
    });
    await harness.client.create(configMaps, {
      metadata: { name: 'm', namespace: 'default' },
      data: { A: '1', B: '2' },
    });
    await harness.client.create(secrets, {
      metadata: { name: 's', namespace: 'default' },
      data: { C: Buffer.from('3').toString('base64') },
    });
    await harness.createPod({
      metadata: { name: 'p', labels: { app: 'x' } },
      spec: {
        containers: [
          {
            name: 'c',
            image: 'lab/env:1',
            args: ['$(A)-$(NO)-$$(A)'],
            envFrom: [{ configMapRef: { name: 'm' }, prefix: '' }, { secretRef: { name: 's' } }],
            env: [
              { name: 'POD', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
              { name: 'IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
              { name: 'APP', valueFrom: { fieldRef: { fieldPath: "metadata.labels['app']" } } },
              { name: 'D', value: '$(A)/$(KUBERNETES_SERVICE_HOST)' },
            ],
          },
        ],
      },
    });
    await harness.untilPod('p', isReady('c'));
    expect(env).toMatchObject({
      A: '1',
      B: '2',
      C: '3',
      POD: 'p',
      IP: '10.244.0.2',
      APP: 'x',
      D: '1/10.96.0.1',
      KUBERNETES_SERVICE_PORT: '443',
      KUBERNETES_PORT_443_TCP_ADDR: '10.96.0.1',
    });
    expect(argv).toEqual(['/env', '1-$(NO)-$(A)']);
  });

  it('says which key is missing', async () => {
    harness = await startNode();
    await harness.createPod({
      metadata: { name: 'p' },
      spec: {
        containers: [
          {
            name: 'c',
            image: 'nginx:1.29',
            env: [{ name: 'X', valueFrom: { secretKeyRef: { name: 'none', key: 'k' } } }],
          },
        ],
      },
    });
    const pod = await harness.untilPod(
      'p',
      (one) => status(one, 'c')?.state?.waiting?.reason === 'CreateContainerConfigError',
    );
    expect(status(pod, 'c')?.state?.waiting?.message).toBe('secret "none" not found');
  });

  it('brings changed secrets to the files of running containers', async () => {
    let read: () => string = () => '';
    harness = await startNode({
      images: [
        image('reader', async (process) => {
          read = () => Buffer.from(process.files.readFile('/s/k')).toString();
          return serve(process);
        }),
      ],
    });
    const encode = (text: string) => Buffer.from(text).toString('base64');
    await harness.client.create(secrets, {
      metadata: { name: 's', namespace: 'default' },
      data: { k: encode('old') },
    });
    await harness.createPod({
      metadata: { name: 'p' },
      spec: {
        volumes: [{ name: 'v', secret: { secretName: 's' } }],
        containers: [{ name: 'c', image: 'lab/reader:1', volumeMounts: [{ name: 'v', mountPath: '/s' }] }],
      },
    });
    await harness.untilPod('p', isReady('c'));
    expect(read()).toBe('old');
    await harness.client.patch(
      secrets,
      { namespace: 'default', name: 's' },
      { type: 'merge', body: { data: { k: encode('new') } } },
    );
    await harness.until('new content', () => read() === 'new');
  });

  it('adds ephemeral containers to a running pod', async () => {
    harness = await startNode({ images: [image('tool', serve)] });
    await harness.createPod({
      metadata: { name: 'p' },
      spec: { containers: [{ name: 'c', image: 'nginx:1.29' }] },
    });
    await harness.untilPod('p', isReady('c'));
    await harness.client.patch(
      pods,
      { namespace: 'default', name: 'p' },
      {
        type: 'merge',
        body: {
          spec: {
            ephemeralContainers: [{ name: 'debugger-x', image: 'lab/tool:1', targetContainerName: 'c' }],
          },
        },
      },
    );
    const pod = await harness.untilPod('p', (one) => status(one, 'debugger-x')?.state?.running !== undefined);
    expect(pod.status?.ephemeralContainerStatuses).toHaveLength(1);
  });

  it('starts the containers of its pods again after a power cut, counting it', async () => {
    harness = await startNode();
    await harness.createPod({
      metadata: { name: 'p' },
      spec: { containers: [{ name: 'c', image: 'nginx:1.29' }] },
    });
    const before = await harness.untilPod('p', isReady('c'));
    await harness.kubelet.stop({ graceful: false });
    expect((await harness.pod('p')).status).toEqual(before.status);
    await harness.kubelet.start();
    const after = await harness.untilPod(
      'p',
      (pod) => status(pod, 'c')?.restartCount === 1 && isReady('c')(pod),
    );
    expect(status(after, 'c')?.containerID).not.toBe(status(before, 'c')?.containerID);
    expect(after.status?.startTime).toBe(before.status?.startTime);
  });

  it('fails a pod that may not be restarted when its machine went down', async () => {
    harness = await startNode();
    await harness.createPod({
      metadata: { name: 'p' },
      spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'nginx:1.29' }] },
    });
    // That it runs is told only once it has run for a moment.
    await harness.until('the pod to run', async () => {
      await harness!.clock.advance(200);
      return isReady('c')(await harness!.client.get(pods, { namespace: 'default', name: 'p' }));
    });
    await harness.kubelet.stop({ graceful: false });
    await harness.kubelet.start();
    const pod = await harness.untilPod('p', (one) => one.status?.phase === 'Failed');
    expect(status(pod, 'c')?.state?.terminated).toMatchObject({ exitCode: 255, reason: 'Unknown' });
  });

  it('runs static pods while no API server answers, and tells it later', async () => {
    let started = 0;
    const manifest =
      'apiVersion: v1\nkind: Pod\nmetadata: {name: api, namespace: kube-system}\nspec: {hostNetwork: true, containers: [{name: api, image: "lab/api:1"}]}\n';
    harness = await startNode({ images: [image('api', (process) => ((started += 1), serve(process)))] });
    await harness.stop();
    harness.backend.reachable = false;
    harness.files.mkdir('/etc/kubernetes/manifests', { recursive: true });
    harness.files.writeFile('/etc/kubernetes/manifests/api.yaml', manifest);
    await harness.kubelet.start();
    await harness.until('the container', () => started === 1);
    harness.backend.reachable = true;
    await harness.clock.advance(60_000);
    await harness.until(
      'mirror',
      async () =>
        (await harness!.pod('api-worker', 'kube-system').catch(() => undefined))?.status?.phase === 'Running',
    );
    expect(started).toBe(1);
  });

  it('rejects a pod that does not fit', async () => {
    harness = await startNode();
    await harness.kubelet.registered;
    await harness.until('node known', async () => (await harness!.node()).status?.allocatable !== undefined);
    await harness.createPod({
      metadata: { name: 'p' },
      spec: { containers: [{ name: 'c', image: 'nginx:1.29', resources: { requests: { cpu: '64' } } }] },
    });
    const pod = await harness.untilPod('p', (one) => one.status?.phase === 'Failed');
    expect(pod.status).toMatchObject({
      reason: 'OutOfcpu',
      message:
        "Pod was rejected: Node didn't have enough resource: cpu, requested: 64000, used: 0, capacity: 2000",
    });
  });
});
