import type { Clock, Ids, Logger } from '#server/base';
import { type Client, createEventRecorder, createInformerFactory } from '#server/client';
import { startVirtHandler, type VirtHandler } from './handler.ts';
import { createVirtLaunchers, type VirtLaunchers } from './launcher.ts';
import type { GuestAccess, MachineHost } from './machine.ts';
import { startVmController } from './vm-controller.ts';
import { startVmiController } from './vmi-controller.ts';

export interface KubeVirtOptions {
  /** May read and write kubevirt.io, pods, nodes and events, and read Secrets, in the cluster that hosts the machines. */
  client: Client;
  clock: Clock;
  ids: Ids;
  log: Logger;
  host: MachineHost;
  /** The meeting point with the virt-launcher program of the image catalogue; without one, launchers just run. */
  launchers?: VirtLaunchers;
  /** Simulated delays in milliseconds, asked for each time. */
  delays: { boot(): number };
}

export interface KubeVirt {
  /** Resolves when the caches are filled and the controllers run. */
  start(): Promise<void>;
  /** Stops the controllers, then cuts the power of all machines. */
  stop(): Promise<void>;
  readonly guests: GuestAccess;
}

/**
 * KubeVirt for one cluster: virt-controller's two loops and virt-handler. Starting it again, also after the process was
 * killed, resumes from what the API says.
 */
export function createKubeVirt(options: KubeVirtOptions): KubeVirt {
  const { client, clock, ids, host } = options;
  const log = options.log.child({ component: 'kubevirt' });
  const launchers = options.launchers ?? createVirtLaunchers();
  let running: { handler: VirtHandler; stop(): Promise<void> } | undefined;

  const start = async (): Promise<void> => {
    const informers = createInformerFactory({ client, clock, log });
    const controllerEvents = createEventRecorder({
      client,
      component: 'virtualmachine-controller',
      clock,
      ids,
      log,
    });
    const handlerEvents = createEventRecorder({ client, component: 'virt-handler', clock, ids, log });
    let filled: Promise<void> | undefined;
    const shared = { client, informers, clock, log, ready: () => (filled ??= informers.synced()) };
    const vmController = startVmController({
      ...shared,
      ids,
      recorder: controllerEvents,
      deleteDisk: (namespace, diskId) => host.deleteDisk(namespace, diskId),
    });
    const vmiController = startVmiController({ ...shared, recorder: controllerEvents });
    const handler = startVirtHandler({
      ...shared,
      recorder: handlerEvents,
      launchers,
      host,
      bootDelay: () => options.delays.boot(),
    });
    running = {
      handler,
      async stop() {
        informers.stop();
        await Promise.all([vmController.stop(), vmiController.stop()]);
        await handler.stop();
        controllerEvents.stop();
        handlerEvents.stop();
      },
    };
    informers.start();
    await informers.synced();
  };

  return {
    start,
    async stop() {
      const current = running;
      running = undefined;
      await current?.stop();
    },
    guests: {
      readFile: (namespace, machine, path) => running?.handler.guests.readFile(namespace, machine, path),
      watch: (namespace, machine, path, onChange) =>
        running?.handler.guests.watch?.(namespace, machine, path, onChange) ?? { stop: () => undefined },
    },
  };
}
