import { rmSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, type Kubectl, type Product, startProduct } from '../support/product.ts';

/** A Node between its writers: the kubelet, Cluster API, the cloud-controller-manager and a hand with kubectl. */
describe('machines and their nodes', () => {
  let product: Product;
  let tenant: Kubectl;
  let management: Kubectl;
  let cluster: string;

  beforeAll(async () => {
    product = await startProduct();
    tenant = await product.kubectl();
    management = await product.kubectl('management');
    cluster = (await management('get', 'clusters', '-o', 'jsonpath={.items[0].metadata.name}')).trim();
  });
  afterAll(async () => {
    await product?.stop();
    if (product) rmSync(product.dataDir, { recursive: true, force: true });
  });

  const workers = async (): Promise<string[]> =>
    (
      await tenant(
        'get',
        'nodes',
        '-l',
        '!node-role.kubernetes.io/control-plane',
        '-o',
        'jsonpath={.items[*].metadata.name}',
      )
    )
      .split(' ')
      .filter(Boolean);
  const ccm = (replicas: number): Promise<string> =>
    management('scale', 'deployment', 'kubevirt-cloud-controller-manager', `--replicas=${replicas}`);
  const taintsOf = async (node: string): Promise<string[]> =>
    (await tenant('get', 'node', node, '-o', 'jsonpath={.spec.taints[*].key}')).split(' ').filter(Boolean);

  // kubernetes-sigs/cluster-api#8009
  it('keeps a provider id set by hand: the Machine runs, the cloud’s taint stays', async () => {
    await ccm(0);
    await management(
      'wait',
      '--for=delete',
      'pod',
      '-l',
      'app=kubevirt-cloud-controller-manager',
      '--timeout=60s',
    );
    await management('scale', 'machinedeployment', `${cluster}-md-0`, '--replicas=1');
    const node = await eventually('a worker', async () => (await workers())[0]);
    await tenant('wait', '--for=condition=Ready', `node/${node}`, '--timeout=60s');
    await management(
      'wait',
      '--for=jsonpath={.status.phase}=Provisioned',
      `machine/${node}`,
      '--timeout=60s',
    );
    expect(await management('get', 'machine', node, '-o', 'jsonpath={.status.nodeRef}')).toBe('');

    await tenant('patch', 'node', node, '-p', JSON.stringify({ spec: { providerID: `kubevirt://${node}` } }));
    await management('wait', '--for=jsonpath={.status.phase}=Running', `machine/${node}`, '--timeout=60s');
    expect(await management('get', 'machine', node, '-o', 'jsonpath={.status.nodeRef.name}')).toBe(node);
    expect(await taintsOf(node)).toEqual(['node.cloudprovider.kubernetes.io/uninitialized']);

    await ccm(1);
    await eventually('the taint to go', async () => (await taintsOf(node)).length === 0, 40);
    const managers = JSON.parse(await tenant('get', 'node', node, '-o', 'json', '--show-managed-fields')) as {
      metadata: { managedFields: { manager: string; fieldsV1: object }[] };
    };
    const writers = managers.metadata.managedFields.filter((entry) =>
      JSON.stringify(entry.fieldsV1).includes('f:providerID'),
    );
    expect(writers.map((entry) => entry.manager)).toEqual(['kubectl-patch']);
  });

  it('initialises a node again when its taint is put back', async () => {
    const [node = ''] = await workers();
    const count = async (): Promise<number> =>
      Number(
        (await tenant(
          'get',
          'events',
          '--field-selector',
          `reason=Synced,involvedObject.name=${node}`,
          '-o',
          'jsonpath={.items[0].count}',
        )) || 0,
      );
    const before = await eventually('the first Synced', async () => (await count()) || undefined);
    await tenant(
      'taint',
      'node',
      node,
      'node.cloudprovider.kubernetes.io/uninitialized=true:PreferNoSchedule',
    );
    await eventually('another Synced', async () => (await count()) === before + 1);
    expect(await taintsOf(node)).toEqual([]);
  });

  it('gets new workers after its control plane was restarted at another address', async () => {
    const [controlPlane = ''] = (
      await tenant(
        'get',
        'nodes',
        '-l',
        'node-role.kubernetes.io/control-plane',
        '-o',
        'jsonpath={.items[*].metadata.name}',
      )
    ).split(' ');
    const vmi = async (): Promise<string> =>
      (await management.bash(`kubectl get vmi ${controlPlane} -o jsonpath='{.metadata.uid} {.status.phase}'`))
        .stdout;
    const [before = ''] = (await vmi()).split(' ');
    await management('delete', 'vmi', controlPlane);
    await eventually('another VMI', async () => {
      const [uid, phase] = (await vmi()).split(' ');
      return uid !== '' && uid !== before && phase === 'Running';
    });
    await eventually(
      'the API server',
      async () => (await tenant.bash('kubectl get --raw /readyz')).code === 0,
      60,
    );
    const known = await workers();
    await management('scale', 'machinedeployment', `${cluster}-md-0`, `--replicas=${known.length + 1}`);
    const fresh = await eventually(
      'a worker more',
      async () => (await workers()).find((name) => !known.includes(name)),
      60,
    );
    await tenant('wait', '--for=condition=Ready', `node/${fresh}`, '--timeout=60s');
    await management('scale', 'machinedeployment', `${cluster}-md-0`, `--replicas=${known.length}`);
    await eventually('the number as before', async () => (await workers()).length === known.length, 60);
  });

  it('scales down to nothing: machine, VM and Node go', async () => {
    const [node = ''] = await workers();
    await management('scale', 'machinedeployment', `${cluster}-md-0`, '--replicas=0');
    await management('wait', '--for=delete', `machine/${node}`, '--timeout=60s');
    expect(await workers()).toEqual([]);
    const left = await management('get', 'vm,vmi,kubevirtmachine,kubeadmconfig', '-o', 'name');
    expect(left).not.toContain(node);
  });
});
