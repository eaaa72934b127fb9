import { cloneJson } from '#server/kube';
import { conditionOf, dropCondition, setCondition } from './conditions.ts';
import type {
  VirtCondition,
  VirtualMachine,
  VirtualMachineInstance,
  VirtualMachineStatus,
} from './resources.ts';
import { isFinal, runStrategyOf } from './resources.ts';

/** The longest a VM waits after starts that failed, in seconds. */
const MAX_START_DELAY_SECONDS = 300;
const MIN_START_INTERVAL_SECONDS = 10;

/** Conditions of a VM that are its own, not copies of its VMI's. */
const OWN_CONDITIONS = new Set(['Ready', 'Failure', 'RestartRequired']);

/** Milliseconds until a VM whose starts failed may be started again; 0: now. */
export function startDelayLeft(vm: VirtualMachine, now: number): number {
  const after = vm.status?.startFailure?.retryAfterTimestamp;
  return after ? Math.max(0, Date.parse(after) - now) : 0;
}

function everRan(vmi: VirtualMachineInstance): boolean {
  return vmi.status?.phaseTransitionTimestamps?.some((entry) => entry.phase === 'Running') ?? false;
}

function syncStartFailure(
  status: VirtualMachineStatus,
  vm: VirtualMachine,
  vmi: VirtualMachineInstance | undefined,
  now: number,
  random: () => number,
): void {
  const restarts = ['Always', 'RerunOnFailure', 'Once'].includes(runStrategyOf(vm));
  if (!restarts || (vmi && everRan(vmi))) {
    delete status.startFailure;
    return;
  }
  if (!vmi || !isFinal(vmi) || status.startFailure?.lastFailedVMIUID === vmi.metadata.uid) return;
  const count = (status.startFailure?.consecutiveFailCount ?? 0) + 1;
  const base = MIN_START_INTERVAL_SECONDS * count ** 2;
  const seconds = Math.min(MAX_START_DELAY_SECONDS, base + Math.floor(random() * (base / 2 + 1)));
  status.startFailure = {
    consecutiveFailCount: count,
    ...(vmi.metadata.uid ? { lastFailedVMIUID: vmi.metadata.uid } : {}),
    retryAfterTimestamp: `${new Date(now + seconds * 1000).toISOString().slice(0, 19)}Z`,
  };
}

function readyCondition(vmi: VirtualMachineInstance | undefined, time: string): VirtCondition {
  const times = { lastProbeTime: time, lastTransitionTime: time };
  if (!vmi)
    return {
      type: 'Ready',
      status: 'False',
      reason: 'VMINotExists',
      message: 'VMI does not exist',
      ...times,
    };
  const ready = conditionOf(vmi.status?.conditions, 'Ready');
  if (!ready)
    return {
      type: 'Ready',
      status: 'False',
      reason: 'VMIConditionMissing',
      message: 'VMI is missing the Ready condition',
      ...times,
    };
  return { ...ready };
}

function syncConditions(
  status: VirtualMachineStatus,
  vmi: VirtualMachineInstance | undefined,
  time: string,
): void {
  const conditions = (status.conditions ??= []);
  setCondition(conditions, readyCondition(vmi, time));
  if (!vmi) return;
  const fromVmi = (vmi.status?.conditions ?? []).filter((condition) => !OWN_CONDITIONS.has(condition.type));
  for (const condition of fromVmi) setCondition(conditions, { ...condition });
  for (const condition of [...conditions]) {
    if (!OWN_CONDITIONS.has(condition.type) && !fromVmi.some((from) => from.type === condition.type))
      dropCondition(conditions, condition.type);
  }
}

interface Situation {
  vm: VirtualMachine;
  status: VirtualMachineStatus;
  vmi: VirtualMachineInstance | undefined;
  /** A VMI is being made in this very pass. */
  starting: boolean;
  /** A VMI is being deleted in this very pass. */
  stopping: boolean;
}

function hasReason(vmi: VirtualMachineInstance | undefined, type: string, reason: string): boolean {
  const condition = conditionOf(vmi?.status?.conditions, type);
  return condition?.status === 'False' && condition.reason === reason;
}

/** The first that holds is what `kubectl get vm` shows. */
const PRINTABLE: readonly [string, (situation: Situation) => boolean][] = [
  ['Terminating', ({ vm }) => vm.metadata.deletionTimestamp !== undefined],
  [
    'Stopping',
    ({ vmi, stopping }) =>
      vmi !== undefined && !isFinal(vmi) && (vmi.metadata.deletionTimestamp !== undefined || stopping),
  ],
  ['Running', ({ vmi }) => vmi?.status?.phase === 'Running'],
  ['ErrorUnschedulable', ({ vmi }) => hasReason(vmi, 'PodScheduled', 'Unschedulable')],
  ['ErrImagePull', ({ vmi }) => hasReason(vmi, 'Synchronized', 'ErrImagePull')],
  ['ImagePullBackOff', ({ vmi }) => hasReason(vmi, 'Synchronized', 'ImagePullBackOff')],
  ['Starting', ({ vmi, starting }) => (vmi ? !isFinal(vmi) && vmi.status?.phase !== 'Unknown' : starting)],
  [
    'CrashLoopBackOff',
    ({ vm, status, vmi }) =>
      (!vmi || isFinal(vmi)) &&
      (status.startFailure?.consecutiveFailCount ?? 0) > 0 &&
      ['Always', 'RerunOnFailure', 'Once'].includes(runStrategyOf(vm)),
  ],
  ['Stopped', ({ vmi }) => !vmi || isFinal(vmi)],
];

/**
 * The status a VM should have, given its VMI. Models updateStatus of kubevirt pkg/virt-controller/watch/vm/vm.go.
 * `now` is wall-clock milliseconds; `random` gives [0, 1).
 */
export function vmStatus(options: {
  vm: VirtualMachine;
  vmi: VirtualMachineInstance | undefined;
  starting: boolean;
  stopping: boolean;
  now: number;
  random: () => number;
}): VirtualMachineStatus {
  const { vm, vmi, now } = options;
  const time = `${new Date(now).toISOString().slice(0, 19)}Z`;
  const status: VirtualMachineStatus = cloneJson(vm.status ?? {});
  if (vmi || options.starting) status.created = true;
  else delete status.created;
  if (conditionOf(vmi?.status?.conditions, 'Ready')?.status === 'True') status.ready = true;
  else delete status.ready;
  if (status.runStrategy !== undefined || vmi || options.starting) status.runStrategy = runStrategyOf(vm);
  if (vm.metadata.generation !== undefined) {
    status.desiredGeneration = vm.metadata.generation;
    if (options.starting || !vmi) status.observedGeneration = vm.metadata.generation;
  }
  syncStartFailure(status, vm, vmi, now, options.random);
  syncConditions(status, vmi, time);
  status.printableStatus = PRINTABLE.find(([, holds]) => holds({ ...options, status }))?.[0] ?? 'Unknown';
  return status;
}
