import { errorMessage, type Timer } from '#server/base';
import { formatTime, isNotFound, type Pod, pods } from '#server/kube';
import type { AttachedNamespace } from '../network/contract.ts';
import { admit } from './admission.ts';
import {
  backoffLeft,
  type ContainerRecord,
  createContainerRecord,
  formatDuration,
  nextBackoff,
  restartsAfter,
} from './container-record.ts';
import { startOne } from './container-start.ts';
import type { PodContext } from './pod-context.ts';
import { type PodNames, podNames } from './pod-files.ts';
import { applySpecs, createRecords, fieldPathOf, isPodOver, terminationMessage } from './pod-records.ts';
import { makePodStatus } from './pod-status.ts';
import { stopPodContainers } from './pod-stop.ts';
import { createPodVolumes, type PodVolumes } from './pod-volumes.ts';
import { type ProbeTarget, runHook, startProbes } from './probes.ts';
import { rest } from './retry.ts';
import { NETWORK_NOT_READY } from './runtime-state.ts';
import { createStatusWriter } from './status-writer.ts';

const MOUNT_RETRY = { first: 500, max: 122_000 };
const NETWORK_RETRY = 10_000;
const DELETE_RETRY = 1_000;

/** One pod on this node, from admission to its last container's end. Models pkg/kubelet/pod_workers.go and syncPod. */
export interface PodWorker {
  readonly uid: string;
  readonly pod: Pod;
  readonly records: readonly ContainerRecord[];
  /** It has ended: no container runs or will run. */
  readonly finished: boolean;
  /** A newer version of the pod. */
  update(pod: Pod): void;
  /** For a static pod: the API's mirror of it, as it comes and goes. */
  setMirror(mirror: Pod | undefined): void;
  /** Its object is gone, or its manifest: stop with the pod's grace period. Resolves when all has ended. */
  remove(): Promise<void>;
  /** The network, the node's addresses or pod CIDR may have changed. */
  wake(): void;
  /** The kubelet stops: ends everything without telling the API server. `graceMilliseconds` 0: at once. */
  shutdown(graceMilliseconds: number): Promise<void>;
}

export function createPodWorker(
  context: PodContext,
  initial: Pod,
  options: { isStatic: boolean; onFinished: () => void },
): PodWorker {
  const { clock, log, recorder } = context;
  let pod = initial;
  const uid = initial.metadata.uid ?? '';
  const stopping = new AbortController();
  const records = createRecords(initial, clock.now());
  const startTime = initial.status?.startTime ?? formatTime(clock.now());
  const writer = createStatusWriter(context);
  if (!options.isStatic) writer.setTarget(initial);
  let mirror: Pod | undefined;
  let lastStatus: Pod['status'];
  let failure: { reason: string; message: string } | undefined;
  let admitted = false;
  let volumes: PodVolumes | undefined;
  let sandbox: { network: AttachedNamespace; ips: string[]; names: PodNames; own: boolean } | undefined;
  let syncing: Promise<void> | undefined;
  let again = false;
  let timer: Timer | undefined;
  let termination: Promise<void> | undefined;
  let finished = false;
  let silent = false;
  let mountBackoff = { delay: 0, until: 0 };
  let networkToldAt = 0;
  let deadline: Timer | undefined;
  const probes = new Map<ContainerRecord, { stop(): void }>();

  const subject = (): Pick<Pod, 'apiVersion' | 'kind' | 'metadata'> => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: (options.isStatic ? mirror : undefined)?.metadata ?? pod.metadata,
  });
  const event = (
    type: 'Normal' | 'Warning',
    reason: string,
    message: string,
    record?: ContainerRecord,
  ): void => {
    if (silent) return;
    recorder.event(subject(), type, reason, message, record ? { fieldPath: fieldPathOf(record) } : {});
  };
  const hostIPs = (): string[] => context.hostIPs();
  const podIPs = (): string[] => (pod.spec.hostNetwork ? (sandbox ? hostIPs() : []) : (sandbox?.ips ?? []));

  const changed = (): void => {
    if (silent) return;
    const conditions = lastStatus?.conditions ?? [];
    const seen = [
      ...conditions,
      ...(pod.status?.conditions ?? []).filter((one) => !conditions.some((other) => other.type === one.type)),
    ];
    lastStatus = makePodStatus(
      { ...pod, status: { ...pod.status, conditions: seen } },
      {
        records,
        podIPs: podIPs(),
        hostIPs: hostIPs(),
        startTime,
        sandboxReady: sandbox !== undefined,
        failure,
        terminated: finished,
        now: clock.now(),
      },
    );
    writer.write(lastStatus);
  };
  const schedule = (milliseconds: number): void => {
    timer?.cancel();
    timer = clock.after(milliseconds, kick);
  };
  const kick = (): void => {
    if (finished || silent) return;
    again = true;
    syncing ??= loop().finally(() => {
      syncing = undefined;
    });
  };
  const loop = async (): Promise<void> => {
    while (again && !finished && !silent && !termination) {
      again = false;
      try {
        await sync();
      } catch (error) {
        if (stopping.signal.aborted) return;
        log.error({ pod: pod.metadata.name, err: errorMessage(error) }, 'pod could not be synced');
        schedule(10_000);
      }
      changed();
    }
  };

  const sync = async (): Promise<void> => {
    if (pod.metadata.deletionTimestamp !== undefined) {
      void terminate(pod.metadata.deletionGracePeriodSeconds ?? 30);
      return;
    }
    if (failure) return;
    if (!admitted && !admitOrFail()) return;
    if (isPodOver(records, pod.spec.restartPolicy ?? 'Always')) {
      void terminate(pod.spec.terminationGracePeriodSeconds ?? 30);
      return;
    }
    if (!networkReady()) return;
    if (!(await mountVolumes())) return;
    if (!prepareSandbox()) return;
    await startContainers();
  };
  const admitOrFail = (): boolean => {
    const phase = pod.status?.phase;
    if (phase === 'Succeeded' || phase === 'Failed') {
      // It ended before this kubelet started: nothing to run, nothing to say.
      finished = true;
      silent = true;
      options.onFinished();
      return false;
    }
    const rejection = admit(pod, context.node(), context.otherPods(uid));
    if (rejection) {
      failure = rejection;
      event('Warning', rejection.reason, rejection.message.replace('Pod was rejected: ', ''));
      finished = true;
      changed();
      options.onFinished();
      return false;
    }
    admitted = true;
    changed();
    const seconds = pod.spec.activeDeadlineSeconds;
    if (seconds !== undefined)
      deadline = clock.after(Math.max(0, Date.parse(startTime) + seconds * 1000 - clock.now()), onDeadline);
    return true;
  };
  const onDeadline = (): void => {
    if (finished || termination) return;
    failure = {
      reason: 'DeadlineExceeded',
      message: 'Pod was active on the node longer than the specified deadline',
    };
    event('Normal', 'DeadlineExceeded', failure.message);
    void terminate(pod.spec.terminationGracePeriodSeconds ?? 30);
  };
  const networkReady = (): boolean => {
    if (pod.spec.hostNetwork || context.runtime.networkReady) return true;
    if (clock.now() - networkToldAt >= NETWORK_RETRY || networkToldAt === 0) {
      networkToldAt = clock.now();
      event('Warning', 'NetworkNotReady', `network is not ready: ${NETWORK_NOT_READY}`);
    }
    return false;
  };
  const mountVolumes = async (): Promise<boolean> => {
    volumes ??= createPodVolumes({
      pod,
      client: context.client,
      objects: context.objects,
      hostFiles: context.hostFiles,
      clock,
      log,
      onChange: () => {
        // What was missing may be there now: no waiting for the back-off.
        mountBackoff.until = 0;
        if (mountBackoff.delay > 0) kick();
      },
    });
    if (clock.now() < mountBackoff.until) {
      schedule(mountBackoff.until - clock.now());
      return false;
    }
    const before = mountBackoff;
    const missing = await volumes.setUp();
    if (missing.size === 0) {
      mountBackoff = { delay: 0, until: 0 };
      return true;
    }
    for (const [name, reason] of missing)
      event('Warning', 'FailedMount', `MountVolume.SetUp failed for volume "${name}" : ${reason}`);
    const delay = before.delay === 0 ? MOUNT_RETRY.first : Math.min(MOUNT_RETRY.max, before.delay * 2);
    mountBackoff = { delay, until: clock.now() + delay };
    schedule(delay);
    return false;
  };
  const prepareSandbox = (): boolean => {
    if (sandbox) return true;
    const onHost = pod.spec.hostNetwork === true;
    const ip = onHost ? undefined : context.addresses.allocate();
    if (!onHost && ip === undefined) return false;
    const ips = onHost ? hostIPs() : [ip ?? ''];
    const names = podNames({
      pod,
      config: context.config,
      nodeHostname: context.hostname,
      podIPs: ips,
      hostResolver: context.hostResolver,
    });
    const network = onHost
      ? context.nodeNetwork
      : context.network.attach({ kind: 'pod', ips, nodeName: context.nodeName, resolver: names.resolver });
    sandbox = { network, ips, names, own: !onHost };
    return true;
  };

  const startContainers = async (): Promise<void> => {
    let wait: number | undefined;
    const consider = async (record: ContainerRecord): Promise<void> => {
      const left = await bringUp(record);
      if (left !== undefined) wait = wait === undefined ? left : Math.min(wait, left);
    };
    const everRan = records.some((record) => record.kind === 'main' && record.everStarted);
    for (const record of records.filter((one) => one.kind === 'init' || one.kind === 'sidecar')) {
      if (record.kind === 'init' && (everRan || record.state.terminated?.exitCode === 0)) continue;
      await consider(record);
      const done =
        record.kind === 'init' ? record.state.terminated?.exitCode === 0 : everRan || record.started;
      if (!done) {
        if (wait !== undefined) schedule(wait);
        return;
      }
    }
    for (const record of records.filter((one) => one.kind === 'main')) await consider(record);
    for (const spec of pod.spec.ephemeralContainers ?? []) {
      if (records.some((record) => record.name === spec.name)) continue;
      const { targetContainerName: _, ...container } = spec;
      records.push(createContainerRecord(container, 'ephemeral', 'ContainerCreating'));
    }
    for (const record of records.filter((one) => one.kind === 'ephemeral' && !one.everStarted))
      await consider(record);
    if (wait !== undefined) schedule(wait);
  };
  /** Starts a container that should run and does not. Returns after how long to look again. */
  const bringUp = async (record: ContainerRecord): Promise<number | undefined> => {
    if (record.run || stopping.signal.aborted || !sandbox || !volumes) return undefined;
    const ended = record.state.terminated;
    if (ended && !restartsAfter(record, pod.spec.restartPolicy ?? 'Always', ended.exitCode)) return undefined;
    if (record.everStarted) {
      const finishedAt = ended?.finishedAt ?? record.lastState?.finishedAt;
      const since = finishedAt ? Date.parse(finishedAt) : 0;
      const left = backoffLeft(
        record.restart,
        Math.max(since, record.restart.since > since ? since : 0),
        clock.now(),
      );
      if (left > 0) {
        const fullName = `${pod.metadata.name}_${pod.metadata.namespace}(${uid})`;
        if (record.state.waiting?.reason !== 'CrashLoopBackOff') {
          event(
            'Warning',
            'BackOff',
            `Back-off restarting failed container ${record.name} in pod ${fullName}`,
            record,
          );
        }
        if (ended) record.lastState = ended;
        record.state = {
          waiting: {
            reason: 'CrashLoopBackOff',
            message: `back-off ${formatDuration(record.restart.delay)} restarting failed container=${record.name} pod=${fullName}`,
          },
        };
        return left;
      }
      nextBackoff(record.restart, since, clock.now());
    }
    const result = await startOne(context, {
      pod,
      record,
      volumes,
      names: sandbox.names,
      network: sandbox.network,
      podIPs: podIPs(),
      isStatic: options.isStatic,
      signal: stopping.signal,
      event: (type, reason, message) => event(type, reason, message, record),
      changed,
    });
    if (result !== 'started') return result.retryAfter;
    afterStart(record);
    return undefined;
  };
  const probeTarget = (record: ContainerRecord): ProbeTarget | undefined =>
    record.run && {
      pod,
      container: record.spec,
      run: record.run,
      podIP: podIPs()[0] ?? '127.0.0.1',
      nodeNetwork: context.nodeNetwork,
      network: context.network,
      clock,
    };
  const afterStart = (record: ContainerRecord): void => {
    const { run } = record;
    const target = probeTarget(record);
    if (!run || !target) return;
    void run.exited.then((code) => onExit(record, code));
    const hook = record.spec.lifecycle?.postStart;
    if (hook) {
      void runHook(target, hook, stopping.signal).then(
        (problem) => {
          if (problem === undefined || record.run !== run) return;
          event('Warning', 'FailedPostStartHook', `PostStartHook failed: ${problem}`, record);
          event('Normal', 'Killing', 'FailedPostStartHook', record);
          run.kill();
        },
        () => undefined,
      );
    }
    if (record.kind === 'ephemeral' || record.kind === 'init') {
      changed();
      return;
    }
    probes.set(
      record,
      startProbes(target, {
        started: () => {
          record.started = true;
          if (record.kind === 'sidecar') kick();
          else changed();
        },
        ready: (isReady) => {
          if (record.ready === isReady || record.run !== run) return;
          record.ready = isReady;
          changed();
        },
        failed: (kind) => {
          event(
            'Normal',
            'Killing',
            `Container ${record.name} failed ${kind} probe, will be restarted`,
            record,
          );
          const grace =
            (record.spec.livenessProbe?.terminationGracePeriodSeconds ??
              pod.spec.terminationGracePeriodSeconds ??
              30) * 1000;
          run.signal('SIGTERM');
          clock.after(grace, () => run.kill());
        },
        unhealthy: (_kind, output) => event('Warning', 'Unhealthy', output, record),
      }),
    );
    changed();
  };
  const onExit = (record: ContainerRecord, exitCode: number): void => {
    probes.get(record)?.stop();
    probes.delete(record);
    const message = terminationMessage(record, exitCode, record.files);
    record.run = undefined;
    record.started = false;
    record.ready = record.kind === 'init' && exitCode === 0;
    record.state = {
      terminated: {
        exitCode,
        reason: exitCode === 0 ? 'Completed' : 'Error',
        ...(message ? { message } : {}),
        ...(record.startedAt ? { startedAt: record.startedAt } : {}),
        finishedAt: formatTime(clock.now()),
        ...(record.containerID ? { containerID: record.containerID } : {}),
      },
    };
    if (silent) return;
    changed();
    kick();
  };
  const terminate = (graceSeconds: number): Promise<void> => {
    termination ??= (async () => {
      timer?.cancel();
      deadline?.cancel();
      stopping.abort();
      await syncing;
      for (const probe of probes.values()) probe.stop();
      const isDeleted = pod.metadata.deletionTimestamp !== undefined;
      await stopPodContainers({
        records,
        graceMilliseconds: graceSeconds * 1000,
        clock,
        announce: (record) => event('Normal', 'Killing', `Stopping container ${record.name}`, record),
        preStop: async (record, signal) => {
          const hook = record.spec.lifecycle?.preStop;
          const target = probeTarget(record);
          if (!hook || !target) return;
          const problem = await runHook(target, hook, signal);
          if (problem !== undefined)
            event('Warning', 'FailedPreStopHook', `PreStopHook failed: ${problem}`, record);
        },
      });
      await settle();
      finished = true;
      for (const record of records) {
        if (isDeleted && record.state.waiting) record.ready = false;
      }
      release();
      changed();
      if (!silent) await writer.flush();
      options.onFinished();
      if (isDeleted && !silent && !options.isStatic) await deleteObject();
    })();
    return termination;
  };
  /** Exits are noted one turn after they happen. */
  const settle = async (): Promise<void> => {
    for (let i = 0; i < 4; i += 1) await new Promise<void>((resolve) => setImmediate(resolve));
  };
  const release = (): void => {
    volumes?.stop();
    if (sandbox?.own) {
      sandbox.network.detach();
      for (const ip of sandbox.ips) context.addresses.release(ip);
    }
    sandbox = undefined;
  };
  const deleteObject = async (): Promise<void> => {
    while (!silent) {
      try {
        await context.client.delete(
          pods,
          { namespace: pod.metadata.namespace, name: pod.metadata.name },
          { gracePeriodSeconds: 0, preconditions: { uid } },
        );
        return;
      } catch (error) {
        if (isNotFound(error)) return;
        log.debug(
          { pod: pod.metadata.name, err: errorMessage(error) },
          'the pod could not be deleted from the API',
        );
        await rest(clock, DELETE_RETRY, shutdownSignal.signal);
      }
    }
  };
  const shutdownSignal = new AbortController();

  kick();
  return {
    uid,
    get pod() {
      return pod;
    },
    records,
    get finished() {
      return finished;
    },
    update(next) {
      const before = pod;
      pod = next;
      if (!options.isStatic) writer.setTarget(next);
      for (const record of applySpecs(records, next))
        event('Normal', 'Killing', `Container ${record.name} definition changed, will be restarted`, record);
      volumes?.podChanged(next);
      if (finished) {
        if (next.metadata.deletionTimestamp !== undefined && before.metadata.deletionTimestamp === undefined)
          void deleteObject();
        return;
      }
      kick();
    },
    setMirror(next) {
      mirror = next;
      writer.setTarget(next);
      if (next) changed();
    },
    async remove() {
      silent = !options.isStatic || mirror === undefined;
      writer.stop();
      await terminate(
        pod.metadata.deletionGracePeriodSeconds ?? pod.spec.terminationGracePeriodSeconds ?? 30,
      );
    },
    wake: () => {
      if (!finished && lastStatus) changed();
      kick();
    },
    async shutdown(grace) {
      silent = true;
      writer.stop();
      timer?.cancel();
      deadline?.cancel();
      stopping.abort();
      shutdownSignal.abort();
      for (const probe of probes.values()) probe.stop();
      if (grace === 0) for (const record of records) record.run?.kill();
      else
        await stopPodContainers({
          records,
          graceMilliseconds: grace,
          clock,
          announce: () => undefined,
          preStop: async () => undefined,
        });
      finished = true;
      release();
    },
  };
}
