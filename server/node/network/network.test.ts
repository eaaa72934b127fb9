import { describe, expect, it } from 'vitest';
import { createManualClock, silentLogger } from '#server/base';
import { createInformerFactory } from '#server/client';
import { createFakeBackend } from '#server/client/testing';
import { endpointSlices, services } from '#server/kube';
import { NetworkError } from '../contract.ts';
import type { AttachedNamespace } from './contract.ts';
import { httpRequest } from './http-client.ts';
import { createNetwork } from './network.ts';
import { createServiceProxy } from './service-proxy.ts';

const clock = createManualClock();
const failure = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'connected',
    (error: unknown) => (error instanceof NetworkError ? error.code : String(error)),
  );

/** Two nodes with a pod each; every pod answers with its address on 80. */
async function twoNodes(spec: object, endpoints: readonly { ip: string; nodeName: string }[]) {
  const backend = createFakeBackend();
  const client = backend.client();
  const network = createNetwork({ clock, log: silentLogger });
  const attach = (kind: 'node' | 'pod' | 'external', ip: string, nodeName?: string): AttachedNamespace =>
    network.attach({ kind, ips: [ip], ...(nodeName ? { nodeName } : {}) });
  const nodes = [attach('node', '10.0.1.1', 'a'), attach('node', '10.0.1.2', 'b')];
  const pods = [attach('pod', '10.244.0.2', 'a'), attach('pod', '10.244.1.2', 'b')];
  for (const pod of pods)
    pod.listen(80, ({ stream, remote }) => stream.end(`${pod.ips[0]} from ${remote.ip}`));
  await client.create(services, {
    metadata: { name: 's', namespace: 'default' },
    spec: {
      clusterIP: '10.96.0.5',
      ports: [{ name: 'http', port: 80, nodePort: 30080 }],
      type: 'NodePort',
      ...spec,
    },
  });
  await client.create(endpointSlices, {
    metadata: { name: 's-1', namespace: 'default', labels: { 'kubernetes.io/service-name': 's' } },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 80 }],
    endpoints: endpoints.map(({ ip, nodeName }) => ({
      addresses: [ip],
      nodeName,
      conditions: { ready: true },
    })),
  });
  const informers = createInformerFactory({ client, clock, log: silentLogger });
  createServiceProxy({ network, informers, clock, log: silentLogger });
  await informers.synced();
  const ask = async (from: AttachedNamespace, ip: string, port: number): Promise<string> => {
    const stream = await from.connect(ip, port);
    let text = '';
    for await (const chunk of stream as AsyncIterable<Buffer>) text += chunk.toString();
    return text.split(' ')[0] ?? '';
  };
  return { network, nodes, pods, outside: attach('external', '192.0.2.1'), ask };
}

const both = [
  { ip: '10.244.0.2', nodeName: 'a' },
  { ip: '10.244.1.2', nodeName: 'b' },
];

describe('network', () => {
  it('carries bytes both ways, with half-close and reset', async () => {
    const network = createNetwork({ clock, log: silentLogger });
    const server = network.attach({ kind: 'pod', ips: ['1.1.1.1'] });
    const client = network.attach({ kind: 'pod', ips: ['1.1.1.2'] });
    server.listen(7, ({ stream }) => void stream.pipe(stream));
    const stream = await client.connect('1.1.1.1', 7);
    stream.end(Buffer.alloc(300_000, 'x'));
    let size = 0;
    for await (const chunk of stream as AsyncIterable<Buffer>) size += chunk.length;
    expect(size).toBe(300_000);
    const open = await client.connect('1.1.1.1', 7);
    const reset = new Promise<Error>((resolve) => open.once('error', resolve));
    server.detach();
    expect(await reset).toMatchObject({ code: 'ECONNRESET' });
    expect(await failure(client.connect('1.1.1.1', 7))).toBe('EHOSTUNREACH');
  });

  it('refuses where nobody listens and refuses to bind twice', async () => {
    const network = createNetwork({ clock, log: silentLogger });
    const one = network.attach({ kind: 'pod', ips: ['1.1.1.1'] });
    expect(await failure(one.connect('127.0.0.1', 80))).toBe('ECONNREFUSED');
    one.listen(80, () => undefined);
    expect(() => one.listen(80, () => undefined)).toThrow('address already in use 0.0.0.0:80');
    expect(() => network.attach({ kind: 'pod', ips: ['1.1.1.1'] })).toThrow(NetworkError);
    expect(one.listen(0, () => undefined).port).toBeGreaterThan(32_000);
  });

  it('forwards unbound ports of a gateway', async () => {
    const network = createNetwork({ clock, log: silentLogger });
    const inner = createNetwork({ clock, log: silentLogger });
    const target = inner.attach({ kind: 'node', ips: ['10.0.1.11'], nodeName: 'vm' });
    target.listen(6443, ({ stream }) => stream.end('api'));
    const way = inner.attach({ kind: 'external', ips: ['192.0.2.9'] });
    network.attach({
      kind: 'pod',
      ips: ['10.0.1.11'],
      forward: (port) => (port === 6443 ? way.connect('10.0.1.11', port) : undefined),
    });
    const client = network.attach({ kind: 'pod', ips: ['10.0.1.12'] });
    let text = '';
    for await (const chunk of (await client.connect('10.0.1.11', 6443)) as AsyncIterable<Buffer>)
      text += chunk.toString();
    expect(text).toBe('api');
    expect(await failure(client.connect('10.0.1.11', 22))).toBe('ECONNREFUSED');
  });
});

describe('service proxy', () => {
  it('spreads over the endpoints, from pods, nodes and outside', async () => {
    const { ask, pods, nodes, outside } = await twoNodes({}, both);
    const seen = [await ask(pods[0]!, '10.96.0.5', 80), await ask(pods[0]!, '10.96.0.5', 80)];
    expect(seen.sort()).toEqual(['10.244.0.2', '10.244.1.2']);
    expect([await ask(nodes[0]!, '127.0.0.1', 30080), await ask(outside, '10.0.1.2', 30080)].sort()).toEqual([
      '10.244.0.2',
      '10.244.1.2',
    ]);
  });

  it('rejects without endpoints', async () => {
    const { pods, outside } = await twoNodes({}, []);
    expect(await failure(pods[0]!.connect('10.96.0.5', 80))).toBe('ECONNREFUSED');
    expect(await failure(outside.connect('10.0.1.1', 30080))).toBe('ECONNREFUSED');
  });

  it('keeps external traffic on the node it came to, and drops it where there is no endpoint', async () => {
    const { ask, outside } = await twoNodes({ externalTrafficPolicy: 'Local' }, [both[1]!]);
    expect(await ask(outside, '10.0.1.2', 30080)).toBe('10.244.1.2');
    const dropped = failure(outside.connect('10.0.1.1', 30080));
    await clock.advance(130_000);
    expect(await dropped).toBe('ETIMEDOUT');
  });

  it('keeps a client at its endpoint', async () => {
    const { ask, pods } = await twoNodes({ sessionAffinity: 'ClientIP' }, both);
    const seen = new Set<string>();
    for (let i = 0; i < 5; i += 1) seen.add(await ask(pods[0]!, '10.96.0.5', 80));
    expect(seen.size).toBe(1);
  });

  it('serves load balancer addresses inside the cluster', async () => {
    const { ask, pods } = await twoNodes({ externalIPs: ['203.0.113.7'] }, [both[0]!]);
    expect(await ask(pods[1]!, '203.0.113.7', 80)).toBe('10.244.0.2');
  });

  it('answers the health check port of a node for its own endpoints', async () => {
    const { outside } = await twoNodes(
      { externalTrafficPolicy: 'Local', healthCheckNodePort: 31999, type: 'LoadBalancer' },
      [both[1]!],
    );
    const get = async (ip: string) => {
      const answer = await httpRequest(outside, {
        ip,
        port: 31999,
        tls: false,
        path: '/',
        host: ip,
        headers: {},
        signal: new AbortController().signal,
        limit: 1000,
      });
      return [answer.status, JSON.parse(answer.body).localEndpoints];
    };
    expect([await get('10.0.1.1'), await get('10.0.1.2')]).toEqual([
      [503, 0],
      [200, 1],
    ]);
  });
});
