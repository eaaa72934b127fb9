import { type ContainerStatus, formatTime, type Pod, type PodCondition, type PodStatus } from '#server/kube';
import { type ContainerRecord, restartsAfter } from './container-record.ts';

/** What a pod's status is made of besides its containers. */
export interface StatusFacts {
  readonly records: readonly ContainerRecord[];
  readonly podIPs: readonly string[];
  readonly hostIPs: readonly string[];
  readonly startTime: string;
  readonly sandboxReady: boolean;
  /** Rejected or ended by the kubelet: the pod is Failed with this. */
  readonly failure: { readonly reason: string; readonly message: string } | undefined;
  /** All containers have ended because the pod was told to. */
  readonly terminated: boolean;
  readonly now: number;
}

/**
 * The status of a pod as its kubelet reports it; only the parts the kubelet owns. Pure.
 * Models pkg/kubelet/kubelet_pods.go generateAPIPodStatus, getPhase and pkg/kubelet/status/generate.go.
 */
export function makePodStatus(pod: Pod, facts: StatusFacts): PodStatus {
  const { failure } = facts;
  const phase = failure ? 'Failed' : phaseOf(pod, facts);
  const init = facts.records.filter((record) => record.kind === 'init' || record.kind === 'sidecar');
  const main = facts.records.filter((record) => record.kind === 'main');
  const ephemeral = facts.records.filter((record) => record.kind === 'ephemeral');
  const rejected = failure !== undefined && facts.records.every((record) => !record.everStarted);
  const generation = pod.metadata.generation;
  const status: PodStatus = {
    ...(generation === undefined ? {} : { observedGeneration: generation }),
    phase,
    conditions: makeConditions(pod, facts, phase),
    ...(failure ? { reason: failure.reason, message: failure.message } : {}),
    startTime: facts.startTime,
    qosClass: pod.status?.qosClass ?? qosClass(pod),
  };
  if (facts.hostIPs.length > 0) {
    status.hostIP = facts.hostIPs[0] ?? '';
    status.hostIPs = facts.hostIPs.map((ip) => ({ ip }));
  }
  if (facts.podIPs.length > 0) {
    status.podIP = facts.podIPs[0] ?? '';
    status.podIPs = facts.podIPs.map((ip) => ({ ip }));
  }
  if (rejected) return status;
  if (init.length > 0) status.initContainerStatuses = init.map((record) => containerStatus(record, pod));
  status.containerStatuses = main.map((record) => containerStatus(record, pod));
  if (ephemeral.length > 0)
    status.ephemeralContainerStatuses = ephemeral.map((record) => containerStatus(record, pod));
  return status;
}

function phaseOf(pod: Pod, facts: StatusFacts): string {
  const policy = pod.spec.restartPolicy ?? 'Always';
  const init = facts.records.filter((record) => record.kind === 'init');
  const main = facts.records.filter((record) => record.kind === 'main');
  const failedInit = init.some(
    (record) => endedFor(record, policy) && (record.state.terminated?.exitCode ?? 0) !== 0,
  );
  if (failedInit) return 'Failed';
  const ended = main.filter((record) => record.state.terminated);
  if (facts.terminated) {
    // A pod told to stop never shows Succeeded for a container that was killed.
    if (ended.length < main.length) return main.some((record) => record.everStarted) ? 'Failed' : 'Pending';
    return ended.every((record) => record.state.terminated?.exitCode === 0) ? 'Succeeded' : 'Failed';
  }
  if (!main.some((record) => record.everStarted)) return 'Pending';
  if (ended.length === main.length && ended.every((record) => endedFor(record, policy))) {
    return ended.every((record) => record.state.terminated?.exitCode === 0) ? 'Succeeded' : 'Failed';
  }
  return 'Running';
}

function endedFor(record: ContainerRecord, policy: string): boolean {
  const code = record.state.terminated?.exitCode;
  return code !== undefined && !restartsAfter(record, policy, code);
}

function containerStatus(record: ContainerRecord, pod: Pod): ContainerStatus {
  const { spec } = record;
  const running = record.state.running !== undefined;
  const mounts = (spec.volumeMounts ?? []).map((mount) => ({
    name: mount.name,
    mountPath: mount.mountPath,
    ...(mount.readOnly ? { readOnly: true, recursiveReadOnly: 'Disabled' } : {}),
  }));
  const user =
    spec.securityContext?.runAsUser ?? pod.spec.securityContext?.runAsUser ?? record.image?.image.user ?? 0;
  const group = spec.securityContext?.runAsGroup ?? pod.spec.securityContext?.runAsGroup ?? user;
  return {
    name: record.name,
    state: record.state,
    lastState: record.lastState ? { terminated: record.lastState } : {},
    ready: record.ready,
    restartCount: record.restartCount,
    image: record.image?.reference ?? spec.image ?? '',
    imageID: record.image?.imageId ?? '',
    ...(record.containerID ? { containerID: record.containerID } : {}),
    started: record.started,
    ...(running && spec.resources?.requests ? { allocatedResources: spec.resources.requests } : {}),
    ...(record.everStarted ? { resources: spec.resources ?? {} } : {}),
    ...(mounts.length > 0 ? { volumeMounts: mounts } : {}),
    ...(record.everStarted
      ? { user: { linux: { uid: user, gid: group, supplementalGroups: [group] } } }
      : {}),
  };
}

type Verdict = Pick<PodCondition, 'status' | 'reason' | 'message'>;

function makeConditions(pod: Pod, facts: StatusFacts, phase: string): PodCondition[] {
  const containersReady = containersReadyVerdict(facts, phase);
  const wanted: [string, Verdict][] = [
    ['PodReadyToStartContainers', { status: facts.sandboxReady ? 'True' : 'False' }],
    ['Initialized', initializedVerdict(facts, phase)],
    ['Ready', readyVerdict(pod, containersReady)],
    ['ContainersReady', containersReady],
    ['PodScheduled', { status: 'True' }],
  ];
  const generation = pod.metadata.generation;
  const rejected = facts.failure !== undefined && facts.records.every((record) => !record.everStarted);
  const existing = pod.status?.conditions ?? [];
  return wanted
    .filter(
      ([type]) =>
        !rejected || type === 'PodScheduled' || existing.some((condition) => condition.type === type),
    )
    .map(([type, verdict]): PodCondition => {
      const before = existing.find((condition) => condition.type === type);
      const kept = before?.status === verdict.status ? before.lastTransitionTime : undefined;
      return {
        type,
        ...(generation === undefined ? {} : { observedGeneration: generation }),
        status: verdict.status,
        lastTransitionTime: kept ?? formatTime(facts.now),
        ...(verdict.reason ? { reason: verdict.reason } : {}),
        ...(verdict.message ? { message: verdict.message } : {}),
      };
    });
}

/** Go's `%s` of a string slice. */
function listed(names: readonly string[]): string {
  return `[${names.join(' ')}]`;
}

function containersReadyVerdict(facts: StatusFacts, phase: string): Verdict {
  if (phase === 'Succeeded') return { status: 'False', reason: 'PodCompleted' };
  if (phase === 'Failed') return { status: 'False', reason: 'PodFailed' };
  const unready = facts.records
    .filter((record) => (record.kind === 'sidecar' || record.kind === 'main') && !record.ready)
    .map((record) => record.name);
  if (unready.length === 0) return { status: 'True' };
  return {
    status: 'False',
    reason: 'ContainersNotReady',
    message: `containers with unready status: ${listed(unready)}`,
  };
}

function readyVerdict(pod: Pod, containersReady: Verdict): Verdict {
  if (containersReady.status !== 'True') return containersReady;
  const missing = (pod.spec.readinessGates ?? []).flatMap((gate) => {
    const condition = pod.status?.conditions?.find((other) => other.type === gate.conditionType);
    if (!condition)
      return [`corresponding condition of pod readiness gate "${gate.conditionType}" does not exist.`];
    if (condition.status === 'True') return [];
    return [
      `the status of pod readiness gate "${gate.conditionType}" is not "True", but ${condition.status}`,
    ];
  });
  if (missing.length === 0) return { status: 'True' };
  return { status: 'False', reason: 'ReadinessGatesNotReady', message: missing.join(', ') };
}

function initializedVerdict(facts: StatusFacts, phase: string): Verdict {
  if (phase === 'Succeeded') return { status: 'True', reason: 'PodCompleted' };
  if (facts.records.some((record) => record.kind === 'main' && record.everStarted)) return { status: 'True' };
  const incomplete = facts.records
    .filter(
      (record) =>
        (record.kind === 'init' && record.state.terminated?.exitCode !== 0) ||
        (record.kind === 'sidecar' && !record.started),
    )
    .map((record) => record.name);
  if (incomplete.length === 0) return { status: 'True' };
  return {
    status: 'False',
    reason: 'ContainersNotInitialized',
    message: `containers with incomplete status: ${listed(incomplete)}`,
  };
}

/** Models pkg/apis/core/v1/helper/qos.ComputePodQOS. */
export function qosClass(pod: Pod): string {
  const containers = [...(pod.spec.initContainers ?? []), ...pod.spec.containers];
  const asked = containers.flatMap((container) => {
    const { requests = {}, limits = {} } = container.resources ?? {};
    return ['cpu', 'memory'].flatMap((name) =>
      (requests[name] ?? limits[name])
        ? [{ request: requests[name] ?? limits[name], limit: limits[name] }]
        : [],
    );
  });
  if (asked.length === 0) return 'BestEffort';
  const guaranteed =
    asked.length === containers.length * 2 &&
    asked.every((one) => one.limit !== undefined && one.request === one.limit);
  return guaranteed ? 'Guaranteed' : 'Burstable';
}
