import { PassThrough } from 'node:stream';
import { afterEach, describe, expect, it } from 'vitest';
import { configMaps, events, pods } from '#server/kube';
import { type NodeHarness, startNode } from '../testing/harness.ts';

let harness: NodeHarness | undefined;

afterEach(async () => {
  await harness?.stop();
  harness = undefined;
});

const running =
  (name: string) => (pod: { status?: { containerStatuses?: { name: string; ready: boolean }[] } }) =>
    pod.status?.containerStatuses?.some((status) => status.name === name && status.ready) ?? false;

describe('kubelet pods', () => {
  it('runs a pod and reports it as upstream does', async () => {
    harness = await startNode();
    await harness.createPod({
      metadata: { name: 'web' },
      spec: { containers: [{ name: 'nginx', image: 'nginx:1.29' }] },
    });
    const pod = await harness.untilPod('web', running('nginx'));
    const { status } = pod;
    expect(status).toMatchObject({
      phase: 'Running',
      hostIP: '10.0.1.11',
      podIP: '10.244.0.2',
      podIPs: [{ ip: '10.244.0.2' }],
      qosClass: 'BestEffort',
    });
    expect(status?.conditions?.map((c) => [c.type, c.status])).toEqual(
      expect.arrayContaining([
        ['PodReadyToStartContainers', 'True'],
        ['Initialized', 'True'],
        ['Ready', 'True'],
        ['ContainersReady', 'True'],
        ['PodScheduled', 'True'],
      ]),
    );
    expect(status?.containerStatuses?.[0]).toMatchObject({
      image: 'docker.io/library/nginx:1.29',
      imageID: expect.stringMatching(/^docker\.io\/library\/nginx@sha256:[0-9a-f]{64}$/),
      containerID: expect.stringMatching(/^containerd:\/\/[0-9a-f]{64}$/),
      started: true,
      restartCount: 0,
      lastState: {},
      state: { running: { startedAt: '2026-01-01T00:00:00Z' } },
    });
    await harness.until(
      'events',
      async () =>
        (await harness!.client.list(events, {})).items.filter((event) => event.involvedObject.name === 'web')
          .length >= 4,
    );
    const told = (await harness.client.list(events, {})).items.filter(
      (event) => event.involvedObject.name === 'web',
    );
    expect(told.map((event) => [event.reason, event.message])).toEqual([
      ['Pulling', 'Pulling image "nginx:1.29"'],
      [
        'Pulled',
        expect.stringMatching(
          /^Successfully pulled image "nginx:1.29" in 0ms \(0ms including waiting\)\. Image size: \d+ bytes\.$/,
        ),
      ],
      ['Created', 'Container created'],
      ['Started', 'Container started'],
    ]);
    expect(told[0]?.involvedObject.fieldPath).toBe('spec.containers{nginx}');
  });

  it('deletes a pod with its grace period and frees its address', async () => {
    harness = await startNode();
    await harness.createPod({
      metadata: { name: 'web' },
      spec: { containers: [{ name: 'nginx', image: 'nginx:1.29' }] },
    });
    const pod = await harness.untilPod('web', running('nginx'));
    expect(harness.network.holder(pod.status?.podIP ?? '')).toEqual({ kind: 'pod', nodeName: 'worker' });
    await harness.client.delete(pods, { namespace: 'default', name: 'web' }, { gracePeriodSeconds: 30 });
    await harness.until('gone', async () => (await harness!.client.list(pods, {})).items.length === 0);
    expect(harness.network.holder(pod.status?.podIP ?? '')).toBeUndefined();
  });

  it('shows what the registry lacks and backs off', async () => {
    harness = await startNode();
    await harness.createPod({
      metadata: { name: 'bad' },
      spec: { containers: [{ name: 'c', image: 'example.com/nope:1' }] },
    });
    const first = await harness.untilPod(
      'bad',
      (pod) => pod.status?.containerStatuses?.[0]?.state?.waiting?.reason === 'ErrImagePull',
    );
    expect(first.status?.containerStatuses?.[0]?.state?.waiting?.message).toContain(
      'docker.io/library/nginx',
    );
    await harness.clock.advance(3_000);
    const second = await harness.untilPod(
      'bad',
      (pod) => pod.status?.containerStatuses?.[0]?.state?.waiting?.reason === 'ImagePullBackOff',
    );
    expect(second.status?.containerStatuses?.[0]?.state?.waiting?.message).toMatch(
      /^Back-off pulling image "example.com\/nope:1": ErrImagePull: rpc error/,
    );
  });

  it('waits for a missing ConfigMap and starts when it appears', async () => {
    harness = await startNode();
    await harness.createPod({
      metadata: { name: 'cfg' },
      spec: {
        volumes: [{ name: 'v', configMap: { name: 'settings' } }],
        containers: [
          {
            name: 'c',
            image: 'nginx:1.29',
            volumeMounts: [{ name: 'v', mountPath: '/usr/share/nginx/html' }],
          },
        ],
      },
    });
    await harness.until('FailedMount', async () =>
      (await harness!.client.list(events, {})).items.some(
        (event) =>
          event.reason === 'FailedMount' &&
          event.message === 'MountVolume.SetUp failed for volume "v" : configmap "settings" not found',
      ),
    );
    expect((await harness.pod('cfg')).status?.containerStatuses?.[0]?.state).toEqual({
      waiting: { reason: 'ContainerCreating' },
    });
    await harness.client.create(configMaps, {
      metadata: { name: 'settings', namespace: 'default' },
      data: { 'index.html': 'hello' },
    });
    await harness.untilPod('cfg', running('c'));
  });

  it('restarts a crashing container with back-off', async () => {
    harness = await startNode({
      images: [
        {
          repository: 'docker.io/lab/crash',
          tags: ['1'],
          entrypoint: ['/crash'],
          command: [],
          size: 1,
          programs: {
            '/crash': {
              run: async (process) => {
                process.stdout.write('bye\n');
                return 3;
              },
            },
          },
        },
      ],
    });
    await harness.createPod({
      metadata: { name: 'crash', uid: 'u' },
      spec: { containers: [{ name: 'c', image: 'lab/crash:1' }] },
    });
    const pod = await harness.untilPod(
      'crash',
      (p) => p.status?.containerStatuses?.[0]?.state?.waiting?.reason === 'CrashLoopBackOff',
    );
    expect(pod.status?.containerStatuses?.[0]).toMatchObject({
      restartCount: 1,
      lastState: { terminated: { exitCode: 3, reason: 'Error' } },
      state: {
        waiting: {
          message: expect.stringMatching(
            /^back-off 10s restarting failed container=c pod=crash_default\(.+\)$/,
          ),
        },
      },
    });
    expect(pod.status?.phase).toBe('Running');
    await harness.clock.advance(10_000);
    await harness.untilPod('crash', (p) => p.status?.containerStatuses?.[0]?.restartCount === 2);
  });

  it('ends a pod that completed', async () => {
    harness = await startNode({
      images: [
        {
          repository: 'docker.io/lab/once',
          tags: ['1'],
          entrypoint: ['/once'],
          command: [],
          size: 1,
          programs: { '/once': { run: async () => 0 } },
        },
      ],
    });
    const phases: (string | undefined)[] = [];
    const watch = harness.client.watch(
      pods,
      { fieldSelector: 'metadata.name=once' },
      ({ object }) => void phases.push(object.status?.phase),
      () => undefined,
    );
    await harness.createPod({
      metadata: { name: 'once' },
      spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'lab/once:1' }] },
    });
    const pod = await harness.untilPod('once', (p) => p.status?.phase === 'Succeeded');
    watch.stop();
    // A command that is done at once is never told to be running: nobody attaches to what is gone.
    expect(phases).not.toContain('Running');
    expect(pod.status?.conditions?.find((c) => c.type === 'Ready')).toMatchObject({
      status: 'False',
      reason: 'PodCompleted',
    });
    expect(pod.status?.containerStatuses?.[0]?.state?.terminated).toMatchObject({
      exitCode: 0,
      reason: 'Completed',
    });
  });

  it('serves logs', async () => {
    harness = await startNode();
    await harness.createPod({
      metadata: { name: 'web' },
      spec: { containers: [{ name: 'nginx', image: 'nginx:1.29' }] },
    });
    const pod = await harness.untilPod('web', running('nginx'));
    const chunks: Buffer[] = [];
    for await (const chunk of await harness.kubelet.api.logs(
      { namespace: 'default', name: 'web', uid: pod.metadata.uid ?? '' },
      'nginx',
      { tailLines: 1, timestamps: true },
      new AbortController().signal,
    ))
      chunks.push(Buffer.from(chunk));
    expect(Buffer.concat(chunks).toString()).toBe(
      '2026-01-01T00:00:00.000000000Z 2026/01/01 00:00:00 [notice] 1#1: start worker processes\n',
    );
  });

  it('shows its main process and the kernel of its machine, and tar tells what it cannot do', async () => {
    harness = await startNode();
    await harness.createPod({
      metadata: { name: 'b' },
      spec: {
        containers: [
          {
            name: 'c',
            image: 'busybox:1.37',
            command: ['sleep', '1000'],
            securityContext: { readOnlyRootFilesystem: true },
          },
        ],
      },
    });
    await harness.untilPod('b', running('c'));
    const { api } = harness.kubelet;
    const run = async (...command: string[]): Promise<string> => {
      const [stdout, stderr] = [new PassThrough(), new PassThrough()];
      const { exitCode } = await api.exec({ namespace: 'default', name: 'b', uid: '' }, 'c', command, {
        stdout,
        stderr,
        tty: false,
        signal: new AbortController().signal,
      });
      const text = (stream: PassThrough): string =>
        (stream.read() as Buffer | null)?.toString('latin1') ?? '';
      return `${exitCode} ${text(stdout).replaceAll('\0', '')}${text(stderr)}`;
    };
    expect(await run('ps')).toMatch(/^0 PID {3}USER {5}TIME {2}COMMAND\n {4}1 root {6}0:00 sleep 1000\n/);
    const kernel = (await harness.node()).status?.nodeInfo?.kernelVersion;
    expect(await run('uname', '-rm')).toBe(`0 ${kernel} x86_64\n`);
    expect(await run('tar', '-xmf', '-', '-C', '/no/such')).toBe(
      "1 tar: can't change directory to '/no/such': No such file or directory\n",
    );
    expect(await run('tar', 'cf', '-', '/nope')).toBe(
      "1 tar: removing leading '/' from member names\ntar: nope: No such file or directory\ntar: error exit delayed from previous errors\n",
    );
  });

  it('says why a command cannot be run', async () => {
    harness = await startNode();
    await harness.createPod({
      metadata: { name: 'web' },
      spec: { containers: [{ name: 'nginx', image: 'nginx:1.29' }] },
    });
    await harness.untilPod('web', running('nginx'));
    const end = await harness.kubelet.api.exec(
      { namespace: 'default', name: 'web', uid: '' },
      'nginx',
      ['nope'],
      { stdout: new PassThrough(), tty: false, signal: new AbortController().signal },
    );
    expect(end).toEqual({
      exitCode: 127,
      failure: expect.stringMatching(
        /^failed to exec in container: failed to start exec "[0-9a-f]{64}": OCI runtime exec failed: exec failed: unable to start container process: exec: "nope": executable file not found in \$PATH$/,
      ),
    });
    await expect(
      harness.kubelet.api.exec({ namespace: 'default', name: 'web', uid: '' }, 'other', ['nope'], {
        stdout: new PassThrough(),
        tty: false,
        signal: new AbortController().signal,
      }),
    ).rejects.toThrow('container not found ("other")');
  });
});
