import type { Container, ContainerStatus, Pod, UnstructuredObject } from '#server/kube';
import { as, type Column } from '../kind.ts';
import { ageColumn, column, nameColumn, since, wideColumn } from './cells.ts';

interface PodSummary {
  ready: number;
  total: number;
  status: string;
  restarts: number;
  lastRestart: string | undefined;
}

/** A container restarted in the middle of the pod's life: an init container that keeps running beside the others. */
function isSidecar(container: Container | undefined): boolean {
  return container?.restartPolicy === 'Always';
}

function later(a: string | undefined, b: string | null | undefined): string | undefined {
  if (!b) return a;
  return !a || a < b ? b : a;
}

function conditionIsTrue(pod: Pod, type: string): boolean {
  return pod.status?.conditions?.some((c) => c.type === type && c.status === 'True') ?? false;
}

function endedBecause(ended: { reason?: string; signal?: number; exitCode: number }): string {
  if (ended.reason) return ended.reason;
  return ended.signal ? `Signal:${ended.signal}` : `ExitCode:${ended.exitCode}`;
}

/** Counts init containers into `summary`; true while the pod is still initializing. */
function addInitContainers(pod: Pod, summary: PodSummary, sidecars: PodSummary): boolean {
  const specs = new Map((pod.spec?.initContainers ?? []).map((c) => [c.name, c]));
  for (const [index, status] of (pod.status?.initContainerStatuses ?? []).entries()) {
    const finished = status.lastState?.terminated?.finishedAt;
    const sidecar = isSidecar(specs.get(status.name));
    summary.restarts += status.restartCount;
    summary.lastRestart = later(summary.lastRestart, finished);
    if (sidecar) {
      sidecars.restarts += status.restartCount;
      sidecars.lastRestart = later(sidecars.lastRestart, finished);
    }
    const ended = status.state?.terminated;
    const waiting = status.state?.waiting?.reason;
    if (ended?.exitCode === 0 && ended) continue;
    if (sidecar && status.started) {
      if (status.ready) summary.ready += 1;
      continue;
    }
    if (ended) summary.status = `Init:${endedBecause(ended)}`;
    else if (waiting && waiting !== 'PodInitializing') summary.status = `Init:${waiting}`;
    else summary.status = `Init:${index}/${specs.size}`;
    return true;
  }
  return false;
}

function addContainer(status: ContainerStatus, summary: PodSummary): boolean {
  summary.restarts += status.restartCount;
  summary.lastRestart = later(summary.lastRestart, status.lastState?.terminated?.finishedAt);
  if (status.state?.waiting?.reason) summary.status = status.state.waiting.reason;
  else if (status.state?.terminated) summary.status = endedBecause(status.state.terminated);
  else if (status.ready && status.state?.running) {
    summary.ready += 1;
    return true;
  }
  return false;
}

/** Models printPod of kubernetes/pkg/printers/internalversion. */
function summarize(pod: Pod): PodSummary {
  const phase = pod.status?.phase ?? '';
  const inits = pod.spec?.initContainers ?? [];
  const summary: PodSummary = {
    ready: 0,
    total: (pod.spec?.containers ?? []).length + inits.filter(isSidecar).length,
    status: pod.status?.reason || phase,
    restarts: 0,
    lastRestart: undefined,
  };
  if (pod.status?.conditions?.some((c) => c.type === 'PodScheduled' && c.reason === 'SchedulingGated')) {
    summary.status = 'SchedulingGated';
  }
  const sidecars: PodSummary = { ...summary };
  const initializing = addInitContainers(pod, summary, sidecars);
  if (!initializing || conditionIsTrue(pod, 'Initialized')) {
    summary.restarts = sidecars.restarts;
    summary.lastRestart = sidecars.lastRestart;
    let running = false;
    for (const status of [...(pod.status?.containerStatuses ?? [])].reverse()) {
      if (addContainer(status, summary)) running = true;
    }
    if (summary.status === 'Completed' && running) {
      summary.status = conditionIsTrue(pod, 'Ready') ? 'Running' : 'NotReady';
    }
  }
  if (pod.metadata.deletionTimestamp) {
    if (pod.status?.reason === 'NodeLost') summary.status = 'Unknown';
    else if (phase !== 'Succeeded' && phase !== 'Failed') summary.status = 'Terminating';
  }
  return summary;
}

/** The cells of one row are asked for one after the other: the last object's summary is kept. */
const summaries = new WeakMap<UnstructuredObject, PodSummary>();

function summaryOf(object: UnstructuredObject): PodSummary {
  const known = summaries.get(object);
  if (known && Object.isFrozen(object)) return known;
  const summary = summarize(as<Pod>(object));
  summaries.set(object, summary);
  return summary;
}

function readinessGates(pod: Pod): string {
  const gates = pod.spec?.readinessGates ?? [];
  if (gates.length === 0) return '<none>';
  return `${gates.filter((gate) => conditionIsTrue(pod, gate.conditionType)).length}/${gates.length}`;
}

export const podColumns: Column[] = [
  nameColumn,
  column('Ready', 'Containers ready to serve, of all that keep running.', (object) => {
    const { ready, total } = summaryOf(object);
    return `${ready}/${total}`;
  }),
  column('Status', 'What the containers together are doing.', (object) => summaryOf(object).status),
  column('Restarts', 'How often containers were started again, and when last.', (object, now) => {
    const { restarts, lastRestart } = summaryOf(object);
    return restarts > 0 && lastRestart ? `${restarts} (${since(lastRestart, now)} ago)` : String(restarts);
  }),
  ageColumn,
  wideColumn(
    'IP',
    'The address of the pod.',
    (object) => as<Pod>(object).status?.podIPs?.[0]?.ip || '<none>',
  ),
  wideColumn(
    'Node',
    'The node the pod was given to.',
    (object) => as<Pod>(object).spec?.nodeName || '<none>',
  ),
  wideColumn(
    'Nominated Node',
    'The node that makes room for the pod.',
    (object) => as<Pod>(object).status?.nominatedNodeName || '<none>',
  ),
  wideColumn('Readiness Gates', 'Extra conditions of readiness that hold, of all.', (object) =>
    readinessGates(as<Pod>(object)),
  ),
];
