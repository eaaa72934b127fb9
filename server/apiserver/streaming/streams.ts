import type { IncomingMessage } from 'node:http';
import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { errorMessage } from '#server/base';
import { badRequest, failure, internalError, StatusError } from '#server/kube';
import { asStatusError } from '../chain.ts';
import type { ExitStatus, KubeletApi } from '../kubelet-api.ts';
import type { Operation } from '../registry/operation.ts';
import { booleanOf } from '../registry/options.ts';
import {
  type ChannelProtocol,
  type Channels,
  createChannels,
  PROTOCOLS,
  UNNAMED,
  type Wanted,
} from './channels.ts';
import { kubeletOf, type StreamEnvironment, type Target, targetOf } from './target.ts';

const MAX_FRAME_BYTES = 4 * 1024 * 1024;
const MAX_STREAMS = 1000;
const MAX_COMMAND_PARTS = 4096;
const REMEMBERED_REFUSALS = 64;

/** The stream requests (exec, attach, portforward) of one server. */
export interface Streams {
  /** `prepare` authenticates and reads the path; what it throws is answered as a Status. Never rejects. */
  upgrade(
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    prepare: () => Promise<StreamRequest>,
  ): Promise<void>;
  close(): Promise<void>;
}

export interface StreamRequest {
  op: Operation;
  parameters: URLSearchParams;
}

interface Session {
  target: Target;
  kubelet: KubeletApi;
  wanted: Wanted;
  command: string[];
  verb: 'exec' | 'attach';
}

/**
 * What a client was refused over WebSocket, it asks again over SPDY and shows the answer to that: the same words have to
 * be there again. Bounded; by user, pod and request.
 */
const refusals = new WeakMap<StreamEnvironment['chain'], Map<string, StatusError>>();

/** Models kubernetes/pkg/registry/core/pod/rest/subresources.go and the kubelet's remotecommand server. */
export function createStreams(env: StreamEnvironment): Streams {
  const server = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    maxPayload: MAX_FRAME_BYTES,
    handleProtocols: (offered) => chooseProtocol(offered)?.name ?? false,
  });
  const running = new Set<Channels>();

  const serve = async (
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    asked: StreamRequest,
  ): Promise<void> => {
    const start = env.chain.env.clock.now();
    const session = sessionOf(env, asked);
    if (request.headers.upgrade?.toLowerCase() !== 'websocket')
      throw refuseStreamPost(env, asked.op, asked.parameters);
    const protocol = protocolOf(request);
    if (running.size >= MAX_STREAMS)
      throw failure(429, 'TooManyRequests', 'too many streams are open', { retryAfterSeconds: 1 });
    const channels = createChannels(session.wanted);
    running.add(channels);
    try {
      const end = run(session, channels);
      await refusedEarly(end);
      if (socket.destroyed) {
        channels.abort();
        return;
      }
      const upgraded = await handshake(server, request, socket, head);
      channels.attach(upgraded, protocol);
      await conclude(env, channels, end, session.command);
      env.chain.note(asked.op, start, 101);
    } catch (error) {
      channels.abort();
      throw error;
    } finally {
      running.delete(channels);
    }
  };
  return {
    async upgrade(request, socket, head, prepare) {
      socket.on('error', (error) => env.log.debug({ error: errorMessage(error) }, 'a stream broke'));
      let asked: StreamRequest | undefined;
      try {
        asked = await prepare();
        await serve(request, socket, head, asked);
      } catch (error) {
        const refusal = asStatusError({ log: env.log }, asked?.op ?? {}, error);
        if (asked) env.chain.note(asked.op, env.chain.env.clock.now(), refusal.code);
        if (asked && error instanceof StatusError) rememberRefusal(env, asked, refusal);
        refuseUpgrade(socket, refusal);
      }
    },
    async close() {
      for (const channels of running) channels.abort();
      server.close();
    },
  };
}

/** Checks a stream request as far as it can be checked without running anything. Throws StatusError. */
function sessionOf(env: StreamEnvironment, { op, parameters }: StreamRequest): Session {
  const { chain } = env;
  chain.authorize(op);
  // Since v1.35 a WebSocket, though a GET, needs `create` as well.
  if (op.verb !== 'create') chain.authorize({ ...op, verb: 'create' });
  const target = targetOf(env, op);
  if (op.subresource === 'portforward') {
    throw badRequest(
      'port-forward is not offered by this server: it needs SPDY streams, and only WebSocket is offered',
    );
  }
  const wanted: Wanted = {
    stdin: booleanOf(op.query['stdin']) ?? false,
    stdout: booleanOf(op.query['stdout']) ?? false,
    stderr: booleanOf(op.query['stderr']) ?? false,
    tty: booleanOf(op.query['tty']) ?? false,
  };
  if (!wanted.stdin && !wanted.stdout && !wanted.stderr) {
    throw badRequest('you must specify at least 1 of stdin, stdout, stderr');
  }
  const command = parameters.getAll('command').slice(0, MAX_COMMAND_PARTS);
  const verb = op.subresource === 'attach' ? 'attach' : 'exec';
  if (verb === 'exec' && command.length === 0) throw badRequest('you must specify a command');
  if (target.nodeName === undefined) throw badRequest(`pod ${target.ref.name} does not have a host assigned`);
  const kubelet = kubeletOf(
    env,
    target.nodeName,
    `/${verb}/${target.ref.namespace}/${target.ref.name}/${target.container}`,
    true,
  );
  return { target, kubelet, wanted, command, verb };
}

/** The answer to a stream request that is not a WebSocket: what its own checks say, or that WebSocket is what is offered. */
export function refuseStreamPost(
  env: StreamEnvironment,
  op: Operation,
  parameters: URLSearchParams,
): StatusError {
  try {
    sessionOf(env, { op, parameters });
  } catch (error) {
    return asStatusError({ log: env.log }, op, error);
  }
  const known = refusals.get(env.chain)?.get(refusalKey({ op, parameters }));
  return (
    known ??
    badRequest('Upgrade request required: this server speaks v5.channel.k8s.io over WebSocket, not SPDY')
  );
}

function refusalKey({ op, parameters }: StreamRequest): string {
  return JSON.stringify([op.user.name, op.namespace, op.name, op.subresource, parameters.toString()]);
}

function rememberRefusal(env: StreamEnvironment, asked: StreamRequest, refusal: StatusError): void {
  let known = refusals.get(env.chain);
  if (!known) {
    known = new Map();
    refusals.set(env.chain, known);
  }
  const oldest = known.keys().next();
  if (known.size >= REMEMBERED_REFUSALS && !oldest.done) known.delete(oldest.value);
  known.set(refusalKey(asked), refusal);
}

function run(session: Session, channels: Channels): Promise<ExitStatus> {
  const { kubelet, target, command, verb } = session;
  return verb === 'exec'
    ? kubelet.exec(target.ref, target.container, command, channels.io)
    : kubelet.attach(target.ref, target.container, channels.io);
}

/** A kubelet that refuses at once (no such container, not running) is heard before the upgrade. */
async function refusedEarly(end: Promise<ExitStatus>): Promise<void> {
  const turn = new Promise<void>((resolve) => setImmediate(resolve));
  await Promise.race([end, turn]);
}

function handshake(
  server: WebSocketServer,
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): Promise<WebSocket> {
  return new Promise((resolve, reject) => {
    const gone = (): void => reject(failure(400, 'BadRequest', 'the WebSocket handshake failed'));
    socket.once('close', gone);
    server.handleUpgrade(request, socket, head, (upgraded) => {
      socket.off('close', gone);
      resolve(upgraded);
    });
  });
}

/** Waits for the end of the command and tells it: everything written before goes first. */
async function conclude(
  env: StreamEnvironment,
  channels: Channels,
  end: Promise<ExitStatus>,
  command: readonly string[],
): Promise<void> {
  try {
    const exit = await end;
    const status = statusOf(exit);
    await channels.finish(status, 'message' in status ? String(status.message) : '');
  } catch (error) {
    if (channels.io.signal.aborted) return;
    if (!(error instanceof StatusError))
      env.log.error({ err: error, command }, 'a command failed on a fault of the server');
    const refusal = error instanceof StatusError ? error : internalError(errorMessage(error));
    await channels.finish(refusal.status, refusal.message);
  }
}

/** Models the kubelet's ServeExec: exit codes and failures to start as Statuses. */
function statusOf(exit: ExitStatus): object {
  if (exit.failure !== undefined)
    return internalError(`error executing command in container: ${exit.failure}`).status;
  if (exit.exitCode === 0) return { metadata: {}, status: 'Success' };
  return {
    metadata: {},
    status: 'Failure',
    message: `command terminated with non-zero exit code: exit status ${exit.exitCode}`,
    reason: 'NonZeroExitCode',
    details: { causes: [{ reason: 'ExitCode', message: String(exit.exitCode) }] },
  };
}

function chooseProtocol(offered: Iterable<string>): ChannelProtocol | undefined {
  const names = [...offered];
  return PROTOCOLS.find(({ name }) => names.includes(name));
}

function protocolOf(request: IncomingMessage): ChannelProtocol {
  const header = request.headers['sec-websocket-protocol'];
  if (!header) return UNNAMED;
  const protocol = chooseProtocol(header.split(',').map((name) => name.trim()));
  if (protocol) return protocol;
  const names = PROTOCOLS.map(({ name }) => name).join(', ');
  throw badRequest(
    `none of the WebSocket protocols asked for (${header}) is spoken here; these are: ${names}`,
  );
}

/** A refusal before the upgrade: an HTTP answer on the bare socket. */
function refuseUpgrade(socket: Duplex, refusal: StatusError): void {
  if (socket.destroyed || !socket.writable) return;
  const body = Buffer.from(`${JSON.stringify(refusal.status)}\n`);
  const head = [
    `HTTP/1.1 ${refusal.code} ${STATUS_CODES[refusal.code] ?? 'Error'}`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    'Cache-Control: no-cache, private',
    'Connection: close',
    '',
    '',
  ].join('\r\n');
  socket.end(Buffer.concat([Buffer.from(head), body]));
}
