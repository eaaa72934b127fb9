import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { secrets } from '#server/kube';
import { startLab } from './lab.ts';
import { percentile, type Row } from './row.ts';

const RUNS = 30;

/** `kubectl get nodes` against `kubectl version --client`, alternating, in one run. */
export async function benchKubectl(): Promise<Row[]> {
  const scripts = fileURLToPath(new URL('../scripts/kubectl.mjs', import.meta.url));
  const { kubectlFolder } = (await import(scripts)) as { kubectlFolder: () => Promise<string | undefined> };
  const kubectl = join((await kubectlFolder()) ?? '', 'kubectl');
  const lab = await startLab();
  const home = mkdtempSync(join(tmpdir(), 'bench-kubectl-'));
  try {
    const { tenant } = await lab.birth('kubectl');
    const secret = await lab.management.get(secrets, {
      namespace: tenant.namespace,
      name: `${tenant.cluster}-kubeconfig`,
    });
    const kubeconfig = join(home, 'config');
    writeFileSync(kubeconfig, Buffer.from(secret.data?.value ?? '', 'base64'));
    const env = { HOME: home, KUBECONFIG: kubeconfig };
    const time = (...args: string[]): number => {
      const begun = performance.now();
      const { status, stderr } = spawnSync(kubectl, args, { env });
      if (status !== 0) throw new Error(`kubectl ${args.join(' ')}: ${String(stderr)}`);
      return performance.now() - begun;
    };
    time('get', 'nodes');
    time('version', '--client');
    const [asked, floor]: [number[], number[]] = [[], []];
    for (let run = 0; run < RUNS; run++) {
      floor.push(time('version', '--client'));
      asked.push(time('get', 'nodes'));
    }
    const [value, base] = [percentile(asked, 50), percentile(floor, 50)];
    return [
      {
        name: 'kubectl get nodes, p50',
        value,
        unit: 'ms',
        floor: base,
        ratio: value / base,
        target: '<= 1.3 x kubectl version --client',
      },
    ];
  } finally {
    rmSync(home, { recursive: true, force: true });
    await lab.stop();
  }
}
