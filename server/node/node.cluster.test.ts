import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { silentLogger } from '#server/base';
import { createInformerFactory, type InformerFactory } from '#server/client';
import { configMaps, csiNodes, endpointSlices, nodes, type Pod, secrets, services } from '#server/kube';
import { createServiceProxy } from './network/service-proxy.ts';
import { type NodeHarness, startNode } from './testing/harness.ts';

let harness: NodeHarness;
let informers: InformerFactory;

beforeEach(async () => {
  harness = await startNode();
  informers = createInformerFactory({ client: harness.client, clock: harness.clock, log: silentLogger });
  createServiceProxy({ network: harness.network, informers, clock: harness.clock, log: silentLogger });
  await harness.kubelet.registered;
  await harness.client.create(services, {
    metadata: { name: 'kubernetes', namespace: 'default' },
    spec: { clusterIP: '10.96.0.1', ports: [{ port: 443, name: 'https' }] },
  });
});

afterEach(async () => {
  informers.stop();
  await harness.stop();
});

const ready = (pod: Pod): boolean =>
  (pod.status?.containerStatuses?.length ?? 0) > 0 &&
  (pod.status?.containerStatuses ?? []).every((status) => status.ready);

async function exec(
  pod: string,
  command: readonly string[],
  input?: string,
): Promise<{ exitCode: number; stdout: string; stderr: string; failure?: string }> {
  const stdout = new PassThrough();
  const stderr = new PassThrough();
  const stdin = input === undefined ? undefined : new PassThrough();
  stdin?.end(input);
  const texts = [stdout, stderr].map(async (stream) => {
    const parts: Buffer[] = [];
    for await (const chunk of stream as AsyncIterable<Buffer>) parts.push(chunk);
    return Buffer.concat(parts).toString();
  });
  const end = await harness.kubelet.api.exec({ namespace: 'default', name: pod, uid: '' }, 'c', command, {
    stdin,
    stdout,
    stderr,
    tty: false,
    signal: new AbortController().signal,
  });
  stdout.end();
  stderr.end();
  return { ...end, stdout: (await texts[0]) ?? '', stderr: (await texts[1]) ?? '' };
}

async function startWeb(): Promise<Pod> {
  await harness.createPod({
    metadata: { name: 'web', labels: { app: 'web' } },
    spec: {
      containers: [
        {
          name: 'c',
          image: 'nginx:1.29',
          ports: [{ containerPort: 80 }],
          readinessProbe: { httpGet: { path: '/', port: 80 } },
        },
      ],
    },
  });
  return harness.untilPod('web', ready);
}

async function startDns(): Promise<void> {
  await harness.client.create(secrets, {
    metadata: { name: 'token', namespace: 'default' },
    data: { token: Buffer.from('t').toString('base64') },
  });
  await harness.client.create(configMaps, {
    metadata: { name: 'coredns', namespace: 'default' },
    data: {
      Corefile:
        '.:53 {\n    health {\n       lameduck 5s\n    }\n    ready\n    kubernetes cluster.local in-addr.arpa ip6.arpa {\n       ttl 30\n    }\n}\n',
    },
  });
  await harness.createPod({
    metadata: { name: 'dns' },
    spec: {
      volumes: [
        { name: 'token', secret: { secretName: 'token' } },
        { name: 'config', configMap: { name: 'coredns' } },
      ],
      containers: [
        {
          name: 'c',
          image: 'registry.k8s.io/coredns/coredns:v1.13.1',
          args: ['-conf', '/etc/coredns/Corefile'],
          readinessProbe: { httpGet: { path: '/ready', port: 8181 } },
          volumeMounts: [
            { name: 'token', mountPath: '/var/run/secrets/kubernetes.io/serviceaccount' },
            { name: 'config', mountPath: '/etc/coredns' },
          ],
        },
      ],
    },
  });
  const dns = await harness.untilPod('dns', ready);
  await publish('kube-dns', '10.96.0.10', dns, [{ name: 'dns', port: 53, protocol: 'UDP' }]);
}

async function publish(
  name: string,
  clusterIP: string,
  pod: Pod | undefined,
  ports: { name: string; port: number; protocol?: string; nodePort?: number }[],
  spec: object = {},
): Promise<void> {
  await harness.client.create(services, {
    metadata: { name, namespace: 'default' },
    spec: { clusterIP, clusterIPs: [clusterIP], ports, ...spec },
  });
  await harness.client.create(endpointSlices, {
    metadata: { name: `${name}-x`, namespace: 'default', labels: { 'kubernetes.io/service-name': name } },
    addressType: 'IPv4',
    ports: ports.map((port) => ({ name: port.name, port: port.port, protocol: port.protocol ?? 'TCP' })),
    endpoints: pod
      ? [{ addresses: [pod.status?.podIP ?? ''], conditions: { ready: true }, nodeName: 'worker' }]
      : [],
  });
}

describe('a node in its cluster', () => {
  it('reaches a Service by name from another pod, and not when it has no endpoints', async () => {
    const web = await startWeb();
    await startDns();
    await publish('hello', '10.96.45.12', web, [{ name: 'http', port: 80, nodePort: 31234 }]);
    await publish('empty', '10.96.45.13', undefined, [{ name: 'http', port: 80 }]);
    await harness.createPod({
      metadata: { name: 'client' },
      spec: { containers: [{ name: 'c', image: 'curlimages/curl:8.11.0', command: ['sleep', '3600'] }] },
    });
    await harness.untilPod('client', ready);
    expect(
      await exec('client', ['curl', '-s', '-o', '/dev/null', '-w', '%{http_code}\\n', 'http://hello']),
    ).toMatchObject({ exitCode: 0, stdout: '200\n', stderr: '' });
    expect(
      await exec('client', [
        'sh',
        '-c',
        'curl -s http://hello.default.svc.cluster.local/nope | tr -d "\\r" | grep title; echo $HELLO_SERVICE_HOST',
      ]),
    ).toMatchObject({ stdout: '<head><title>404 Not Found</title></head>\n10.96.45.12\n' });
    expect((await exec('client', ['curl', '-sI', 'http://10.0.1.11:31234'])).stdout).toMatch(
      /^HTTP\/1\.1 200 OK\r\nServer: nginx\//,
    );
    expect(await exec('client', ['curl', 'http://empty'])).toMatchObject({
      exitCode: 7,
      stderr: 'curl: (7) Failed to connect to empty port 80 after 0 ms: Could not connect to server\n',
    });
    expect(await exec('client', ['curl', '-sS', 'http://nobody'])).toMatchObject({
      exitCode: 6,
      stderr: 'curl: (6) Could not resolve host: nobody\n',
    });
    expect((await exec('client', ['nslookup', 'hello'])).stdout).toContain(
      'Name:\thello.default.svc.cluster.local\nAddress: 10.96.45.12\n',
    );
    const log: string[] = [];
    for await (const chunk of await harness.kubelet.api.logs(
      { namespace: 'default', name: 'web', uid: '' },
      'c',
      {},
      new AbortController().signal,
    ))
      log.push(Buffer.from(chunk).toString());
    expect(log.join('')).toContain('"GET / HTTP/1.1" 200');
  });

  it('shows the machine below /host', async () => {
    harness.files.mkdir('/var/lib/kubelet', { recursive: true });
    harness.files.writeFile(
      '/var/lib/kubelet/kubeadm-flags.env',
      'KUBELET_KUBEADM_ARGS="--cloud-provider=external"\n',
    );
    await harness.createPod({
      metadata: { name: 'debugger' },
      spec: {
        hostNetwork: true,
        volumes: [{ name: 'host', hostPath: { path: '/' } }],
        containers: [
          {
            name: 'c',
            image: 'busybox',
            stdin: true,
            tty: true,
            volumeMounts: [{ name: 'host', mountPath: '/host' }],
          },
        ],
      },
    });
    await harness.untilPod('debugger', ready);
    expect(
      await exec('debugger', ['chroot', '/host', 'cat', '/var/lib/kubelet/kubeadm-flags.env']),
    ).toMatchObject({ exitCode: 0, stdout: 'KUBELET_KUBEADM_ARGS="--cloud-provider=external"\n' });
    expect(await exec('debugger', ['cat', '/host/var/lib/kubelet/kubeadm-flags.env'])).toMatchObject({
      exitCode: 0,
    });
  });

  it('offers an interactive shell on a terminal', async () => {
    await harness.createPod({
      metadata: { name: 'box' },
      spec: { containers: [{ name: 'c', image: 'busybox', stdin: true, tty: true }] },
    });
    await harness.untilPod('box', ready);
    const stdin = new PassThrough();
    const stdout = new PassThrough();
    let screen = '';
    stdout.on('data', (chunk: Buffer) => {
      screen += chunk.toString();
    });
    const seen = async (text: string): Promise<void> =>
      harness.until(`${JSON.stringify(text)} in ${JSON.stringify(screen)}`, async () => {
        await new Promise((resolve) => setTimeout(resolve, 1));
        return screen.includes(text);
      });
    const end = harness.kubelet.api.exec({ namespace: 'default', name: 'box', uid: '' }, 'c', ['sh'], {
      stdin,
      stdout,
      tty: true,
      signal: new AbortController().signal,
    });
    await seen('/ # ');
    stdin.write('x=5; echo $((x+1))\r');
    await seen('x=5; echo $((x+1))\r\n6\r\n/ # ');
    stdin.write('sleep 1000\r');
    await seen('sleep 1000\r\n');
    stdin.write('\x03');
    await seen('^C\r\n/ # ');
    stdin.write('echo $?\r');
    await seen('130\r\n/ # ');
    stdin.write('ech\thi\x1b[D\x1b[Dthere\r');
    await seen('\r\ntherehi\r\n');
    stdin.write('cat\r');
    await seen('/ # cat\r\n');
    stdin.write('line\r\x04');
    await seen('line\r\nline\r\n/ # ');
    stdin.write('exit 3\r');
    expect(await end).toEqual({ exitCode: 3 });
    expect(screen).toContain('130\r\n');
  });

  it('registers the CSI driver once the Node has its ids', async () => {
    await harness.client.create(secrets, {
      metadata: { name: 'token', namespace: 'default' },
      data: { token: 'dA==' },
    });
    await harness.createPod({
      metadata: { name: 'csi' },
      spec: {
        volumes: [
          { name: 'token', secret: { secretName: 'token' } },
          {
            name: 'plugin',
            hostPath: { path: '/var/lib/kubelet/plugins/csi.kubevirt.io', type: 'DirectoryOrCreate' },
          },
          {
            name: 'registration',
            hostPath: { path: '/var/lib/kubelet/plugins_registry', type: 'DirectoryOrCreate' },
          },
        ],
        containers: [
          {
            name: 'driver',
            image: 'quay.io/kubevirt/kubevirt-csi-driver:latest',
            args: ['--endpoint=unix:/csi/csi.sock', '--node-name=worker'],
            volumeMounts: [
              { name: 'plugin', mountPath: '/csi' },
              { name: 'token', mountPath: '/var/run/secrets/kubernetes.io/serviceaccount' },
            ],
          },
          {
            name: 'registrar',
            image: 'registry.k8s.io/sig-storage/csi-node-driver-registrar:v2.15.0',
            args: ['--csi-address=/csi/csi.sock'],
            volumeMounts: [
              { name: 'plugin', mountPath: '/csi' },
              { name: 'registration', mountPath: '/registration' },
            ],
          },
        ],
      },
    });
    await harness.untilPod(
      'csi',
      (pod) => pod.status?.containerStatuses?.[0]?.state?.waiting?.reason === 'CrashLoopBackOff',
    );
    await harness.client.patch(
      nodes,
      { name: 'worker' },
      {
        type: 'merge',
        body: {
          metadata: { annotations: { 'cluster.x-k8s.io/cluster-namespace': 'handson-ann' } },
          spec: { providerID: 'kubevirt://tenant-1-cp' },
        },
      },
    );
    await harness.clock.advance(10_000);
    await harness.until(
      'nodeid',
      async () =>
        (await harness.node()).metadata.annotations?.['csi.volume.kubernetes.io/nodeid'] ===
        '{"csi.kubevirt.io":"handson-ann/tenant-1-cp"}',
    );
    expect((await harness.client.get(csiNodes, { name: 'worker' })).spec.drivers).toEqual([
      { name: 'csi.kubevirt.io', nodeID: 'handson-ann/tenant-1-cp', topologyKeys: [] },
    ]);
  });
});
