import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { parseKubeconfig } from '#server/client';
import { virtualMachineInstances, virtualMachines } from '#server/clouds/kubevirt';
import { isNotFound, nodes, pods, type Resource, secrets } from '#server/kube';
import { conditionOf, isTrue } from './conditions.ts';
import { clusters, type Machine, machineDeployments, machineSets, machines } from './core-resources.ts';
import { kubeadmConfigs, kubeadmConfigTemplates, kubeadmControlPlanes } from './kubeadm-resources.ts';
import { kubevirtClusters, kubevirtMachines, kubevirtMachineTemplates } from './kubevirt-resources.ts';
import {
  CLUSTER,
  cluster,
  configTemplate,
  controlPlane,
  deployment,
  kubevirtCluster,
  machineTemplate,
  NAMESPACE,
} from './testing/manifests.ts';
import { createWorld, names, type World } from './testing/world.ts';
import { PATCH_PROVIDER_ID_ANNOTATION } from './vocabulary.ts';

const in_ = (name: string) => ({ namespace: NAMESPACE, name });

async function apply(
  world: World,
  replicas: number,
  annotations: Record<string, string> = {},
): Promise<void> {
  const { client } = world;
  await client.create(clusters, cluster);
  await client.create(kubevirtClusters, {
    ...kubevirtCluster,
    metadata: { ...kubevirtCluster.metadata, annotations },
  });
  await client.create(kubevirtMachineTemplates, machineTemplate(`${CLUSTER}-control-plane`));
  await client.create(kubeadmControlPlanes, controlPlane);
  await client.create(kubevirtMachineTemplates, machineTemplate(`${CLUSTER}-md-0`));
  await client.create(kubeadmConfigTemplates, configTemplate);
  await client.create(machineDeployments, deployment(replicas));
}

async function settled(world: World, workers: number): Promise<boolean> {
  const born = await world.client.get(clusters, in_(CLUSTER));
  const { status } = await world.client.get(machineDeployments, in_(`${CLUSTER}-md-0`));
  return (
    isTrue(born, 'Available') &&
    status?.availableReplicas === workers &&
    status.replicas === workers &&
    born.status?.workers?.availableReplicas === workers
  );
}

async function workersOf(world: World): Promise<Machine[]> {
  const { items } = await world.client.list(machines, { namespace: NAMESPACE });
  return items.filter((machine) => machine.metadata.name.includes('-md-0-'));
}

async function born(replicas: number, annotations?: Record<string, string>): Promise<World> {
  const made = createWorld();
  await made.start();
  await apply(made, replicas, annotations);
  await made.until('the cluster has settled', () => settled(made, replicas));
  return made;
}

async function isGone(promise: Promise<unknown>): Promise<boolean> {
  try {
    await promise;
    return false;
  } catch (error) {
    if (isNotFound(error)) return true;
    throw error;
  }
}

let world: World;
afterEach(async () => world.stop());

describe('killed at any point of a birth and started again', () => {
  it('comes to the same end, with no machine made twice', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: 120 }), { minLength: 1, maxLength: 4 }),
        async (turns) => {
          world = createWorld();
          await world.start();
          await apply(world, 1);
          for (const count of turns) {
            for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve));
            await world.kill();
            await world.start();
          }
          await world.until('the cluster has settled', () => settled(world, 1));
          const { client } = world;
          const made = names((await client.list(machines, { namespace: NAMESPACE })).items);
          expect(made).toHaveLength(2);
          for (const kind of [
            kubevirtMachines,
            kubeadmConfigs,
            virtualMachines,
            virtualMachineInstances,
          ] as Resource[]) {
            expect(names((await client.list(kind, { namespace: NAMESPACE })).items)).toEqual(made);
          }
          expect(names((await world.tenant.client().list(nodes, {})).items)).toEqual(made);
          expect((await client.list(machineSets, { namespace: NAMESPACE })).items).toHaveLength(1);
          expect(new Set(world.host.boots.map((boot) => boot.name)).size).toBe(2);
          await world.stop();
        },
      ),
      { numRuns: 12 },
    );
  }, 60_000);

  it('boots the machines that run again, from the same disks', async () => {
    world = await born(0);
    const [first] = world.host.boots;
    await world.kill();
    await world.start();
    await world.until('the machine was booted again', () => world.host.boots.length === 2);
    expect(world.host.boots[1]).toMatchObject({ name: first?.name, uid: first?.uid, diskId: first?.diskId });
    expect(world.host.deletedDisks).toEqual([]);
  });
});

describe('when nothing happens', () => {
  it('nothing is written', async () => {
    world = await born(1);
    await world.clock.advance(1000);
    const writes = (): number =>
      world.management.requests.filter(({ verb }) => verb !== 'get' && verb !== 'list').length;
    const before = writes();
    await world.clock.advance(240_000);
    expect(writes()).toBe(before);
  });
});

describe('when the listener has moved', () => {
  it('the kubeconfig follows, with the same certificate', async () => {
    world = await born(0);
    const read = async () => {
      const secret = await world.client.get(secrets, in_(`${CLUSTER}-kubeconfig`));
      return parseKubeconfig(Buffer.from(secret.data?.['value'] ?? '', 'base64').toString('utf8'));
    };
    const before = await read();
    await world.kill();
    world.listener = 'https://127.0.0.1:7443';
    await world.start();
    await world.until('the kubeconfig has followed', async () =>
      (await read()).server.startsWith('https://127.0.0.1:7443/'),
    );
    expect((await read()).certPem).toBe(before.certPem);
    await world.until('the cluster is available', () => settled(world, 0));
  });
});

describe('what is destroyed below Cluster API', () => {
  it('a deleted VMI comes back under its name, with another UID and the same disk', async () => {
    world = await born(0);
    const { client } = world;
    const [before] = (await client.list(virtualMachineInstances, { namespace: NAMESPACE })).items;
    const name = before?.metadata.name ?? '';
    await client.delete(virtualMachineInstances, in_(name));
    const isBack = async (): Promise<boolean> => {
      const now = await client.get(virtualMachineInstances, in_(name)).catch(() => undefined);
      return (
        now !== undefined && now.metadata.uid !== before?.metadata.uid && now.status?.phase === 'Running'
      );
    };
    await world.until('the VMI is back', isBack);
    const [first, second] = world.host.boots;
    expect(second).toMatchObject({ name, diskId: first?.diskId });
    expect(second?.uid).not.toBe(first?.uid);
    expect((await client.list(machines, { namespace: NAMESPACE })).items).toHaveLength(1);
    await world.until(
      'the old pod is gone',
      async () => (await client.list(pods, { namespace: NAMESPACE })).items.length === 1,
    );
  });

  it('a guest that powers itself off stays off when its VM is run manually', async () => {
    world = await born(0);
    const { client } = world;
    const name = world.host.boots[0]?.name ?? '';
    await client.patch(virtualMachines, in_(name), {
      type: 'merge',
      body: { spec: { runStrategy: 'Manual' } },
    });
    world.host.powerOff(name);
    await world.until(
      'the VM is stopped',
      async () => (await client.get(virtualMachines, in_(name))).status?.printableStatus === 'Stopped',
    );
    expect((await client.get(virtualMachineInstances, in_(name))).status?.phase).toBe('Succeeded');
    await client.patch(virtualMachines, in_(name), {
      type: 'merge',
      body: { spec: { runStrategy: 'Always' } },
    });
    await world.until(
      'it runs again',
      async () => (await client.get(virtualMachines, in_(name))).status?.printableStatus === 'Running',
    );
    expect(world.host.boots).toHaveLength(2);
  });

  it('a deleted VM is made again, with a fresh disk', async () => {
    world = await born(0);
    const { client } = world;
    const before = world.host.boots[0];
    await client.delete(virtualMachines, in_(before?.name ?? ''));
    await world.until('another VM boots', () => world.host.boots.length === 2);
    expect(world.host.deletedDisks).toEqual([before?.diskId]);
    expect(world.host.boots[1]).toMatchObject({ name: before?.name });
    expect(world.host.boots[1]?.diskId).not.toBe(before?.diskId);
  });
});

describe('scaling and deleting', () => {
  it('replaces a deleted worker by one of another name, and takes its Node away', async () => {
    world = await born(1);
    const [worker] = await workersOf(world);
    const name = worker?.metadata.name ?? '';
    await world.client.delete(machines, in_(name));
    const replaced = async (): Promise<boolean> =>
      (await isGone(world.client.get(machines, in_(name)))) && settled(world, 1);
    await world.until('the worker is replaced', replaced);
    const [next] = await workersOf(world);
    expect(next?.metadata.name).not.toBe(name);
    expect(names((await world.tenant.client().list(nodes, {})).items)).not.toContain(name);
    expect(await isGone(world.client.get(virtualMachines, in_(name)))).toBe(true);
    expect(await isGone(world.client.get(secrets, in_(`${name}-userdata`)))).toBe(true);
  });

  it('scales up and down, and says so in events', async () => {
    world = await born(0);
    const scale = (replicas: number) =>
      world.client.patch(machineDeployments, in_(`${CLUSTER}-md-0`), {
        type: 'merge',
        body: { spec: { replicas } },
      });
    await scale(2);
    await world.until('two workers', () => settled(world, 2));
    await scale(1);
    await world.until('one worker', () => settled(world, 1));
    expect(await workersOf(world)).toHaveLength(1);
    const events = world.management.requests
      .filter((request) => request.resource.plural === 'events' && request.verb === 'create')
      .map(
        (request) => request.body as { reason: string; message: string; involvedObject: { kind: string } },
      );
    const scaled = events.filter((event) => event.reason === 'SuccessfulScale').map((event) => event.message);
    expect(scaled).toEqual([
      expect.stringMatching(/^Scaled up MachineSet .*: 0 -> 2$/),
      expect.stringMatching(/^Scaled down MachineSet .*: 2 -> 1$/),
    ]);
  });

  it('does nothing while the cluster is paused', async () => {
    world = await born(1);
    const { client } = world;
    await client.patch(clusters, in_(CLUSTER), { type: 'merge', body: { spec: { paused: true } } });
    await world.until('the pause is reported', async () =>
      isTrue(await client.get(clusters, in_(CLUSTER)), 'Paused'),
    );
    const [worker] = await workersOf(world);
    await client.delete(virtualMachines, in_(worker?.metadata.name ?? ''));
    await world.until('the VM is gone', () =>
      isGone(client.get(virtualMachines, in_(worker?.metadata.name ?? ''))),
    );
    await world.clock.advance(60_000);
    expect(await isGone(client.get(virtualMachines, in_(worker?.metadata.name ?? '')))).toBe(true);
    await client.patch(clusters, in_(CLUSTER), { type: 'merge', body: { spec: { paused: false } } });
    await world.until(
      'the VM is made again',
      async () => !(await isGone(client.get(virtualMachines, in_(worker?.metadata.name ?? '')))),
    );
  });

  it('deletes a cluster in order and leaves nothing behind', async () => {
    world = await born(1);
    const { client } = world;
    await client.delete(clusters, in_(CLUSTER));
    await world.until('the cluster is gone', () => isGone(client.get(clusters, in_(CLUSTER))));
    for (const kind of [
      machines,
      machineSets,
      machineDeployments,
      kubeadmControlPlanes,
      kubevirtClusters,
      kubevirtMachines,
    ] as Resource[]) {
      expect((await client.list(kind, { namespace: NAMESPACE })).items, kind.plural).toEqual([]);
    }
    await world.until(
      'the machines are gone',
      async () => (await client.list(virtualMachines, { namespace: NAMESPACE })).items.length === 0,
    );
    const deletions = world.management.requests
      .filter((request) => request.verb === 'delete')
      .map((request) => request.resource.plural);
    const order = [
      'machinedeployments',
      'machinesets',
      'machines',
      'kubeadmcontrolplanes',
      'kubevirtclusters',
    ].map((plural) => deletions.indexOf(plural));
    expect([...order].sort((a, b) => a - b)).toEqual(order);
  });

  it('rolls the control plane Machine out of the way when its version changes', async () => {
    world = await born(0);
    const { client } = world;
    const [old] = (await client.list(machines, { namespace: NAMESPACE })).items;
    await client.patch(kubeadmControlPlanes, in_(`${CLUSTER}-control-plane`), {
      type: 'merge',
      body: { spec: { version: 'v1.37.0' } },
    });
    const rolled = async (): Promise<boolean> => {
      const { items } = await client.list(machines, { namespace: NAMESPACE });
      return (
        items.length === 1 && items[0]?.metadata.name !== old?.metadata.name && isTrue(items[0], 'Available')
      );
    };
    await world.until('the new Machine stands alone', rolled);
    const [now] = (await client.list(machines, { namespace: NAMESPACE })).items;
    expect(now?.spec.version).toBe('v1.37.0');
    expect(conditionOf(now, 'UpToDate')?.status).toBe('True');
  });
});

describe('who writes the providerID', () => {
  it('is the KubeVirt provider too, when the KubevirtCluster asks for it', async () => {
    world = await born(0, { [PATCH_PROVIDER_ID_ANNOTATION]: 'true' });
    const [machine] = (await world.client.list(kubevirtMachines, { namespace: NAMESPACE })).items;
    const writers = world.tenant.requests
      .filter((request) => request.verb === 'patch' && JSON.stringify(request.body).includes('providerID'))
      .map((request) => request.userAgent);
    expect(writers.length).toBeGreaterThan(0);
    expect(machine?.status?.ready).toBe(true);
  });
});
