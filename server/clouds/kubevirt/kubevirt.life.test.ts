import { afterEach, describe, expect, it } from 'vitest';
import { createManualClock, createSeededIds, type ManualClock, silentLogger } from '#server/base';
import { type Client, createInProcessClient } from '#server/client';
import { createFakeBackend, type FakeBackend } from '#server/client/testing';
import { isNotFound, nodes, pods, secrets } from '#server/kube';
import { createKubeVirt, type KubeVirt } from './kubevirt.ts';
import { createVirtLaunchers } from './launcher.ts';
import type { MachineHost, MachineSpec, RunningMachine } from './machine.ts';
import {
  type RunStrategy,
  type VirtualMachine,
  type VirtualMachineInstance,
  virtualMachineInstances,
  virtualMachines,
} from './resources.ts';
import {
  createGuestFiles,
  type PretendKubelet,
  startPretendKubelet,
  withoutInstanceStatus,
} from './testing/index.ts';

const NAMESPACE = 'handson-alice';
const in_ = (name: string) => ({ namespace: NAMESPACE, name });

/** A host whose machines do nothing; `shutsDown: false` makes guests that ignore ACPI. */
function createHost() {
  const host = {
    boots: [] as MachineSpec[],
    deleted: [] as string[],
    calls: [] as string[],
    shutsDown: true,
    end: (_how: 'poweroff' | 'crash'): void => undefined,
    async boot(spec: MachineSpec): Promise<RunningMachine> {
      host.boots.push(spec);
      let end: (result: { how: 'poweroff' | 'crash' }) => void = () => undefined;
      const ended = new Promise<{ how: 'poweroff' | 'crash' }>((resolve) => {
        end = resolve;
      });
      host.end = (how) => end({ how });
      return {
        spec,
        ended,
        files: createGuestFiles(),
        guest: { osName: 'Ubuntu', osVersion: '26.04.1 LTS', kernel: '6.14.0' },
        shutdown: async () => {
          host.calls.push('shutdown');
          if (!host.shutsDown) await new Promise(() => undefined);
          end({ how: 'poweroff' });
        },
        destroy: async () => {
          host.calls.push('destroy');
          end({ how: 'crash' });
        },
      };
    },
    async deleteDisk(_namespace: string, diskId: string): Promise<void> {
      host.deleted.push(diskId);
    },
  };
  return host satisfies MachineHost;
}

interface World {
  backend: FakeBackend;
  client: Client;
  clock: ManualClock;
  host: ReturnType<typeof createHost>;
  kubelet: PretendKubelet;
  kubeVirt: KubeVirt;
  until(what: string, condition: () => Promise<boolean> | boolean): Promise<void>;
}

let world: World;
afterEach(async () => {
  await world.kubeVirt.stop();
  world.kubelet.stop();
});

async function start(): Promise<World> {
  const clock = createManualClock();
  const backend = createFakeBackend({ clock, ids: createSeededIds(3) });
  const client = createInProcessClient({
    backend: withoutInstanceStatus(backend),
    user: { name: 'operator', groups: ['system:masters'] },
    userAgent: 'virt-controller/v1',
  });
  const launchers = createVirtLaunchers();
  const host = createHost();
  const kubelet = startPretendKubelet(client, launchers, clock);
  const kubeVirt = createKubeVirt({
    client,
    clock,
    ids: createSeededIds(5),
    log: silentLogger,
    host,
    launchers,
    delays: { boot: () => 0 },
  });
  await kubeVirt.start();
  world = {
    backend,
    client,
    clock,
    host,
    kubelet,
    kubeVirt,
    async until(what, condition) {
      for (let turn = 0; turn < 5000; turn += 1) {
        if (await condition()) return;
        await new Promise((resolve) => setImmediate(resolve));
        if (turn % 20 === 0) await clock.advance(1);
      }
      throw new Error(`it never came about that ${what}`);
    },
  };
  return world;
}

function instanceSpec(): VirtualMachineInstance['spec'] {
  return {
    domain: {
      cpu: { cores: 2, sockets: 2 },
      memory: { guest: '4Gi' },
      devices: { disks: [{ name: 'root', disk: { bus: 'virtio' } }] },
    },
    volumes: [
      { name: 'root', containerDisk: { image: 'x' } },
      { name: 'init', cloudInitNoCloud: { secretRef: { name: 'user-data' } } },
    ],
    terminationGracePeriodSeconds: 60,
  };
}

function vm(name: string, runStrategy: RunStrategy): VirtualMachine {
  const labels = { 'cluster.x-k8s.io/role': 'worker' };
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name, namespace: NAMESPACE },
    spec: { runStrategy, template: { metadata: { labels }, spec: instanceSpec() } },
  };
}

async function createUserData(): Promise<void> {
  await world.client.create(secrets, {
    metadata: { name: 'user-data', namespace: NAMESPACE },
    data: { userdata: Buffer.from('#cloud-config\n').toString('base64') },
  });
}

const vmi = (name = 'box') => world.client.get(virtualMachineInstances, in_(name));
const status = async (name = 'box') =>
  (await world.client.get(virtualMachines, in_(name))).status?.printableStatus;
const phase = async (name = 'box') => (await vmi(name).catch(() => undefined))?.status?.phase;
const isGone = (promise: Promise<unknown>): Promise<boolean> =>
  promise.then(
    () => false,
    (error: unknown) => isNotFound(error),
  );

async function running(strategy: RunStrategy = 'Always'): Promise<void> {
  await start();
  await createUserData();
  await world.client.create(virtualMachines, vm('box', strategy));
  await world.until('the VM runs', async () => (await status()) === 'Running');
}

describe('a VirtualMachine that is to run', () => {
  it('gets a VMI, a virt-launcher pod and a booted guest, with everything that belongs to them', async () => {
    await running();
    const instance = await vmi();
    const box = await world.client.get(virtualMachines, in_('box'));
    expect(instance.metadata).toMatchObject({
      labels: { 'cluster.x-k8s.io/role': 'worker', 'kubevirt.io/nodeName': 'infra-1' },
      finalizers: [
        'kubevirt.io/virtualMachineControllerFinalize',
        'kubevirt.io/foregroundDeleteVirtualMachine',
      ],
      ownerReferences: [{ kind: 'VirtualMachine', name: 'box', uid: box.metadata.uid, controller: true }],
    });
    const [pod] = (await world.client.list(pods, { namespace: NAMESPACE })).items;
    expect(pod?.metadata).toMatchObject({
      name: expect.stringMatching(/^virt-launcher-box-[bcdfghjklmnpqrstvwxz2456789]{5}$/) as string,
      labels: {
        'kubevirt.io': 'virt-launcher',
        'kubevirt.io/created-by': instance.metadata.uid,
        'cluster.x-k8s.io/role': 'worker',
      },
      ownerReferences: [{ kind: 'VirtualMachineInstance', name: 'box', controller: true }],
    });
    expect(pod?.spec.containers).toMatchObject([
      {
        name: 'compute',
        image: 'quay.io/kubevirt/virt-launcher:v1.7.0',
        resources: { requests: { cpu: '400m', memory: '4396Mi' } },
      },
    ]);
    expect(world.host.boots).toEqual([
      {
        namespace: NAMESPACE,
        name: 'box',
        uid: instance.metadata.uid,
        diskId: box.metadata.uid,
        hostname: 'box',
        ip: '10.0.1.11',
        labels: instance.metadata.labels,
        userData: '#cloud-config\n',
        cpus: 4,
        memory: 4 * 1024 ** 3,
      },
    ]);
    expect(instance.status).toMatchObject({
      activePods: { [pod?.metadata.uid ?? '']: 'infra-1' },
      guestOSInfo: { name: 'Ubuntu' },
      interfaces: [{ name: 'default', ipAddress: '10.0.1.11' }],
    });
  });

  it('waits for the Secret its user data is in', async () => {
    await start();
    await world.client.create(virtualMachines, vm('box', 'Always'));
    await world.until('the VMI is scheduled', async () => (await phase()) === 'Scheduled');
    await world.clock.advance(200);
    expect(world.host.boots).toEqual([]);
    await createUserData();
    await world.until('the VM runs', async () => (await status()) === 'Running');
  });

  it('says why its pod cannot be placed, or its image not be pulled', async () => {
    await start();
    await createUserData();
    world.kubelet.hold = {
      phase: 'Pending',
      conditions: [
        {
          type: 'PodScheduled',
          status: 'False',
          reason: 'Unschedulable',
          message: '0/3 nodes are available',
        },
      ],
    };
    await world.client.create(virtualMachines, vm('nowhere', 'Always'));
    await world.until('the VM says so', async () => (await status('nowhere')) === 'ErrorUnschedulable');
    world.kubelet.hold = {
      phase: 'Pending',
      containerStatuses: [
        {
          name: 'compute',
          ready: false,
          restartCount: 0,
          image: 'x',
          imageID: '',
          state: { waiting: { reason: 'ErrImagePull', message: 'no such image' } },
        },
      ],
    };
    await world.client.create(virtualMachines, vm('noimage', 'Always'));
    await world.until('the VM says so', async () => (await status('noimage')) === 'ErrImagePull');
  });

  it('marks nodes that may carry machines', async () => {
    await start();
    await world.client.create(nodes, { metadata: { name: 'infra-9' }, spec: {} });
    await world.until(
      'the node is marked',
      async () =>
        (await world.client.get(nodes, { name: 'infra-9' })).metadata.labels?.['kubevirt.io/schedulable'] ===
        'true',
    );
  });
});

describe('run strategies', () => {
  it.each([
    ['Always', 'poweroff', 2],
    ['Always', 'crash', 2],
    ['RerunOnFailure', 'crash', 2],
    ['RerunOnFailure', 'poweroff', 1],
    ['Once', 'crash', 1],
    ['Manual', 'poweroff', 1],
  ] as const)('%s after a %s: booted %i times', async (strategy, how, boots) => {
    const manual = strategy === 'Manual';
    await running(manual ? 'Always' : strategy);
    if (manual)
      await world.client.patch(virtualMachines, in_('box'), {
        type: 'merge',
        body: { spec: { runStrategy: 'Manual' } },
      });
    world.host.end(how);
    if (boots === 2)
      await world.until(
        'it was booted again',
        async () => world.host.boots.length === 2 && (await status()) === 'Running',
      );
    else await world.until('it stays off', async () => (await status()) === 'Stopped');
    await world.clock.advance(1000);
    expect(world.host.boots).toHaveLength(boots);
  });

  it('Halted stops what runs, gracefully, and keeps the disk', async () => {
    await running();
    await world.client.patch(virtualMachines, in_('box'), {
      type: 'merge',
      body: { spec: { runStrategy: 'Halted' } },
    });
    await world.until('the VMI is gone', () => isGone(vmi()));
    await world.until('the VM says so', async () => (await status()) === 'Stopped');
    expect(world.host.calls).toEqual(['shutdown']);
    expect(world.host.deleted).toEqual([]);
  });
});

describe('deletion', () => {
  it('of a VM shuts the guest down, then takes VMI, pod and disk away', async () => {
    await running();
    const uid = (await world.client.get(virtualMachines, in_('box'))).metadata.uid;
    await world.client.delete(virtualMachines, in_('box'));
    await world.until('the VM is gone', () => isGone(world.client.get(virtualMachines, in_('box'))));
    expect(await isGone(vmi())).toBe(true);
    expect((await world.client.list(pods, { namespace: NAMESPACE })).items).toEqual([]);
    expect(world.host.calls).toEqual(['shutdown']);
    expect(world.host.deleted).toEqual([uid]);
  });

  it('cuts the power of a guest that does not shut down in time', async () => {
    await running();
    world.host.shutsDown = false;
    await world.client.delete(virtualMachines, in_('box'));
    await world.until('it was asked to', () => world.host.calls.length === 1);
    expect(await phase()).toBe('Running');
    await world.clock.advance(60_000);
    await world.until('the VM is gone', () => isGone(world.client.get(virtualMachines, in_('box'))));
    expect(world.host.calls).toEqual(['shutdown', 'destroy']);
  });

  it('of the pod ends this run, and the next begins', async () => {
    await running();
    const [pod] = (await world.client.list(pods, { namespace: NAMESPACE })).items;
    await world.client.delete(pods, in_(pod?.metadata.name ?? ''));
    await world.until(
      'it was booted again',
      async () => world.host.boots.length === 2 && (await status()) === 'Running',
    );
    expect(world.host.boots[1]?.diskId).toBe(world.host.boots[0]?.diskId);
  });

  it('of a VMI that stands alone takes its disk along', async () => {
    await start();
    await createUserData();
    await world.client.create(virtualMachineInstances, {
      metadata: { name: 'alone', namespace: NAMESPACE },
      spec: instanceSpec(),
    });
    await world.until('it runs', async () => (await phase('alone')) === 'Running');
    const uid = (await vmi('alone')).metadata.uid;
    await world.client.delete(virtualMachineInstances, in_('alone'));
    await world.until('it is gone', () => isGone(vmi('alone')));
    expect(new Set(world.host.deleted)).toEqual(new Set([uid]));
  });
});
