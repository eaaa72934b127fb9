import type { Clock, Logger } from '#server/base';
import { errorMessage } from '#server/base';
import { type Client, type EventRecorder, type InformerFactory } from '#server/client';
import {
  cloneJson,
  controllerOf,
  formatTime,
  isNotFound,
  type Node,
  nodes,
  objectKey,
  type Pod,
} from '#server/kube';
import { enterPhase } from './conditions.ts';
import { withRunningGuest } from './guest-status.ts';
import type { VirtLaunchers } from './launcher.ts';
import { cpusOf, DEFAULT_GRACE_SECONDS, memoryOf } from './launcher-pod.ts';
import { startLoop } from './loop.ts';
import type { GuestAccess, MachineHost, RunningMachine } from './machine.ts';
import {
  CREATED_BY_LABEL,
  isFinal,
  type VirtualMachineInstance,
  type VirtualMachineInstancePhase,
  VMI_FINALIZER,
  virtualMachineInstances,
} from './resources.ts';
import { readUserData } from './user-data.ts';
import { launcherPods } from './vmi-controller.ts';

export interface HandlerOptions {
  client: Client;
  informers: InformerFactory;
  recorder: EventRecorder;
  launchers: VirtLaunchers;
  host: MachineHost;
  clock: Clock;
  log: Logger;
  /** Resolves when the informers' caches are filled. */
  ready: () => Promise<void>;
  /** Milliseconds a machine takes from power-on to a running kernel. */
  bootDelay(): number;
}

export interface VirtHandler {
  readonly guests: GuestAccess;
  /** Stops watching and cuts the power of every machine; their VMIs keep saying Running, so a later start boots them again. */
  stop(): Promise<void>;
}

/** A guest this handler has, from before it boots until it is off. */
interface Guest {
  readonly uid: string;
  readonly key: string;
  machine?: RunningMachine;
  /** Set once it is off. */
  ended?: 'poweroff' | 'crash';
  /** Somebody asked it to go off. */
  stopping?: boolean;
}

const WORKERS = 10;
const WRITE = { fieldManager: 'virt-handler' };
const SCHEDULABLE_LABEL = 'kubevirt.io/schedulable';

/** UID of whoever owns the disk: the VM, or a VMI that stands alone. */
function diskOf(vmi: VirtualMachineInstance): string {
  return controllerOf(vmi)?.uid ?? vmi.metadata.uid ?? '';
}

/**
 * Runs the guests of VMIs that were scheduled, on all nodes at once. Models kubevirt pkg/virt-handler (vm.go): boots,
 * reports, shuts down gracefully. A VMI that says Running but has no guest here (this process is new) is booted again
 * from the same disk.
 */
export function startVirtHandler(options: HandlerOptions): VirtHandler {
  const { client, recorder, launchers, host, clock, log } = options;
  const vmis = options.informers.informer(virtualMachineInstances);
  const pods = launcherPods(options.informers);
  const guests = new Map<string, Guest>();
  const byUid = new Map<string, Guest>();
  const loop = startLoop({
    name: 'virt-handler',
    workers: WORKERS,
    clock,
    log,
    ready: options.ready,
    reconcile: (key) => reconcile(key),
  });
  const enqueue = (vmi: VirtualMachineInstance): void => loop.enqueue(objectKey(vmi));
  const enqueueOwner = (pod: Pod): void => {
    const owner = controllerOf(pod);
    if (owner) loop.enqueue(`${pod.metadata.namespace ?? ''}/${owner.name}`);
  };
  const watches = [
    vmis.on({ added: enqueue, updated: (_, vmi) => enqueue(vmi), deleted: enqueue }),
    pods.on({ added: enqueueOwner, updated: (_, pod) => enqueueOwner(pod), deleted: enqueueOwner }),
    watchNodes(options),
    launchers.listen({
      terminating(uid) {
        const guest = byUid.get(uid);
        if (!guest?.machine || guest.ended) return false;
        shutDown(guest, vmis.get(guest.key));
        return true;
      },
      killed(uid) {
        const guest = byUid.get(uid);
        if (guest?.machine && !guest.ended) void powerOff(guest);
      },
    }),
  ];

  const forget = (guest: Guest): void => {
    if (guests.get(guest.key) === guest) guests.delete(guest.key);
    byUid.delete(guest.uid);
  };

  const wentOff = (guest: Guest, how: 'poweroff' | 'crash'): void => {
    guest.ended ??= how;
    loop.enqueue(guest.key);
  };

  const powerOff = async (guest: Guest): Promise<void> => {
    try {
      await guest.machine?.destroy();
    } catch (error) {
      log.error({ machine: guest.key, error: errorMessage(error) }, 'a machine could not be powered off');
    }
    wentOff(guest, 'crash');
  };

  /** Asks the guest to shut down, once; after the grace period its power is cut. Does not wait. */
  const shutDown = (guest: Guest, vmi: VirtualMachineInstance | undefined): void => {
    if (guest.stopping) return;
    guest.stopping = true;
    const grace = (vmi?.spec.terminationGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS) * 1000;
    const limit = clock.after(grace, () => void powerOff(guest));
    void (async () => {
      try {
        await guest.machine?.shutdown();
        wentOff(guest, 'poweroff');
      } catch (error) {
        log.error({ machine: guest.key, error: errorMessage(error) }, 'a machine did not shut down');
        await powerOff(guest);
      } finally {
        limit.cancel();
      }
    })();
  };

  /** Writes how the run ended, lets the launcher go, forgets the guest. */
  const finish = async (vmi: VirtualMachineInstance, phase: VirtualMachineInstancePhase): Promise<void> => {
    const next = cloneJson(vmi);
    enterPhase((next.status ??= {}), phase, formatTime(clock.now()));
    await client.update(virtualMachineInstances, next, WRITE);
    if (phase === 'Succeeded')
      recorder.event(vmi, 'Normal', 'Stopped', 'The VirtualMachineInstance was shut down.');
    else recorder.event(vmi, 'Warning', 'Stopped', 'The VirtualMachineInstance crashed.');
    const guest = byUid.get(vmi.metadata.uid ?? '');
    if (guest) forget(guest);
    launchers.end(vmi.metadata.uid ?? '', 0);
  };

  const boot = async (key: string, vmi: VirtualMachineInstance, ip: string): Promise<void> => {
    const userData = await readUserData(client, vmi);
    const guest: Guest = { uid: vmi.metadata.uid ?? '', key };
    guests.set(key, guest);
    byUid.set(guest.uid, guest);
    try {
      const delay = options.bootDelay();
      if (delay > 0) await clock.sleep(delay);
      guest.machine = await host.boot({
        namespace: vmi.metadata.namespace ?? '',
        name: vmi.metadata.name,
        uid: guest.uid,
        diskId: diskOf(vmi),
        hostname: vmi.spec.hostname ?? vmi.metadata.name,
        ip,
        labels: vmi.metadata.labels ?? {},
        userData,
        cpus: cpusOf(vmi),
        memory: memoryOf(vmi),
      });
    } catch (error) {
      forget(guest);
      recorder.event(
        vmi,
        'Warning',
        'SyncFailed',
        `server error. command SyncVMI failed: ${errorMessage(error)}`,
      );
      throw error;
    }
    void guest.machine.ended.then(({ how }) => wentOff(guest, how));
  };

  const report = async (vmi: VirtualMachineInstance, machine: RunningMachine): Promise<void> => {
    recorder.event(vmi, 'Normal', 'Created', 'VirtualMachineInstance defined.');
    await client.update(
      virtualMachineInstances,
      withRunningGuest(vmi, machine, formatTime(clock.now())),
      WRITE,
    );
    recorder.event(vmi, 'Normal', 'Started', 'VirtualMachineInstance started.');
  };

  const syncDeleted = async (vmi: VirtualMachineInstance, guest: Guest | undefined): Promise<void> => {
    const phase = vmi.status?.phase;
    if (isFinal(vmi)) {
      if (!controllerOf(vmi)) await host.deleteDisk(vmi.metadata.namespace ?? '', diskOf(vmi));
      return;
    }
    if (guest?.ended) return finish(vmi, guest.ended === 'poweroff' ? 'Succeeded' : 'Failed');
    if (guest?.machine) {
      if (!guest.stopping) recorder.event(vmi, 'Normal', 'ShuttingDown', 'Signaled Graceful Shutdown');
      shutDown(guest, vmi);
      return;
    }
    if (!guest && (phase === 'Scheduled' || phase === 'Running'))
      await finish(vmi, phase === 'Running' ? 'Succeeded' : 'Failed');
    else if (phase === 'Scheduling' && !podOf(vmi)) await finish(vmi, 'Failed');
  };

  const podOf = (vmi: VirtualMachineInstance): Pod | undefined => {
    const owned = pods.byIndex('vmi', vmi.metadata.uid ?? '');
    return owned.find((pod) => pod.metadata.labels?.[CREATED_BY_LABEL] === vmi.metadata.uid);
  };

  const syncScheduled = async (
    key: string,
    vmi: VirtualMachineInstance,
    guest: Guest | undefined,
  ): Promise<void> => {
    const pod = podOf(vmi);
    const over = pod?.status?.phase === 'Failed' || pod?.status?.phase === 'Succeeded';
    if (guest?.ended) return finish(vmi, guest.ended === 'poweroff' ? 'Succeeded' : 'Failed');
    if (over || (!pod && guest)) {
      if (guest?.machine) await powerOff(guest);
      return finish(vmi, 'Failed');
    }
    const ip = pod?.status?.podIP;
    if (!guest) {
      if (!pod || pod.metadata.deletionTimestamp !== undefined || pod.status?.phase !== 'Running' || !ip)
        return;
      await boot(key, vmi, ip);
    }
    const machine = guests.get(key)?.machine;
    if (
      machine &&
      (vmi.status?.phase !== 'Running' || vmi.status.interfaces?.[0]?.ipAddress !== machine.spec.ip)
    )
      await report(vmi, machine);
  };

  const reconcile = async (key: string): Promise<void> => {
    const vmi = vmis.get(key);
    let guest = guests.get(key);
    if (guest && guest.uid !== vmi?.metadata.uid) {
      // The VMI was removed by force, or is already another: its guest has no right to run on.
      if (guest.machine && !guest.ended) await powerOff(guest);
      forget(guest);
      launchers.end(guest.uid, 1);
      guest = undefined;
    }
    if (!vmi) return;
    if (vmi.metadata.deletionTimestamp !== undefined) return syncDeleted(vmi, guest);
    if (isFinal(vmi)) {
      if (guest?.machine && !guest.ended) await powerOff(guest);
      if (guest) forget(guest);
      launchers.end(vmi.metadata.uid ?? '', 0);
      return;
    }
    if (!vmi.metadata.finalizers?.includes(VMI_FINALIZER)) return;
    const phase = vmi.status?.phase;
    if (phase === 'Scheduled' || phase === 'Running') await syncScheduled(key, vmi, guest);
  };

  return {
    guests: guestAccess((namespace, name) => guests.get(`${namespace}/${name}`)),
    async stop() {
      for (const watch of watches) watch.stop();
      await loop.stop();
      await Promise.all([...guests.values()].map((guest) => powerOff(guest)));
      guests.clear();
      byUid.clear();
    },
  };
}

/** Files of guests that run now, through their running machines. */
function guestAccess(find: (namespace: string, name: string) => Guest | undefined): GuestAccess {
  return {
    readFile(namespace, name, path) {
      const guest = find(namespace, name);
      if (!guest?.machine || guest.ended || !guest.machine.files.exists(path)) return undefined;
      return Buffer.from(guest.machine.files.readFile(path)).toString('utf8');
    },
    watch(namespace, name, path, onChange) {
      const guest = find(namespace, name);
      return guest?.machine ? guest.machine.files.watch(path, onChange) : { stop: () => undefined };
    },
  };
}

/** A node virt-handler runs on says so: launchers are only put on such nodes. */
function watchNodes({ informers, client, clock, log }: HandlerOptions): { stop(): void } {
  const mark = (node: Node): void => {
    if (node.metadata.labels?.[SCHEDULABLE_LABEL] === 'true') return;
    const metadata = {
      labels: { [SCHEDULABLE_LABEL]: 'true' },
      annotations: { 'kubevirt.io/heartbeat': formatTime(clock.now()) },
    };
    client
      .patch(nodes, { name: node.metadata.name }, { type: 'merge', body: { metadata } }, WRITE)
      .catch((error: unknown) => {
        if (!isNotFound(error))
          log.error(
            { node: node.metadata.name, error: errorMessage(error) },
            'a node could not be marked schedulable for machines',
          );
      });
  };
  return informers.informer(nodes).on({ added: mark, updated: (_, node) => mark(node) });
}
