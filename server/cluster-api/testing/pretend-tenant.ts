import { parse } from 'yaml';
import type { Client } from '#server/client';
import type { FakeBackend } from '#server/client/testing';
import type { MachineHost, MachineSpec, RunningMachine } from '#server/clouds/kubevirt';
import { createGuestFiles } from '#server/clouds/kubevirt/testing';
import { configMaps, isAlreadyExists, isNotFound, type Node, nodes, type Pod, pods } from '#server/kube';

const SENTINEL = '/run/cluster-api/bootstrap-success.complete';
const STATIC_PODS = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'];

interface Registration {
  taints?: Node['spec'] extends infer S ? (S extends { taints?: infer T } ? T : never) : never;
}

/** What kubeadm would do with the documents a cloud-config has it read. */
interface UserData {
  write_files: { path: string; content: string }[];
  runcmd: string[];
}

/** A MachineHost whose machines do what cloud-init, kubeadm and the kubelet would: a Node appears in the tenant's API. */
export interface PretendHost extends MachineHost {
  readonly boots: MachineSpec[];
  readonly machines: Map<string, RunningMachine>;
  readonly deletedDisks: string[];
  /** Runs the guest's own poweroff. */
  powerOff(name: string): void;
  /** False: cloud-init never gets to kubeadm. */
  bootstraps: boolean;
}

function parseUserData(text: string): UserData {
  return parse(text) as UserData;
}

function documents(
  userData: UserData,
  path: string,
): Record<string, { nodeRegistration?: Registration; controlPlane?: object }> {
  const file = userData.write_files.find((candidate) => candidate.path === path);
  const parts = (file?.content ?? '').split(/^---\n/m).filter((part) => part.trim() !== '');
  return Object.fromEntries(
    parts.map((part) => {
      const document = parse(part) as {
        kind: string;
        nodeRegistration?: Registration;
        controlPlane?: object;
      };
      return [document.kind, document];
    }),
  );
}

async function ignoreExisting(promise: Promise<unknown>): Promise<void> {
  try {
    await promise;
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
}

function staticPod(component: string, node: string): Pod {
  const ready = { type: 'Ready', status: 'True' };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `${component}-${node}`,
      namespace: 'kube-system',
      labels: { component, tier: 'control-plane' },
      annotations: { 'kubernetes.io/config.mirror': 'x' },
    },
    spec: { nodeName: node, containers: [{ name: component }] },
    status: { phase: 'Running', conditions: [ready] },
  };
}

async function join(
  tenant: Client,
  name: string,
  ip: string,
  registration: Registration | undefined,
  controlPlane: boolean,
): Promise<void> {
  const cloud = {
    key: 'node.cloudprovider.kubernetes.io/uninitialized',
    value: 'true',
    effect: 'NoSchedule',
  };
  const conditions = [
    ['Ready', 'True'],
    ['MemoryPressure', 'False'],
    ['DiskPressure', 'False'],
    ['PIDPressure', 'False'],
  ].map(([type = '', status = '']) => ({ type, status }));
  const node: Node = {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: controlPlane ? { 'node-role.kubernetes.io/control-plane': '' } : {} },
    spec: { taints: [cloud, ...(registration?.taints ?? [])] },
    status: {
      conditions,
      addresses: [
        { type: 'InternalIP', address: ip },
        { type: 'Hostname', address: name },
      ],
    },
  };
  await ignoreExisting(tenant.create(nodes, node));
  if (!controlPlane) return;
  for (const component of STATIC_PODS) await ignoreExisting(tenant.create(pods, staticPod(component, name)));
}

export function createPretendHost(tenant: FakeBackend): PretendHost {
  const client = tenant.client({ userAgent: 'kubelet/v1.36.3' });
  const disks = new Map<string, RunningMachine['files']>();
  const ends = new Map<string, () => void>();
  const host: PretendHost = {
    boots: [],
    machines: new Map(),
    deletedDisks: [],
    bootstraps: true,
    powerOff: (name) => ends.get(name)?.(),
    async boot(spec) {
      host.boots.push(spec);
      const files = disks.get(spec.diskId) ?? createGuestFiles();
      disks.set(spec.diskId, files);
      let end: (how: { how: 'poweroff' | 'crash' }) => void = () => undefined;
      const ended = new Promise<{ how: 'poweroff' | 'crash' }>((resolve) => {
        end = resolve;
      });
      ends.set(spec.name, () => end({ how: 'poweroff' }));
      const machine: RunningMachine = {
        spec,
        ended,
        files,
        guest: { osName: 'Ubuntu', osVersion: '26.04.1 LTS', kernel: '6.14.0' },
        shutdown: async () => end({ how: 'poweroff' }),
        destroy: async () => end({ how: 'crash' }),
      };
      host.machines.set(spec.name, machine);
      if (host.bootstraps) setImmediate(() => void bootstrap(spec, files));
      return machine;
    },
    async deleteDisk(_namespace, diskId) {
      disks.delete(diskId);
      host.deletedDisks.push(diskId);
    },
  };
  const bootstrap = async (spec: MachineSpec, files: RunningMachine['files']): Promise<void> => {
    const userData = parseUserData(spec.userData);
    if (userData.runcmd.some((line) => line.startsWith('kubeadm init'))) {
      tenant.reachable = true;
      const { InitConfiguration } = documents(userData, '/run/kubeadm/kubeadm.yaml');
      await ignoreExisting(
        client.create(configMaps, {
          metadata: { name: 'kubeadm-config', namespace: 'kube-system' },
          data: {},
        }),
      );
      await join(client, spec.name, spec.ip, InitConfiguration?.nodeRegistration, true);
    } else {
      const { JoinConfiguration } = documents(userData, '/run/kubeadm/kubeadm-join-config.yaml');
      await join(
        client,
        spec.name,
        spec.ip,
        JoinConfiguration?.nodeRegistration,
        JoinConfiguration?.controlPlane !== undefined,
      );
    }
    files.writeFile(SENTINEL, 'success\n');
  };
  return host;
}

/** The cloud-controller-manager, as far as a birth needs it: the providerID, and its taint gone. */
export function startPretendCcm(tenant: FakeBackend): { stop(): void } {
  const client = tenant.client({ userAgent: 'kubevirt-cloud-controller-manager/v0.6.0' });
  const initialize = async (node: Node): Promise<void> => {
    if (node.spec?.providerID) return;
    const taints = (node.spec?.taints ?? []).filter(
      (taint) => taint.key !== 'node.cloudprovider.kubernetes.io/uninitialized',
    );
    try {
      await client.patch(
        nodes,
        { name: node.metadata.name },
        { type: 'merge', body: { spec: { providerID: `kubevirt://${node.metadata.name}`, taints } } },
      );
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  };
  let stopped = false;
  let watch = { stop: (): void => undefined };
  const follow = (): void => {
    watch = client.watch(
      nodes,
      {},
      ({ type, object }) => {
        // Later: a write from within a watch callback would overtake the event it answers.
        if (type === 'ADDED' || type === 'MODIFIED') queueMicrotask(() => void initialize(object));
      },
      () => {
        if (!stopped) setImmediate(follow);
      },
    );
  };
  follow();
  return {
    stop() {
      stopped = true;
      watch.stop();
    },
  };
}
