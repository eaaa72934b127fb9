import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bindKubectl, eventually, type Kubectl, type Product, startProduct } from '../support/product.ts';

/** Guards against make-believe: what is seen must come from the machinery. */
describe('nothing is scripted', () => {
  let product: Product;
  let tenant: Kubectl;
  let management: Kubectl;

  beforeAll(async () => {
    product = await startProduct();
    tenant = await product.kubectl();
    management = await product.kubectl('management');
  });
  afterAll(async () => {
    await product?.stop();
    if (product) rmSync(product.dataDir, { recursive: true, force: true });
  });

  async function json<T>(kubectl: Kubectl, ...args: string[]): Promise<T> {
    return JSON.parse(await kubectl(...args, '-o', 'json')) as T;
  }

  it('shows a random label with the manager that wrote it', async () => {
    const node = (await tenant('get', 'nodes', '-o', 'jsonpath={.items[0].metadata.name}')).trim();
    const value = `v${Math.random().toString(36).slice(2)}`;
    await tenant('label', 'node', node, `example.org/random=${value}`);
    const shown = await json<{
      metadata: { labels: Record<string, string>; managedFields: { manager: string; fieldsV1: object }[] };
    }>(tenant, 'get', 'node', node, '--show-managed-fields');
    expect(shown.metadata.labels['example.org/random']).toBe(value);
    const writers = shown.metadata.managedFields.filter((entry) =>
      JSON.stringify(entry.fieldsV1).includes('f:example.org/random'),
    );
    expect(writers.map((entry) => entry.manager)).toEqual(['kubectl-label']);
    const ofProviderId = shown.metadata.managedFields.filter((entry) =>
      JSON.stringify(entry.fieldsV1).includes('f:providerID'),
    );
    expect(ofProviderId.map((entry) => entry.manager)).toEqual(['kubevirt-cloud-controller-manager']);
  });

  it('re-creates a deleted VMI, and the Node comes back', async () => {
    const cluster = (await management('get', 'clusters', '-o', 'jsonpath={.items[0].metadata.name}')).trim();
    await management('scale', 'machinedeployment', `${cluster}-md-0`, '--replicas=1');
    const worker = await eventually('a worker', async () => {
      const names = (await tenant('get', 'nodes', '-o', 'jsonpath={.items[*].metadata.name}')).split(' ');
      return names.find((name) => !name.includes('control-plane'));
    });
    await tenant('wait', '--for=condition=Ready', `node/${worker}`, '--timeout=60s');
    await eventually(
      'a Running machine',
      async () =>
        (await management('get', 'machine', worker, '-o', 'jsonpath={.status.phase}')) === 'Running',
    );
    interface Facts {
      vm: string;
      vmi: string;
      boot: string;
    }
    const facts = async (): Promise<Facts> => ({
      vm: await management('get', 'vm', worker, '-o', 'jsonpath={.metadata.uid}'),
      vmi: await management('get', 'vmi', worker, '-o', 'jsonpath={.metadata.uid}'),
      boot: await tenant('get', 'node', worker, '-o', 'jsonpath={.status.nodeInfo.bootID}'),
    });
    const before = await facts();
    await management('delete', 'vmi', worker, '--wait=false');
    const after = await eventually(
      'another VMI with a Ready node',
      async () => {
        const { stdout: uid } = await management.bash(
          `kubectl get vmi ${worker} -o jsonpath='{.metadata.uid} {.status.phase}'`,
        );
        const [vmi, phase] = uid.split(' ');
        if (!vmi || vmi === before.vmi || phase !== 'Running') return undefined;
        const { stdout: ready } = await tenant.bash(
          `kubectl get node ${worker} -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}'`,
        );
        const now = ready === 'True' ? await facts() : undefined;
        return now && now.boot !== before.boot ? now : undefined;
      },
      60,
    );
    expect(after.vm).toBe(before.vm);
    expect(after.vmi).not.toBe(before.vmi);
    expect(after.boot).not.toBe(before.boot);
  });

  it('keeps every credential to its cluster', async () => {
    const config = readFileSync(tenant.kubeconfig, 'utf8');
    const swapped = await bindKubectl(config.replace(/\/clusters\/[^\s"]+/, '/clusters/management'));
    expect((await swapped.bash('kubectl get pods')).stderr).toContain('You must be logged in to the server');
    const other = await bindKubectl(
      readFileSync(management.kubeconfig, 'utf8').replace(
        /\/clusters\/management/,
        /\/clusters\/[^\s"]+/.exec(config)?.[0] ?? '',
      ),
    );
    expect((await other.bash('kubectl get pods -n default')).stderr).toContain(
      'You must be logged in to the server',
    );
    const elsewhere = await management.bash('kubectl get secrets -n kube-system');
    expect(elsewhere.code).toBe(1);
    expect(elsewhere.stderr).toMatch(
      /Error from server \(Forbidden\): secrets is forbidden: User "system:serviceaccount:handson-solo-\w+:kubeconfig-\w+" cannot list resource "secrets" in API group "" in the namespace "kube-system"/,
    );
  });

  it('lists and revokes kubeconfigs', async () => {
    const extra = await product.kubectl();
    await extra('get', 'nodes');
    const listed = (await (await product.get('/api/kubeconfigs')).json()) as {
      items: { id: string; cluster: string; created: string; expires: string }[];
    };
    const newest = listed.items
      .filter((item) => item.cluster === 'tenant')
      .sort((a, b) => (a.created < b.created ? 1 : -1))[0];
    const identity = await extra('auth', 'whoami', '-o', 'jsonpath={.status.userInfo.username}');
    const own = listed.items.find((item) => identity.endsWith(`:${item.id}`));
    expect(own).toBeDefined();
    expect(newest).toBeDefined();
    expect(Date.parse(own?.expires ?? '') - Date.parse(own?.created ?? '')).toBeCloseTo(12 * 3600 * 1000, -4);
    expect((await product.get(`/api/kubeconfigs/${own?.id}`, { method: 'DELETE' })).status).toBe(200);
    expect((await extra.bash('kubectl get nodes')).stderr).toContain('You must be logged in to the server');
    expect((await product.get(`/api/kubeconfigs/${own?.id}`, { method: 'DELETE' })).status).toBe(404);
  });

  it('has no expected output in server/', async () => {
    const outputs = [
      await tenant('create', 'deployment', 'canned', '--image=nginx:1.29'),
      await tenant('get', 'nodes'),
      await tenant(
        'describe',
        'node',
        (await tenant('get', 'nodes', '-o', 'jsonpath={.items[0].metadata.name}')).trim(),
      ),
      await management('get', 'cluster,machine,vm,vmi'),
      await tenant('get', 'svc'),
    ];
    const lines = outputs
      .flatMap((output) => output.split('\n'))
      .map((line) => line.trim())
      .filter((line) => line.split(/ {2,}/).length >= 3 || line.endsWith(' created'));
    expect(lines.length).toBeGreaterThan(10);
    const sources = sourceFiles(fileURLToPath(new URL('../../server', import.meta.url))).map((path) => ({
      path,
      text: readFileSync(path, 'utf8'),
    }));
    const found = lines.flatMap((line) =>
      sources.filter(({ text }) => text.includes(line)).map(({ path }) => `${path}: ${line}`),
    );
    expect(found).toEqual([]);
  });
});

function sourceFiles(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts') && !entry.name.endsWith('.test.ts'))
    .map((entry) => join(entry.parentPath, entry.name));
}
