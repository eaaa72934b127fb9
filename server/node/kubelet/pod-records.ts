import { type Container, formatTime, type Pod } from '#server/kube';
import { FileError, type FileSystem } from '../contract.ts';
import { type ContainerRecord, createContainerRecord, restartsAfter } from './container-record.ts';
import { TERMINATION_LOG } from './pod-files.ts';

const MAX_TERMINATION_MESSAGE = 4096;
const FALLBACK_LOG = { lines: 80, bytes: 2048 };

/** The records a pod starts with, in the order of its spec. */
export function createRecords(pod: Pod, now: number): ContainerRecord[] {
  const init = pod.spec.initContainers ?? [];
  const waiting = init.length > 0 ? 'PodInitializing' : 'ContainerCreating';
  const records = [
    ...init.map((spec) =>
      createContainerRecord(spec, spec.restartPolicy === 'Always' ? 'sidecar' : 'init', 'PodInitializing'),
    ),
    ...pod.spec.containers.map((spec) => createContainerRecord(spec, 'main', waiting)),
  ];
  restoreCounts(records, pod, now);
  return records;
}

/** Whether nothing of a pod is left to run: every main container ended for good, or an init container failed for good. */
export function isPodOver(records: readonly ContainerRecord[], policy: string): boolean {
  const over = (record: ContainerRecord): boolean => {
    const code = record.state.terminated?.exitCode;
    return code !== undefined && !restartsAfter(record, policy, code);
  };
  if (
    records.some(
      (record) => record.kind === 'init' && over(record) && record.state.terminated?.exitCode !== 0,
    )
  )
    return true;
  return records.filter((record) => record.kind === 'main').every(over);
}

/** Counts and last states survive a kubelet that starts over: the API has them. */
export function restoreCounts(records: readonly ContainerRecord[], pod: Pod, now: number): void {
  const statuses = [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])];
  for (const record of records) {
    const before = statuses.find((status) => status.name === record.name);
    if (!before?.containerID) continue;
    const ended =
      before.state?.terminated ??
      (before.state?.running
        ? {
            exitCode: 255,
            reason: 'Unknown',
            startedAt: before.state.running.startedAt ?? '',
            // When exactly it went down nobody knows: it is found ended now.
            finishedAt: formatTime(now),
            containerID: before.containerID,
          }
        : before.lastState?.terminated);
    // What ran when the machine went down has ended now, as containerd finds it: the restart policy decides what follows.
    if (ended) record.state = { terminated: ended };
    record.ready = record.kind === 'init' && ended?.exitCode === 0;
    record.lastState = ended;
    record.restartCount = before.restartCount;
    record.containerID = before.containerID;
    record.everStarted = true;
  }
}

/** Images of running pods may be changed: the container is restarted with the new one. */
export function applySpecs(records: readonly ContainerRecord[], pod: Pod): ContainerRecord[] {
  const restarted: ContainerRecord[] = [];
  const specs: Container[] = [...(pod.spec.initContainers ?? []), ...pod.spec.containers];
  for (const record of records) {
    const next = specs.find((spec) => spec.name === record.name);
    if (!next || record.kind === 'ephemeral') continue;
    const replaced = next.image !== record.spec.image;
    record.spec = next;
    if (!replaced || record.kind !== 'main' || !record.run) continue;
    record.run.signal('SIGTERM');
    restarted.push(record);
  }
  return restarted;
}

export function fieldPathOf(record: ContainerRecord): string {
  const list =
    record.kind === 'main'
      ? 'containers'
      : record.kind === 'ephemeral'
        ? 'ephemeralContainers'
        : 'initContainers';
  return `spec.${list}{${record.name}}`;
}

export function terminationMessage(
  record: ContainerRecord,
  exitCode: number,
  files: FileSystem | undefined,
): string {
  const path = record.spec.terminationMessagePath ?? TERMINATION_LOG;
  try {
    const written = files?.exists(path)
      ? Buffer.from(files.readFile(path)).subarray(0, MAX_TERMINATION_MESSAGE).toString('utf8')
      : '';
    if (written !== '') return written;
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
  }
  if (record.spec.terminationMessagePolicy !== 'FallbackToLogsOnError' || exitCode === 0) return '';
  return record.log?.tail(FALLBACK_LOG.lines, FALLBACK_LOG.bytes) ?? '';
}
