import { rmSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Kubectl, type Product, startProduct } from '../support/product.ts';

/** Symptoms people reported of real clusters, as small inputs: none may show here. */
describe('field reports', () => {
  let product: Product;
  let tenant: Kubectl;

  beforeAll(async () => {
    product = await startProduct();
    tenant = await product.kubectl();
    await tenant('run', 'b', '--image=busybox:1.37', '--command', '--', 'sleep', '100000');
    await tenant('wait', '--for=condition=Ready', 'pod/b', '--timeout=60s');
  });
  afterAll(async () => {
    await product?.stop();
    if (product) rmSync(product.dataDir, { recursive: true, force: true });
  });

  it('kubernetes#108148: ports with one number are kept as sent, warned of, and applied again unchanged', async () => {
    const manifest = JSON.stringify({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'ports' },
      spec: {
        replicas: 0,
        selector: { matchLabels: { app: 'ports' } },
        template: {
          metadata: { labels: { app: 'ports' } },
          spec: {
            containers: [
              {
                name: 'c',
                image: 'nginx:1.29',
                ports: [
                  { name: 'a', containerPort: 9090, protocol: 'TCP' },
                  { name: 'b', containerPort: 9090, protocol: 'TCP' },
                ],
              },
            ],
          },
        },
      },
    });
    const warning =
      'Warning: spec.template.spec.containers[0].ports[1]: duplicate port definition with spec.template.spec.containers[0].ports[0]\n';
    expect(await tenant.bash(`kubectl create --save-config -f - <<'END'\n${manifest}\nEND`)).toEqual({
      code: 0,
      stdout: 'deployment.apps/ports created\n',
      stderr: warning,
    });
    const ports = await tenant(
      'get',
      'deployment',
      'ports',
      '-o',
      'jsonpath={.spec.template.spec.containers[0].ports}',
    );
    expect(JSON.parse(ports)).toEqual([
      { containerPort: 9090, name: 'a', protocol: 'TCP' },
      { containerPort: 9090, name: 'b', protocol: 'TCP' },
    ]);
    expect(await tenant.bash(`kubectl apply -f - <<'END'\n${manifest}\nEND`)).toEqual({
      code: 0,
      stdout: 'deployment.apps/ports unchanged\n',
      stderr: '',
    });
  });

  it('kubernetes#89954: what nobody owned on record conflicts as before-first-apply, and is given up by force', async () => {
    await tenant('create', 'configmap', 'c', '--from-literal=k=1');
    await tenant('patch', 'configmap', 'c', '--type=merge', '-p', '{"metadata":{"managedFields":[{}]}}');
    const apply = (flags: string): Promise<{ code: number | null; stdout: string; stderr: string }> =>
      tenant.bash(
        `kubectl apply --server-side --field-manager=x ${flags} -f - <<< '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"k":"2"}}'`,
      );
    const refused = await apply('');
    expect([refused.code, refused.stdout, refused.stderr.split('\n')[0]]).toEqual([
      1,
      '',
      'error: Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .data.k',
    ]);
    expect(await apply('--force-conflicts')).toEqual({
      code: 0,
      stdout: 'configmap/c serverside-applied\n',
      stderr: '',
    });
    const owners = JSON.parse(
      await tenant(
        'get',
        'configmap',
        'c',
        '--show-managed-fields',
        '-o',
        'jsonpath={.metadata.managedFields}',
      ),
    ) as {
      manager: string;
      operation: string;
      fieldsV1: object;
    }[];
    expect(owners.map(({ manager, operation, fieldsV1 }) => ({ manager, operation, fieldsV1 }))).toEqual([
      { manager: 'x', operation: 'Apply', fieldsV1: { 'f:data': { 'f:k': {} } } },
      { manager: 'before-first-apply', operation: 'Update', fieldsV1: { 'f:data': {} } },
    ]);
  });

  it('kubernetes#73056: exec gives all the output and the exit code, every time', async () => {
    const { stdout } = await tenant.bash(
      `for i in $(seq 20); do kubectl exec b -- sh -c 'head -c 3000000 /dev/zero; exit 4' 2> /dev/null | wc -c; echo "\${PIPESTATUS[0]}"; done`,
      120,
    );
    expect(stdout).toBe('3000000\n4\n'.repeat(20));
  });

  it('kubernetes#61557: short standard input never hangs', async () => {
    const { stdout, stderr } = await tenant.bash(
      'for i in $(seq 50); do echo -n a | timeout 5 kubectl exec -i b -- cat || echo "[$?]"; done',
      300,
    );
    expect([stdout, stderr]).toEqual(['a'.repeat(50), '']);
  });
});
