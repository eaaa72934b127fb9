/* eslint-disable @typescript-eslint/no-explicit-any -- answers are read as whatever they are */
import { once } from 'node:events';
import type { Writable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { failure, pods } from '#server/kube';
import type { ExitStatus, KubeletApi, StreamIo } from '../kubelet-api.ts';
import { listen, type TestListener } from '../testing/listen.ts';
import { allowPods, pod } from '../testing/objects.ts';
import { startTestServer, type TestServer } from '../testing/server.ts';

type Program = (io: StreamIo, args: readonly string[]) => Promise<ExitStatus>;

const write = (stream: Writable | undefined, data: string | Buffer): Promise<void> =>
  new Promise((resolve) => {
    if (!stream) resolve();
    else if (stream.write(data)) resolve();
    else stream.once('drain', resolve);
  });

/** Programs of the test's kubelet. */
const programs: Record<string, Program> = {
  async echo(io, args) {
    await write(io.stdout, `${args.join(' ')}\n`);
    await write(io.stderr, 'aside\n');
    return { exitCode: 0 };
  },
  exit: async (_io, args) => ({ exitCode: Number(args[0]) }),
  async big(io) {
    for (let i = 0; i < 30; i++) await write(io.stdout, Buffer.alloc(100_000, 65 + (i % 26)));
    return { exitCode: 0 };
  },
  async cat(io) {
    for await (const chunk of io.stdin ?? []) await write(io.stdout, chunk as Buffer);
    return { exitCode: 3 };
  },
  async size(io) {
    const size = await new Promise<{ width: number; height: number }>((resolve) => io.onResize?.(resolve));
    await write(io.stdout, `${size.width}x${size.height} tty=${io.tty} stderr=${io.stderr !== undefined}`);
    return { exitCode: 0 };
  },
  missing: async () => ({ exitCode: 127, failure: 'exec: "missing": executable file not found in $PATH' }),
  async wait(io) {
    waiting.started?.();
    await once(io.signal, 'abort');
    waiting.aborted?.();
    return { exitCode: 137 };
  },
};

const waiting: { started?: () => void; aborted?: () => void } = {};

const kubelet: KubeletApi = {
  async exec(_pod, container, command, io) {
    if (container === 'stopped') throw failure(404, 'NotFound', 'container not found ("stopped")');
    const program = programs[command[0] ?? ''];
    if (!program) throw failure(500, 'InternalError', `no program ${command[0]}`);
    return program(io, command.slice(1));
  },
  attach: (ref, container, io) => kubelet.exec(ref, container, ['cat'], io),
  async logs(_pod, container, options, signal) {
    return (async function* () {
      yield Buffer.from(`${container} ${JSON.stringify(options)}\n`);
      if (!options.follow) return;
      await once(signal, 'abort');
    })();
  },
  portForward: async () => {
    throw failure(500, 'InternalError', 'not in this test');
  },
};

let t: TestServer;
let http: TestListener;
const POD = '/api/v1/namespaces/default/pods/p';
const MASTER = { 'impersonate-user': 'root' };

beforeEach(async () => {
  t = await startTestServer({ kubelets: { kubelet: (node) => (node === 'on' ? kubelet : undefined) } });
  await allowPods(t.admin);
  await openDoors(t);
  http = await listen(t.server);
  const containers = ['main', 'stopped'].map((name) => ({ name, image: 'i' }));
  await t.admin.create(pods, pod('p', { nodeName: 'on', containers }));
});

afterEach(async () => {
  await http.close();
  await t.close();
});

/** Anonymous callers may do everything here: what is tested is what they get. */
async function openDoors(server: TestServer): Promise<void> {
  const bindings = {
    group: 'rbac.authorization.k8s.io',
    version: 'v1',
    kind: 'ClusterRoleBinding',
    plural: 'clusterrolebindings',
    namespaced: false,
  };
  await server.admin.create(bindings, {
    metadata: { name: 'open' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [{ kind: 'User', name: 'system:anonymous', apiGroup: 'rbac.authorization.k8s.io' }],
  } as never);
}

interface Conversation {
  socket: WebSocket;
  /** What came on each channel. */
  channels: Map<number, Buffer[]>;
  status: Promise<any>;
}

async function open(
  query: string,
  protocol: string | undefined = 'v5.channel.k8s.io',
  verb = 'exec',
): Promise<Conversation> {
  const url = `ws://127.0.0.1:${http.port}${POD}/${verb}?${query}`;
  const socket = protocol ? new WebSocket(url, [protocol]) : new WebSocket(url);
  const channels = new Map<number, Buffer[]>();
  const status = new Promise<any>((resolve) => {
    socket.on('message', (data: Buffer) => {
      const channel = data[0] ?? -1;
      const rest = data.subarray(1);
      channels.set(channel, [...(channels.get(channel) ?? []), rest]);
      if (channel === 3)
        resolve(rest.toString().startsWith('{') ? JSON.parse(rest.toString()) : rest.toString());
    });
    socket.on('close', () => resolve(undefined));
  });
  await once(socket, 'open');
  return { socket, channels, status };
}

const text = (conversation: Conversation, channel: number): string =>
  Buffer.concat(conversation.channels.get(channel) ?? []).toString();

async function refused(query: string, verb = 'exec'): Promise<{ code: number; message: string }> {
  const socket = new WebSocket(`ws://127.0.0.1:${http.port}${POD}/${verb}?${query}`, ['v5.channel.k8s.io']);
  socket.on('error', () => undefined);
  const [, reply] = await once(socket, 'unexpected-response');
  const chunks: Buffer[] = [];
  for await (const chunk of reply) chunks.push(chunk as Buffer);
  const status = JSON.parse(Buffer.concat(chunks).toString());
  return { code: reply.statusCode, message: status.message };
}

describe('exec', () => {
  it('carries output and a good end', async () => {
    const talk = await open('command=echo&command=a&command=b&container=main&stdout=true&stderr=true');
    expect(await talk.status).toEqual({ metadata: {}, status: 'Success' });
    expect([text(talk, 1), text(talk, 2)]).toEqual(['a b\n', 'aside\n']);
  });

  it('tells exit codes and what could not be started', async () => {
    expect(await (await open('command=exit&command=7&container=main&stdout=true')).status).toEqual({
      metadata: {},
      status: 'Failure',
      message: 'command terminated with non-zero exit code: exit status 7',
      reason: 'NonZeroExitCode',
      details: { causes: [{ reason: 'ExitCode', message: '7' }] },
    });
    expect(await (await open('command=missing&container=main&stdout=true')).status).toMatchObject({
      code: 500,
      message:
        'Internal error occurred: error executing command in container: exec: "missing": executable file not found in $PATH',
    });
  });

  it('cuts nothing of a large output before the end is told', async () => {
    const talk = await open('command=big&container=main&stdout=true');
    await new Promise((resolve) => setImmediate(resolve));
    talk.socket.pause();
    setImmediate(() => talk.socket.resume());
    expect(await talk.status).toMatchObject({ status: 'Success' });
    expect(text(talk, 1)).toHaveLength(3_000_000);
  });

  it('carries input until the client closes it', async () => {
    const talk = await open('command=cat&container=main&stdin=true&stdout=true');
    const input = Buffer.alloc(700_000, 'x');
    for (let at = 0; at < input.length; at += 50_000) {
      talk.socket.send(Buffer.concat([Buffer.from([0]), input.subarray(at, at + 50_000)]));
    }
    talk.socket.send(Buffer.from([255, 0]));
    expect(await talk.status).toMatchObject({ details: { causes: [{ message: '3' }] } });
    expect(text(talk, 1)).toBe(input.toString());
  });

  it('tells terminal sizes, not the empty ones', async () => {
    const talk = await open('command=size&container=main&stdin=true&stdout=true&stderr=true&tty=true');
    for (const size of ['{"Width":0,"Height":0}', 'nonsense', '{"Width":80,"Height":24}\n']) {
      talk.socket.send(Buffer.concat([Buffer.from([4]), Buffer.from(size)]));
    }
    await talk.status;
    expect(text(talk, 1)).toBe('80x24 tty=true stderr=false');
  });

  it('tells the program when the client leaves', async () => {
    const aborted = new Promise<void>((resolve) => {
      waiting.aborted = resolve;
    });
    const started = new Promise<void>((resolve) => {
      waiting.started = resolve;
    });
    const talk = await open('command=wait&container=main&stdout=true');
    await started;
    talk.socket.terminate();
    await aborted;
  });

  it.each(['v4.channel.k8s.io', 'channel.k8s.io', ''])('speaks %j', async (protocol) => {
    const talk = await open('command=exit&command=2&container=main&stdout=true', protocol || undefined);
    const status = await talk.status;
    expect(typeof status === 'string' ? status : status.message).toBe(
      'command terminated with non-zero exit code: exit status 2',
    );
  });

  it('speaks base64', async () => {
    const url = `ws://127.0.0.1:${http.port}${POD}/exec?command=echo&command=hi&container=main&stdout=true`;
    const socket = new WebSocket(url, ['base64.channel.k8s.io']);
    const [data, isBinary] = await once(socket, 'message');
    expect([isBinary, (data as Buffer).toString()]).toEqual([
      false,
      `1${Buffer.from('hi\n').toString('base64')}`,
    ]);
  });
});

describe('before the upgrade, a Status', () => {
  it.each([
    ['container=main&stdout=true', 400, 'you must specify a command'],
    ['command=x&container=main', 400, 'you must specify at least 1 of stdin, stdout, stderr'],
    [
      'command=x&stdout=true',
      400,
      'a container name must be specified for pod p, choose one of: [main stopped]',
    ],
    ['command=x&container=nope&stdout=true', 400, 'container nope is not valid for pod p'],
    ['command=x&container=stopped&stdout=true', 404, 'container not found ("stopped")'],
  ])('%s', async (query, code, message) => {
    expect(await refused(query)).toEqual({ code, message });
    const posted = await http.send('POST', `${POD}/exec?${query}`);
    expect([posted.code, posted.json().message]).toEqual([code, message]);
  });

  it('that names what is offered, over SPDY and for port-forward', async () => {
    const posted = await http.send('POST', `${POD}/exec?command=echo&container=main&stdout=true`, {
      headers: { connection: 'Upgrade', upgrade: 'SPDY/3.1' },
    });
    expect([posted.code, posted.json().message]).toEqual([
      400,
      'Upgrade request required: this server speaks v5.channel.k8s.io over WebSocket, not SPDY',
    ]);
    const forward = await http.send('POST', `${POD}/portforward`, {
      headers: { connection: 'Upgrade', upgrade: 'SPDY/3.1' },
    });
    expect([forward.code, forward.json().reason]).toEqual([400, 'BadRequest']);
  });

  it('when the caller may only look', async () => {
    const reply = await http.send('POST', `${POD}/exec?command=echo&container=main&stdout=true`, {
      headers: MASTER,
    });
    expect(reply.json().message).toBe(
      'pods "p" is forbidden: User "root" cannot create resource "pods/exec" in API group "" in the namespace "default"',
    );
  });

  it('when the machine is off', async () => {
    await t.admin.create(pods, { ...pod('off', { nodeName: 'off' }) });
    const reply = await http.send('GET', '/api/v1/namespaces/default/pods/off/log');
    expect([reply.code, reply.json().message]).toEqual([404, 'nodes "off" not found']);
  });
});

describe('log', () => {
  it('is text, with the options asked for', async () => {
    const reply = await http.send('GET', `${POD}/log?container=main&tailLines=3&timestamps=true`);
    expect([reply.code, reply.headers['content-type'], reply.text]).toEqual([
      200,
      'text/plain',
      'main {"tailLines":3,"timestamps":true}\n',
    ]);
  });

  it('follows until the client leaves', async () => {
    const stream = http.stream(`${POD}/log?container=stopped&follow=true`);
    expect(await stream.nextText(1)).toEqual(['stopped {"follow":true}']);
    stream.stop();
    await expect.poll(() => t.server.audit.recent().at(-1)?.subresource).toBe('log');
  });

  it('checks its options', async () => {
    expect((await http.send('GET', `${POD}/log?container=main&tailLines=-1`)).json()).toMatchObject({
      code: 422,
      message:
        'PodLogOptions "p" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0',
    });
  });
});
