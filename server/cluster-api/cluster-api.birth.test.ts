import { afterEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { parseKubeconfig } from '#server/client';
import { virtualMachineInstances, virtualMachines } from '#server/clouds/kubevirt';
import { nodes, secrets, services } from '#server/kube';
import { isTrue } from './conditions.ts';
import { clusters, machineDeployments, machineSets, machines } from './core-resources.ts';
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
import { createWorld, type World } from './testing/world.ts';

const decode = (text: string | undefined): string => Buffer.from(text ?? '', 'base64').toString('utf8');

async function apply(world: World, replicas = 0): Promise<void> {
  const { client } = world;
  await client.create(clusters, cluster);
  await client.create(kubevirtClusters, kubevirtCluster);
  await client.create(kubevirtMachineTemplates, machineTemplate(`${CLUSTER}-control-plane`));
  await client.create(kubeadmControlPlanes, controlPlane);
  await client.create(kubevirtMachineTemplates, machineTemplate(`${CLUSTER}-md-0`));
  await client.create(kubeadmConfigTemplates, configTemplate);
  await client.create(machineDeployments, deployment(replicas));
}

const isAvailable = (world: World) => async (): Promise<boolean> =>
  isTrue(await world.client.get(clusters, { namespace: NAMESPACE, name: CLUSTER }), 'Available');

let world: World;
afterEach(async () => world.stop());

describe('the birth of a cluster', () => {
  it('goes from a Cluster to an available one without waiting for any poll', async () => {
    world = createWorld();
    await world.start();
    await apply(world);
    const milliseconds = await world.until('the cluster is available', isAvailable(world));
    expect(milliseconds).toBeLessThan(1000);

    const { client } = world;
    const [machine] = (await client.list(machines, { namespace: NAMESPACE })).items;
    const name = machine?.metadata.name ?? '';
    expect(name).toMatch(new RegExp(`^${CLUSTER}-control-plane-[a-z0-9]{5}$`));
    expect(machine).toMatchObject({
      spec: {
        clusterName: CLUSTER,
        version: 'v1.36.3',
        providerID: `kubevirt://${name}`,
        bootstrap: { dataSecretName: name },
      },
      status: {
        phase: 'Running',
        nodeRef: { name },
        initialization: { bootstrapDataSecretCreated: true, infrastructureProvisioned: true },
      },
    });
    const born = await client.get(clusters, { namespace: NAMESPACE, name: CLUSTER });
    expect(born).toMatchObject({
      spec: { controlPlaneEndpoint: { host: '10.96.0.1', port: 6443 } },
      status: {
        phase: 'Provisioned',
        initialization: { infrastructureProvisioned: true, controlPlaneInitialized: true },
        controlPlane: {
          desiredReplicas: 1,
          replicas: 1,
          readyReplicas: 1,
          availableReplicas: 1,
          upToDateReplicas: 1,
        },
        workers: { desiredReplicas: 0, replicas: 0 },
      },
    });
    const kcp = await client.get(kubeadmControlPlanes, {
      namespace: NAMESPACE,
      name: `${CLUSTER}-control-plane`,
    });
    expect(kcp.status).toMatchObject({
      initialization: { controlPlaneInitialized: true },
      replicas: 1,
      readyReplicas: 1,
      version: 'v1.36.3',
    });
    for (const condition of kcp.status?.conditions ?? []) {
      const bad = ['RollingOut', 'ScalingUp', 'ScalingDown', 'Remediating', 'Deleting', 'Paused'].includes(
        condition.type,
      );
      expect(condition, condition.type).toMatchObject({ status: bad ? 'False' : 'True', message: '' });
    }
    const infrastructure = await client.get(kubevirtMachines, { namespace: NAMESPACE, name });
    expect(infrastructure).toMatchObject({
      spec: { providerID: `kubevirt://${name}` },
      status: { ready: true, initialization: { provisioned: true } },
    });
    expect(infrastructure.metadata.ownerReferences).toMatchObject([
      { kind: 'Machine', name, controller: true },
    ]);
    const vm = await client.get(virtualMachines, { namespace: NAMESPACE, name });
    expect(vm).toMatchObject({
      metadata: {
        labels: { 'cluster.x-k8s.io/role': 'control-plane', 'cluster.x-k8s.io/cluster-name': CLUSTER },
      },
      status: { printableStatus: 'Running', ready: true, created: true, runStrategy: 'Always' },
    });
    const vmi = await client.get(virtualMachineInstances, { namespace: NAMESPACE, name });
    expect(vmi.status).toMatchObject({
      phase: 'Running',
      nodeName: 'infra-1',
      interfaces: [{ name: 'default', ipAddress: '10.0.1.11', ipAddresses: ['10.0.1.11'] }],
    });
    expect(vmi.status?.phaseTransitionTimestamps?.map((entry) => entry.phase)).toEqual([
      'Pending',
      'Scheduling',
      'Scheduled',
      'Running',
    ]);
  });

  it('writes Secrets a machine can boot from and a client can connect with', async () => {
    world = createWorld();
    await world.start();
    await apply(world);
    await world.until('the cluster is available', isAvailable(world));
    const { client } = world;
    const secret = async (name: string) => client.get(secrets, { namespace: NAMESPACE, name });
    const kubeconfig = await secret(`${CLUSTER}-kubeconfig`);
    expect(kubeconfig).toMatchObject({
      type: 'cluster.x-k8s.io/secret',
      metadata: {
        labels: { 'cluster.x-k8s.io/cluster-name': CLUSTER },
        ownerReferences: [{ kind: 'KubeadmControlPlane', controller: true }],
      },
    });
    expect(parseKubeconfig(decode(kubeconfig.data?.['value'])).server).toBe(
      `https://127.0.0.1:6443/clusters/${NAMESPACE}/${CLUSTER}`,
    );

    const [boot] = world.host.boots;
    expect(world.host.boots).toHaveLength(1);
    expect(boot).toMatchObject({
      namespace: NAMESPACE,
      hostname: boot?.name,
      ip: '10.0.1.11',
      cpus: 2,
      memory: 4 * 1024 ** 3,
    });
    const userData = parse(boot?.userData ?? '') as {
      write_files: { path: string; content: string; permissions: string }[];
      runcmd: string[];
      users: object[];
    };
    const file = (path: string): string =>
      userData.write_files.find((candidate) => candidate.path === path)?.content ?? '';
    expect(file('/etc/kubernetes/pki/ca.crt')).toBe(
      decode((await secret(`${CLUSTER}-ca`)).data?.['tls.crt']),
    );
    expect(userData.write_files.map((candidate) => [candidate.path, candidate.permissions])).toEqual([
      ['/etc/kubernetes/pki/ca.crt', '0640'],
      ['/etc/kubernetes/pki/ca.key', '0600'],
      ['/etc/kubernetes/pki/etcd/ca.crt', '0640'],
      ['/etc/kubernetes/pki/etcd/ca.key', '0600'],
      ['/etc/kubernetes/pki/front-proxy-ca.crt', '0640'],
      ['/etc/kubernetes/pki/front-proxy-ca.key', '0600'],
      ['/etc/kubernetes/pki/sa.pub', '0640'],
      ['/etc/kubernetes/pki/sa.key', '0600'],
      ['/etc/kubernetes/addons/cilium.yaml', '0644'],
      ['/run/kubeadm/kubeadm.yaml', '0640'],
      ['/run/cluster-api/placeholder', '0640'],
    ]);
    const [clusterConfiguration, initConfiguration] = file('/run/kubeadm/kubeadm.yaml')
      .split('---\n')
      .slice(1)
      .map((part) => parse(part) as Record<string, unknown>);
    expect(clusterConfiguration).toMatchObject({
      apiVersion: 'kubeadm.k8s.io/v1beta4',
      kind: 'ClusterConfiguration',
      clusterName: CLUSTER,
      kubernetesVersion: 'v1.36.3',
      controlPlaneEndpoint: '10.96.0.1:6443',
      networking: { podSubnet: '10.244.0.0/16', serviceSubnet: '10.96.0.0/16' },
      controllerManager: { extraArgs: [{ name: 'cloud-provider', value: 'external' }] },
    });
    expect(initConfiguration).toMatchObject({
      apiVersion: 'kubeadm.k8s.io/v1beta4',
      kind: 'InitConfiguration',
      nodeRegistration: { kubeletExtraArgs: [{ name: 'cloud-provider', value: 'external' }], taints: [] },
    });
    expect(userData.runcmd).toEqual([
      'kubeadm init --config /run/kubeadm/kubeadm.yaml && echo success > /run/cluster-api/bootstrap-success.complete',
      'kubectl --kubeconfig /etc/kubernetes/admin.conf apply -f /etc/kubernetes/addons/cilium.yaml',
    ]);
    expect(userData.users).toMatchObject([{ name: 'capk' }]);
    const service = await client.get(services, { namespace: NAMESPACE, name: `${CLUSTER}-lb` });
    expect(service.spec).toMatchObject({
      ports: [{ port: 6443, targetPort: 6443 }],
      selector: { 'cluster.x-k8s.io/role': 'control-plane', 'cluster.x-k8s.io/cluster-name': CLUSTER },
    });
  });

  it('leaves the providerID to the cloud-controller-manager, and syncs what Cluster API owns of the Node', async () => {
    world = createWorld();
    await world.start();
    await apply(world);
    await world.until('the cluster is available', isAvailable(world));
    const [node] = (await world.client.list(machines, {})).items.map(
      (machine) => machine.status?.nodeRef?.name ?? '',
    );
    const tenantNode = await world.tenant.client().get(nodes, { name: node ?? '' });
    expect(tenantNode.metadata.annotations).toMatchObject({
      'cluster.x-k8s.io/cluster-name': CLUSTER,
      'cluster.x-k8s.io/cluster-namespace': NAMESPACE,
      'cluster.x-k8s.io/machine': node,
      'cluster.x-k8s.io/owner-kind': 'KubeadmControlPlane',
      'cluster.x-k8s.io/owner-name': `${CLUSTER}-control-plane`,
    });
    const writers = world.tenant.requests
      .filter((request) => request.verb === 'patch' && JSON.stringify(request.body).includes('providerID'))
      .map((request) => request.userAgent);
    expect(new Set(writers)).toEqual(new Set(['kubevirt-cloud-controller-manager/v0.6.0']));
  });
});

describe('workers', () => {
  it('wait for the control plane, join with a token, and lose the taint they joined with', async () => {
    world = createWorld();
    await world.start();
    await apply(world, 2);
    const workersRun = async (): Promise<boolean> => {
      const { status } = await world.client.get(machineDeployments, {
        namespace: NAMESPACE,
        name: `${CLUSTER}-md-0`,
      });
      return status?.phase === 'Running' && status.availableReplicas === 2;
    };
    await world.until('two workers run', workersRun);
    const { items } = await world.tenant.client().list(nodes, {});
    expect(items).toHaveLength(3);
    for (const node of items) expect(node.spec?.taints ?? []).toEqual([]);
    const [set] = (await world.client.list(machineSets, { namespace: NAMESPACE })).items;
    expect(set?.metadata.name).toMatch(new RegExp(`^${CLUSTER}-md-0-[a-z0-9]{5}$`));
    const joined = world.host.boots.filter((boot) => boot.name.startsWith(`${CLUSTER}-md-0`));
    expect(joined).toHaveLength(2);
    for (const boot of joined) {
      expect(boot.labels['cluster.x-k8s.io/role']).toBe('worker');
      const userData = parse(boot.userData) as { write_files: { path: string; content: string }[] };
      const file = userData.write_files.find(
        (candidate) => candidate.path === '/run/kubeadm/kubeadm-join-config.yaml',
      );
      expect(parse((file?.content ?? '').replace('---\n', ''))).toMatchObject({
        apiVersion: 'kubeadm.k8s.io/v1beta4',
        kind: 'JoinConfiguration',
        discovery: {
          bootstrapToken: {
            apiServerEndpoint: '10.96.0.1:6443',
            token: expect.stringMatching(/^[a-z0-9]{6}\.[a-z0-9]{16}$/) as string,
            caCertHashes: [expect.stringMatching(/^sha256:[0-9a-f]{64}$/) as string],
          },
        },
        nodeRegistration: {
          kubeletExtraArgs: [{ name: 'cloud-provider', value: 'external' }],
          taints: [{ key: 'node.cluster.x-k8s.io/uninitialized', effect: 'NoSchedule' }],
        },
      });
    }
    expect((await world.client.list(kubeadmConfigs, { namespace: NAMESPACE })).items).toHaveLength(3);
  });
});
