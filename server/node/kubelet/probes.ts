import type { Readable } from 'node:stream';
import { PassThrough } from 'node:stream';
import type { Clock, Timer } from '#server/base';
import { type Container, type LifecycleHandler, type Pod, type Probe } from '#server/kube';
import { NetworkError, type NetworkNamespace } from '../contract.ts';
import type { Network } from '../network/contract.ts';
import { HttpFailure, httpRequest } from '../network/http-client.ts';
import type { RunningContainer } from '../runtime/container.ts';

export type ProbeKind = 'startup' | 'liveness' | 'readiness';
/** What of a probe's answer goes into an event. */
const MAX_OUTPUT = 4 * 1024;
/** exec output that is looked at. */
const MAX_EXEC_OUTPUT = 10 * 1024;

export interface ProbeTarget {
  readonly pod: Pod;
  readonly container: Container;
  readonly run: RunningContainer;
  readonly podIP: string;
  /** Where probes come from: the node. */
  readonly nodeNetwork: NetworkNamespace;
  readonly network: Network;
  readonly clock: Clock;
}

export interface ProbeCallbacks {
  ready(isReady: boolean): void;
  started(): void;
  /** The threshold of failures was reached: the container must be killed. */
  failed(kind: 'startup' | 'liveness'): void;
  unhealthy(kind: ProbeKind, output: string): void;
}

/** Runs a container's probes until stopped. Models pkg/kubelet/prober. */
export function startProbes(target: ProbeTarget, callbacks: ProbeCallbacks): { stop(): void } {
  const { container } = target;
  const stops: (() => void)[] = [];
  let stopped = false;
  const stop = (): void => {
    stopped = true;
    for (const one of stops) one();
  };
  const startOthers = (): void => {
    if (stopped) return;
    callbacks.started();
    if (container.readinessProbe) {
      stops.push(
        runProbe(target, 'readiness', container.readinessProbe, {
          success: () => callbacks.ready(true),
          failure: () => callbacks.ready(false),
          output: (text) => callbacks.unhealthy('readiness', text),
        }),
      );
    } else callbacks.ready(true);
    if (container.livenessProbe) {
      stops.push(
        runProbe(target, 'liveness', container.livenessProbe, {
          success: () => undefined,
          failure: () => {
            stop();
            callbacks.failed('liveness');
          },
          output: (text) => callbacks.unhealthy('liveness', text),
        }),
      );
    }
  };
  if (container.startupProbe) {
    const stopStartup = runProbe(target, 'startup', container.startupProbe, {
      success: () => {
        stopStartup();
        startOthers();
      },
      failure: () => {
        stop();
        callbacks.failed('startup');
      },
      output: (text) => callbacks.unhealthy('startup', text),
    });
    stops.push(stopStartup);
  } else startOthers();
  return { stop };
}

function runProbe(
  target: ProbeTarget,
  kind: ProbeKind,
  probe: Probe,
  on: { success(): void; failure(): void; output(text: string): void },
): () => void {
  const { clock } = target;
  const period = (probe.periodSeconds ?? 10) * 1000;
  const successes = probe.successThreshold ?? 1;
  const failures = probe.failureThreshold ?? 3;
  let timer: Timer | undefined;
  let stopped = false;
  let streak = { ok: true, count: 0 };
  const tick = async (): Promise<void> => {
    const result = await probeOnce(target, probe);
    if (stopped) return;
    if (!result.ok)
      on.output(
        `${kind === 'startup' ? 'Startup' : kind === 'liveness' ? 'Liveness' : 'Readiness'} probe ${result.error ? 'errored' : 'failed'}: ${result.output}`,
      );
    streak =
      streak.ok === result.ok ? { ok: result.ok, count: streak.count + 1 } : { ok: result.ok, count: 1 };
    if (result.ok && streak.count >= successes) on.success();
    if (!result.ok && streak.count >= failures) on.failure();
    if (!stopped) timer = clock.after(period, () => void tick());
  };
  const delay = (probe.initialDelaySeconds ?? 0) * 1000;
  // Without a delay the first probe runs in the turn after the start: a fast program is ready at once.
  if (delay > 0) timer = clock.after(delay, () => void tick());
  else setImmediate(() => void (stopped || tick()));
  return () => {
    stopped = true;
    timer?.cancel();
  };
}

interface ProbeResult {
  ok: boolean;
  output: string;
  error?: boolean;
}

async function probeOnce(target: ProbeTarget, probe: Probe): Promise<ProbeResult> {
  const timeout = (probe.timeoutSeconds ?? 1) * 1000;
  const aborter = new AbortController();
  let timer: Timer | undefined;
  const late = new Promise<ProbeResult>((resolve) => {
    timer = target.clock.after(timeout, () => {
      resolve({ ok: false, output: timeoutText(target, probe, timeout) });
      aborter.abort();
    });
  });
  try {
    return await Promise.race([late, attempt(target, probe, aborter.signal)]);
  } finally {
    timer?.cancel();
    aborter.abort();
  }
}

function timeoutText(target: ProbeTarget, probe: Probe, timeout: number): string {
  if (probe.httpGet)
    return `Get "${probeUrl(target, probe.httpGet)}": context deadline exceeded (Client.Timeout exceeded while awaiting headers)`;
  if (probe.exec)
    return `command timed out: "${(probe.exec.command ?? []).join(' ')}" timed out after ${timeout / 1000}s`;
  return `dial tcp ${target.podIP}:${portOf(target.container, probe.tcpSocket?.port ?? probe.grpc?.port)}: i/o timeout`;
}

async function attempt(target: ProbeTarget, probe: Probe, signal: AbortSignal): Promise<ProbeResult> {
  try {
    if (probe.exec) return await probeExec(target, probe.exec.command ?? [], signal);
    if (probe.httpGet) return await probeHttp(target, probe.httpGet, signal);
    const port = portOf(target.container, probe.tcpSocket?.port ?? probe.grpc?.port);
    const stream = await target.nodeNetwork.connect(probe.tcpSocket?.host ?? target.podIP, port, { signal });
    stream.destroy();
    return { ok: true, output: '' };
  } catch (error) {
    if (!(error instanceof NetworkError)) throw error;
    const port = portOf(target.container, probe.tcpSocket?.port ?? probe.grpc?.port);
    return { ok: false, output: `dial tcp ${target.podIP}:${port}: ${dialText(error)}` };
  }
}

async function probeHttp(
  target: ProbeTarget,
  get: NonNullable<Probe['httpGet']>,
  signal: AbortSignal,
): Promise<ProbeResult> {
  const host = get.host ?? target.podIP;
  const port = portOf(target.container, get.port);
  const path = get.path ?? '/';
  const url = probeUrl(target, get);
  const local = host === '127.0.0.1' || host === 'localhost';
  const health = target.network.health(local ? (target.nodeNetwork.ips[0] ?? host) : host, port);
  let answer: { status: number; body: string };
  if (health) answer = await health(path.startsWith('/') ? path : `/${path}`);
  else {
    try {
      answer = await httpRequest(target.nodeNetwork, {
        ip: host === 'localhost' ? '127.0.0.1' : host,
        port,
        tls: get.scheme === 'HTTPS',
        path: path.startsWith('/') ? path : `/${path}`,
        headers: {
          'User-Agent': 'kube-probe/1.36',
          Accept: '*/*',
          ...Object.fromEntries((get.httpHeaders ?? []).map((header) => [header.name, header.value])),
        },
        host: `${host}:${port}`,
        signal,
        limit: MAX_OUTPUT,
      });
    } catch (error) {
      if (error instanceof HttpFailure) return { ok: false, output: `Get "${url}": ${error.message}` };
      if (!(error instanceof NetworkError)) throw error;
      return { ok: false, output: `Get "${url}": dial tcp ${host}:${port}: ${dialText(error)}` };
    }
  }
  const ok = answer.status >= 200 && answer.status < 400;
  return { ok, output: ok ? answer.body : `HTTP probe failed with statuscode: ${answer.status}` };
}

function probeUrl(target: ProbeTarget, get: NonNullable<Probe['httpGet']>): string {
  const path = get.path ?? '/';
  return `${(get.scheme ?? 'HTTP').toLowerCase()}://${get.host ?? target.podIP}:${portOf(target.container, get.port)}${path.startsWith('/') ? path : `/${path}`}`;
}

async function probeExec(
  target: ProbeTarget,
  command: readonly string[],
  signal: AbortSignal,
): Promise<ProbeResult> {
  const { exitCode, output, failure } = await runCollected(target.run, command, signal);
  if (failure !== undefined)
    return {
      ok: false,
      output: `rpc error: code = Unknown desc = failed to exec in container: ${failure}`,
      error: true,
    };
  return { ok: exitCode === 0, output };
}

/** Runs a command in a container and collects what it prints. */
async function runCollected(
  run: RunningContainer,
  command: readonly string[],
  signal: AbortSignal,
): Promise<{ exitCode: number; output: string; failure?: string }> {
  const sink = new PassThrough();
  const collected = collect(sink);
  const end = await run.exec(command, { stdout: sink, stderr: sink, tty: false, signal });
  sink.end();
  return {
    exitCode: end.exitCode,
    output: await collected,
    ...(end.failure === undefined ? {} : { failure: end.failure }),
  };
}

async function collect(stream: Readable): Promise<string> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    if (size < MAX_EXEC_OUTPUT) parts.push(chunk);
    size += chunk.length;
  }
  return Buffer.concat(parts).subarray(0, MAX_EXEC_OUTPUT).toString('utf8');
}

function portOf(container: Container, port: number | string | undefined): number {
  if (typeof port === 'number') return port;
  const named = container.ports?.find((one) => one.name === port);
  return named?.containerPort ?? Number(port ?? 0);
}

/** How Go words it. */
export function dialText(error: NetworkError): string {
  const texts: Partial<Record<NetworkError['code'], string>> = {
    ECONNREFUSED: 'connect: connection refused',
    EHOSTUNREACH: 'connect: no route to host',
    ENETUNREACH: 'connect: network is unreachable',
    ETIMEDOUT: 'i/o timeout',
  };
  return texts[error.code] ?? error.message;
}

/** Runs a lifecycle hook. Resolves with what went wrong, undefined when nothing did. Models pkg/kubelet/lifecycle/handlers.go. */
export async function runHook(
  target: ProbeTarget,
  hook: LifecycleHandler,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (hook.sleep) {
    await target.clock.sleep(hook.sleep.seconds * 1000, signal);
    return undefined;
  }
  if (hook.exec) {
    const end = await runCollected(target.run, hook.exec.command ?? [], signal);
    if (end.exitCode === 0) return undefined;
    return (
      end.failure ??
      `command '${(hook.exec.command ?? []).join(' ')}' exited with ${end.exitCode}: ${end.output}`
    );
  }
  if (hook.httpGet) {
    const result = await attempt(target, { httpGet: hook.httpGet }, signal);
    return result.ok ? undefined : result.output;
  }
  return undefined;
}
