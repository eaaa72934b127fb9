import { type Clock, InternalError, type Logger } from '#server/base';
import { type Client, type EventRecorder, type Informer, type InformerFactory } from '#server/client';
import {
  cloneJson,
  controllerOf,
  deepEqual,
  formatTime,
  isAlreadyExists,
  isNotFound,
  objectKey,
  type Pod,
  pods,
} from '#server/kube';
import { dropCondition, enterPhase, setCondition } from './conditions.ts';
import { launcherPod } from './launcher-pod.ts';
import { startLoop } from './loop.ts';
import {
  CREATED_BY_LABEL,
  isFinal,
  LAUNCHER_LABEL,
  NODE_NAME_LABEL,
  type VirtCondition,
  type VirtualMachineInstance,
  type VirtualMachineInstanceStatus,
  VM_FINALIZER,
  VMI_FINALIZER,
  virtualMachineInstances,
  virtualMachines,
} from './resources.ts';

export interface VmiControllerOptions {
  client: Client;
  informers: InformerFactory;
  recorder: EventRecorder;
  clock: Clock;
  log: Logger;
  /** Resolves when the informers' caches are filled. */
  ready: () => Promise<void>;
}

const WORKERS = 10;
const WRITE = { fieldManager: 'virt-controller' };

/** The virt-launcher pods of all machines; by VMI UID through the index `vmi`. */
export function launcherPods(informers: InformerFactory): Informer<Pod> {
  return informers.informer(pods, { labelSelector: `${LAUNCHER_LABEL}=virt-launcher` });
}

/** Is the pod over, or about to be? */
export function isDown(pod: Pod): boolean {
  return (
    pod.metadata.deletionTimestamp !== undefined ||
    pod.status?.phase === 'Failed' ||
    pod.status?.phase === 'Succeeded'
  );
}

/** Do all containers of the pod run? (Not the Ready condition: that one waits for the guest.) */
function hasRunningContainers(pod: Pod): boolean {
  const statuses = pod.status?.containerStatuses ?? [];
  return (
    pod.status?.phase === 'Running' &&
    Boolean(pod.status.podIP) &&
    statuses.length > 0 &&
    statuses.every((status) => status.ready)
  );
}

function readyCondition(vmi: VirtualMachineInstance, pod: Pod | undefined, time: string): VirtCondition {
  const no = (reason: string, message: string): VirtCondition => ({
    type: 'Ready',
    status: 'False',
    reason,
    message,
    lastProbeTime: time,
    lastTransitionTime: time,
  });
  if (!pod) return no('PodNotExists', 'virt-launcher pod has not yet been scheduled');
  if (isDown(pod)) return no('PodTerminating', 'virt-launcher pod is terminating');
  if (vmi.status?.phase !== 'Running') return no('GuestNotRunning', 'Guest VM is not reported as running');
  const ready = pod.status?.conditions?.find((condition) => condition.type === 'Ready');
  if (!ready) return no('PodConditionMissing', 'virt-launcher pod is missing the Ready condition');
  return {
    type: 'Ready',
    status: ready.status === 'True' ? 'True' : ready.status === 'False' ? 'False' : 'Unknown',
    ...(ready.reason ? { reason: ready.reason } : {}),
    ...(ready.message ? { message: ready.message } : {}),
    lastProbeTime: null,
    lastTransitionTime: ready.lastTransitionTime ?? time,
  };
}

/** What a stuck pod says of itself goes onto the VMI: unschedulable, image that cannot be pulled. */
function mirrorPodTroubles(status: VirtualMachineInstanceStatus, pod: Pod, time: string): void {
  const conditions = (status.conditions ??= []);
  const scheduled = pod.status?.conditions?.find((condition) => condition.type === 'PodScheduled');
  if (scheduled?.status === 'False') {
    setCondition(conditions, {
      type: 'PodScheduled',
      status: 'False',
      lastProbeTime: null,
      lastTransitionTime: scheduled.lastTransitionTime ?? time,
      ...(scheduled.reason ? { reason: scheduled.reason } : {}),
      ...(scheduled.message ? { message: scheduled.message } : {}),
    });
  } else dropCondition(conditions, 'PodScheduled');
  const waiting = pod.status?.containerStatuses
    ?.map((container) => container.state?.waiting)
    .find((state) => state?.reason === 'ErrImagePull' || state?.reason === 'ImagePullBackOff');
  if (waiting) {
    setCondition(conditions, {
      type: 'Synchronized',
      status: 'False',
      lastProbeTime: null,
      lastTransitionTime: time,
      ...(waiting.reason ? { reason: waiting.reason } : {}),
      ...(waiting.message ? { message: waiting.message } : {}),
    });
  } else dropCondition(conditions, 'Synchronized');
}

/** Moves the phase along as far as virt-controller owns it, in place. */
function advance(
  vmi: VirtualMachineInstance,
  status: VirtualMachineInstanceStatus,
  pod: Pod | undefined,
  time: string,
): void {
  switch (vmi.status?.phase) {
    case undefined:
    case 'Pending':
      if (pod) enterPhase(status, 'Scheduling', time);
      else enterPhase(status, vmi.metadata.deletionTimestamp === undefined ? 'Pending' : 'Failed', time);
      return;
    case 'Scheduling':
      if (!pod || isDown(pod)) {
        enterPhase(status, 'Failed', time);
        return;
      }
      mirrorPodTroubles(status, pod, time);
      if (!hasRunningContainers(pod) || vmi.metadata.deletionTimestamp !== undefined) return;
      enterPhase(status, 'Scheduled', time);
      if (pod.status?.qosClass) status.qosClass = pod.status.qosClass;
      if (pod.spec.nodeName) status.nodeName = pod.spec.nodeName;
      status.migrationTransport = 'Unix';
      return;
    case 'Scheduled':
    case 'Running':
      if (!pod) enterPhase(status, 'Failed', time);
      return;
    default:
  }
}

/**
 * VirtualMachineInstance → virt-launcher pod, and the VMI's phases up to Scheduled; from there virt-handler has it.
 * Models kubevirt pkg/virt-controller/watch/vmi (lifecycle.go).
 */
export function startVmiController(options: VmiControllerOptions): { stop(): Promise<void> } {
  const { client, recorder, clock, log } = options;
  const vmis = options.informers.informer(virtualMachineInstances);
  const vms = options.informers.informer(virtualMachines);
  const launchers = launcherPods(options.informers);
  launchers.addIndex('vmi', (pod) => [pod.metadata.labels?.[CREATED_BY_LABEL] ?? '']);
  const loop = startLoop({
    name: 'virt-controller-vmi',
    workers: WORKERS,
    clock,
    log,
    ready: options.ready,
    reconcile: (key) => reconcile(key),
  });
  const enqueue = (vmi: VirtualMachineInstance): void => loop.enqueue(objectKey(vmi));
  const enqueueOwner = (pod: Pod): void => {
    const owner = controllerOf(pod);
    if (owner?.kind === 'VirtualMachineInstance')
      loop.enqueue(`${pod.metadata.namespace ?? ''}/${owner.name}`);
  };
  const watches = [
    vmis.on({ added: enqueue, updated: (_, vmi) => enqueue(vmi), deleted: enqueue }),
    launchers.on({ added: enqueueOwner, updated: (_, pod) => enqueueOwner(pod), deleted: enqueueOwner }),
  ];
  const podsOf = (vmi: VirtualMachineInstance): Pod[] =>
    launchers
      .byIndex('vmi', vmi.metadata.uid ?? '')
      .filter((pod) => controllerOf(pod)?.uid === vmi.metadata.uid);

  const createPod = async (vmi: VirtualMachineInstance): Promise<void> => {
    try {
      const pod = await client.create(pods, launcherPod(vmi), WRITE);
      recorder.event(vmi, 'Normal', 'SuccessfulCreate', `Created virtual machine pod ${pod.metadata.name}`);
    } catch (error) {
      if (isAlreadyExists(error)) return;
      recorder.event(
        vmi,
        'Warning',
        'FailedCreate',
        `Error creating pod: ${error instanceof Error ? error.message : String(error)}`,
      );
      throw error;
    }
  };

  const deletePods = async (vmi: VirtualMachineInstance, owned: readonly Pod[]): Promise<void> => {
    for (const pod of owned.filter((candidate) => candidate.metadata.deletionTimestamp === undefined)) {
      try {
        await client.delete(pods, pod.metadata);
        recorder.event(vmi, 'Normal', 'SuccessfulDelete', `Deleted virtual machine pod ${pod.metadata.name}`);
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
    }
  };

  const desired = (
    vmi: VirtualMachineInstance,
    owned: readonly Pod[],
    failure: Error | undefined,
  ): VirtualMachineInstance => {
    const time = formatTime(clock.now());
    const next = cloneJson(vmi);
    const status = (next.status ??= {});
    const pod = owned.find((candidate) => !isDown(candidate)) ?? owned[0];
    const active = Object.fromEntries(
      owned
        .filter((candidate) => !isDown(candidate))
        .map((candidate) => [candidate.metadata.uid ?? '', candidate.spec.nodeName ?? '']),
    );
    if (Object.keys(active).length > 0) status.activePods = active;
    else delete status.activePods;
    setCondition((status.conditions ??= []), readyCondition(vmi, pod, time));
    if (pod)
      status.launcherContainerImageVersion =
        pod.spec.containers.find((container) => container.name === 'compute')?.image ?? '';
    advance(vmi, status, pod, time);
    if (failure) {
      const message = `failed to create virtual machine pod: ${failure.message}`;
      setCondition(status.conditions, {
        type: 'Synchronized',
        status: 'False',
        reason: 'FailedCreate',
        message,
        lastProbeTime: null,
        lastTransitionTime: time,
      });
    }
    if (status.phase === 'Scheduled' && status.nodeName)
      next.metadata.labels = { ...next.metadata.labels, [NODE_NAME_LABEL]: status.nodeName };
    const finalizers = new Set(next.metadata.finalizers ?? []);
    if (isFinal(vmi)) {
      const owner = controllerOf(vmi);
      if (owned.length === 0) finalizers.delete(VMI_FINALIZER);
      if (
        !owner ||
        vms.get(
          objectKey({
            metadata: {
              ...(vmi.metadata.namespace ? { namespace: vmi.metadata.namespace } : {}),
              name: owner.name,
            },
          }),
        )?.metadata.uid !== owner.uid
      )
        finalizers.delete(VM_FINALIZER);
    } else if (vmi.metadata.deletionTimestamp === undefined) finalizers.add(VMI_FINALIZER);
    if (next.metadata.finalizers || finalizers.size > 0) next.metadata.finalizers = [...finalizers];
    return next;
  };

  const reconcile = async (key: string): Promise<void> => {
    const vmi = vmis.get(key);
    if (!vmi) return;
    const owned = podsOf(vmi);
    let failure: Error | undefined;
    if (vmi.metadata.deletionTimestamp !== undefined) await deletePods(vmi, owned);
    else if (owned.length === 0 && (vmi.status?.phase === undefined || vmi.status.phase === 'Pending')) {
      failure = await createPod(vmi).then(
        () => undefined,
        (error: unknown) => (error instanceof Error ? error : new InternalError(String(error))),
      );
    }
    const next = desired(vmi, owned, failure);
    if (!deepEqual(next, vmi)) await client.update(virtualMachineInstances, next, WRITE);
    if (failure) throw failure;
  };

  return {
    async stop() {
      for (const watch of watches) watch.stop();
      await loop.stop();
    },
  };
}
