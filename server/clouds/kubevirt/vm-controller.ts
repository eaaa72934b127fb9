import type { Clock, Ids, Logger } from '#server/base';
import { type Client, type EventRecorder, type InformerFactory } from '#server/client';
import {
  cloneJson,
  controllerOf,
  controllerReference,
  deepEqual,
  isAlreadyExists,
  isNotFound,
  objectKey,
  splitKey,
} from '#server/kube';
import { startLoop } from './loop.ts';
import {
  isFinal,
  runStrategyOf,
  type VirtualMachine,
  type VirtualMachineInstance,
  VM_FINALIZER,
  VM_GENERATION_ANNOTATION,
  VMI_FINALIZER,
  virtualMachineInstances,
  virtualMachines,
} from './resources.ts';
import { startDelayLeft, vmStatus } from './vm-status.ts';

export interface VmControllerOptions {
  client: Client;
  informers: InformerFactory;
  recorder: EventRecorder;
  clock: Clock;
  ids: Ids;
  log: Logger;
  /** Resolves when the informers' caches are filled. */
  ready: () => Promise<void>;
  deleteDisk(namespace: string, diskId: string): Promise<void>;
}

const WORKERS = 10;
const WRITE = { fieldManager: 'virt-controller' };

/** What a pass did to the VMI, for the status. */
interface Outcome {
  vmi: VirtualMachineInstance | undefined;
  starting: boolean;
  stopping: boolean;
  /** Milliseconds after which to look again. */
  again?: number;
}

/** Has what somebody asked for (virtctl start, stop) happened? */
function isDone(request: { action: 'Start' | 'Stop'; uid?: string }, { vmi, starting }: Outcome): boolean {
  if (request.action === 'Stop') return vmi?.metadata.uid !== request.uid;
  return starting || (vmi !== undefined && !isFinal(vmi) && vmi.metadata.deletionTimestamp === undefined);
}

/** A VM's machine, as it is to be created. Models SetupVMIFromVM and startVMI of upstream's vm.go. */
function vmiOf(vm: VirtualMachine): VirtualMachineInstance {
  const template = cloneJson(vm.spec.template);
  const { spec } = template;
  spec.domain.devices.interfaces ??= [{ name: 'default', bridge: {} }];
  spec.networks ??= [{ name: 'default', pod: {} }];
  spec.domain.machine ??= { type: 'q35' };
  spec.domain.firmware ??= vm.metadata.uid ? { uuid: vm.metadata.uid } : {};
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: {
      name: vm.metadata.name,
      ...(vm.metadata.namespace ? { namespace: vm.metadata.namespace } : {}),
      ...(template.metadata?.labels ? { labels: template.metadata.labels } : {}),
      annotations: {
        ...template.metadata?.annotations,
        'kubevirt.io/latest-observed-api-version': 'v1',
        'kubevirt.io/storage-observed-api-version': 'v1',
        [VM_GENERATION_ANNOTATION]: String(vm.metadata.generation ?? 1),
      },
      finalizers: [VM_FINALIZER, VMI_FINALIZER],
      ownerReferences: [controllerReference(vm)],
    },
    spec,
  };
}

/**
 * VirtualMachine → VirtualMachineInstance: starts, stops and restarts by run strategy, and reports.
 * Models kubevirt pkg/virt-controller/watch/vm/vm.go (no data volumes, no instance types, no live update).
 */
export function startVmController(options: VmControllerOptions): { stop(): Promise<void> } {
  const { client, recorder, clock, ids, log } = options;
  const vms = options.informers.informer(virtualMachines);
  const vmis = options.informers.informer(virtualMachineInstances);
  const loop = startLoop({
    name: 'virt-controller-vm',
    workers: WORKERS,
    clock,
    log,
    ready: options.ready,
    reconcile: (key) => reconcile(key),
  });
  const enqueue = (object: VirtualMachine): void => loop.enqueue(objectKey(object));
  const enqueueOwner = (vmi: VirtualMachineInstance): void => {
    const owner = controllerOf(vmi);
    if (owner?.kind === 'VirtualMachine')
      loop.enqueue(
        objectKey({
          metadata: {
            ...(vmi.metadata.namespace ? { namespace: vmi.metadata.namespace } : {}),
            name: owner.name,
          },
        }),
      );
  };
  const watches = [
    vms.on({ added: enqueue, updated: (_, vm) => enqueue(vm), deleted: enqueue }),
    vmis.on({ added: enqueueOwner, updated: (_, vmi) => enqueueOwner(vmi), deleted: enqueueOwner }),
  ];

  const start = async (vm: VirtualMachine): Promise<Outcome> => {
    const left = startDelayLeft(vm, clock.now());
    if (left > 0) return { vmi: undefined, starting: false, stopping: false, again: left };
    try {
      const vmi = await client.create(virtualMachineInstances, vmiOf(vm), WRITE);
      recorder.event(
        vm,
        'Normal',
        'SuccessfulCreate',
        `Started the virtual machine by creating the new virtual machine instance ${vmi.metadata.name}`,
      );
    } catch (error) {
      // Made by an earlier pass whose event has not come by yet: that event brings us back here.
      if (!isAlreadyExists(error)) {
        recorder.event(
          vm,
          'Warning',
          'FailedCreate',
          `Error creating virtual machine instance: ${error instanceof Error ? error.message : String(error)}`,
        );
        throw error;
      }
    }
    return { vmi: undefined, starting: true, stopping: false };
  };

  const stopVmi = async (vm: VirtualMachine, vmi: VirtualMachineInstance): Promise<Outcome> => {
    if (vmi.metadata.deletionTimestamp !== undefined) return { vmi, starting: false, stopping: false };
    try {
      await client.delete(
        virtualMachineInstances,
        vmi.metadata,
        vmi.metadata.uid ? { preconditions: { uid: vmi.metadata.uid } } : {},
      );
      recorder.event(
        vm,
        'Normal',
        'SuccessfulDelete',
        `Stopped the virtual machine by deleting the virtual machine instance ${vmi.metadata.uid ?? ''}`,
      );
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
    return { vmi, starting: false, stopping: true };
  };

  const syncRunStrategy = async (
    vm: VirtualMachine,
    vmi: VirtualMachineInstance | undefined,
  ): Promise<Outcome> => {
    const requests = vm.status?.stateChangeRequests ?? [];
    const stopAsked =
      vmi !== undefined && requests[0]?.action === 'Stop' && requests[0].uid === vmi.metadata.uid;
    const startAsked = requests[0]?.action === 'Start';
    const nothing: Outcome = { vmi, starting: false, stopping: false };
    switch (runStrategyOf(vm)) {
      case 'Always':
        if (!vmi) return start(vm);
        return stopAsked || isFinal(vmi) ? stopVmi(vm, vmi) : nothing;
      case 'RerunOnFailure':
        if (vmi) return stopAsked || isFinal(vmi) ? stopVmi(vm, vmi) : nothing;
        // What succeeded is not run again; what failed left a start request behind.
        return startAsked || vm.status?.runStrategy !== 'RerunOnFailure' ? start(vm) : nothing;
      case 'Once':
        return vmi ? nothing : start(vm);
      case 'Manual':
        if (vmi) return stopAsked ? stopVmi(vm, vmi) : nothing;
        return startAsked ? start(vm) : nothing;
      default:
        return vmi ? stopVmi(vm, vmi) : nothing;
    }
  };

  const saveStatus = async (vm: VirtualMachine, outcome: Outcome): Promise<void> => {
    const status = vmStatus({ vm, ...outcome, now: clock.now(), random: () => ids.random() });
    const [first, ...later] = status.stateChangeRequests ?? [];
    if (first && isDone(first, outcome)) {
      if (later.length > 0) status.stateChangeRequests = later;
      else delete status.stateChangeRequests;
    }
    // A failed RerunOnFailure machine asks for its own next start.
    if (outcome.stopping && outcome.vmi?.status?.phase === 'Failed' && runStrategyOf(vm) === 'RerunOnFailure')
      status.stateChangeRequests = [{ action: 'Start' }];
    if (deepEqual(status, vm.status ?? {})) return;
    await client.update(virtualMachines, { ...vm, status }, { ...WRITE, subresource: 'status' });
  };

  /** The VM has seen how this run ended: its machine may go. */
  const releaseVmi = async (cached: VirtualMachineInstance): Promise<void> => {
    if (!isFinal(cached) || !cached.metadata.finalizers?.includes(VM_FINALIZER)) return;
    try {
      // Others are writing it now too: the newest is read, so that ours is no stale write.
      const vmi = await client.get(virtualMachineInstances, cached.metadata);
      if (vmi.metadata.uid !== cached.metadata.uid || !vmi.metadata.finalizers?.includes(VM_FINALIZER))
        return;
      const metadata = {
        ...vmi.metadata,
        finalizers: vmi.metadata.finalizers.filter((name) => name !== VM_FINALIZER),
      };
      await client.update(virtualMachineInstances, { ...vmi, metadata }, WRITE);
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  };

  const remove = async (vm: VirtualMachine): Promise<void> => {
    await options.deleteDisk(vm.metadata.namespace ?? '', vm.metadata.uid ?? '');
    const finalizers = (vm.metadata.finalizers ?? []).filter((name) => name !== VM_FINALIZER);
    await client.update(virtualMachines, { ...vm, metadata: { ...vm.metadata, finalizers } }, WRITE);
  };

  const reconcile = async (key: string): Promise<void | { requeueAfter: number }> => {
    let vm = vms.get(key);
    const cached = vmis.get(key);
    if (!vm) return;
    const vmi = cached && controllerOf(cached)?.uid === vm.metadata.uid ? cached : undefined;
    let outcome: Outcome;
    if (vm.metadata.deletionTimestamp !== undefined) {
      if (!vm.metadata.finalizers?.includes(VM_FINALIZER)) return;
      if (!vmi && !(await liveVmi(key, vm))) return remove(vm);
      outcome = vmi ? await stopVmi(vm, vmi) : { vmi, starting: false, stopping: false };
    } else {
      if (!vm.metadata.finalizers?.includes(VM_FINALIZER)) {
        const finalizers = [...(vm.metadata.finalizers ?? []), VM_FINALIZER];
        vm = await client.update(virtualMachines, { ...vm, metadata: { ...vm.metadata, finalizers } }, WRITE);
      }
      outcome = await syncRunStrategy(vm, vmi);
    }
    await saveStatus(vm, outcome);
    if (vmi) await releaseVmi(vmi);
    return outcome.again === undefined ? undefined : { requeueAfter: outcome.again };
  };

  /** The cache may be behind: before the disk goes, the API is asked whether a machine still has it. */
  const liveVmi = async (key: string, vm: VirtualMachine): Promise<boolean> => {
    try {
      const vmi = await client.get(virtualMachineInstances, splitKey(key));
      return controllerOf(vmi)?.uid === vm.metadata.uid;
    } catch (error) {
      if (isNotFound(error)) return false;
      throw error;
    }
  };

  return {
    async stop() {
      for (const watch of watches) watch.stop();
      await loop.stop();
    },
  };
}
