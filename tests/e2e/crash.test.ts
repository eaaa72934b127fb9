import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { childOf, eventually, type Product, startProduct } from '../support/product.ts';

/** Rounds of a birth that is cut off, and of a rollout that is cut off. */
const ROUNDS = 4;

describe('kill -9', () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'kube-classroom-crash-'));
  let product: Product | undefined;
  afterAll(async () => {
    await product?.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  /** Starts the product and kills its cluster process `milliseconds` after it appeared. */
  async function startAndKill(milliseconds: number): Promise<void> {
    const web = spawn(process.execPath, ['scripts/start.mjs'], {
      env: {
        PATH: process.env.PATH,
        HOME: dataDir,
        DATA_DIR: dataDir,
        PORT: '0',
        API_PORT: '0',
        CLOUD_SPEED: '0',
      },
      stdio: 'ignore',
    });
    const gone = new Promise((resolve) => web.once('exit', resolve));
    const pid = await eventually('the cluster process', async () => tryChild(web.pid ?? 0));
    await new Promise((resolve) => setTimeout(resolve, milliseconds));
    process.kill(pid, 'SIGKILL');
    await gone;
  }

  it('of the cluster process during a birth: the next start completes it', async () => {
    for (let round = 0; round < ROUNDS; round++) await startAndKill(600 + Math.random() * 1500);
    product = await startProduct({ dataDir });
    const tenant = await product.kubectl();
    const management = await product.kubectl('management');
    const nodes = (await tenant('get', 'nodes', '-o', 'jsonpath={.items[*].metadata.name}')).split(' ');
    expect(nodes).toHaveLength(1);
    const machines = await management('get', 'machines,vm,vmi,kubevirtmachines', '-o', 'name');
    expect(machines.trim().split('\n').sort()).toEqual(
      [
        `kubevirtmachine.infrastructure.cluster.x-k8s.io/${nodes[0]}`,
        `machine.cluster.x-k8s.io/${nodes[0]}`,
        `virtualmachine.kubevirt.io/${nodes[0]}`,
        `virtualmachineinstance.kubevirt.io/${nodes[0]}`,
      ].sort(),
    );
  });

  it('of the cluster process during a rollout: every acknowledged write is there, and the rollout completes', async () => {
    let kubectl = await (product as Product).kubectl();
    await kubectl('create', 'deployment', 'web', '--image=nginx:1.28', '--replicas=3');
    await kubectl('rollout', 'status', 'deployment/web', '--timeout=60s');
    const acknowledged: string[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const running = product as Product;
      const gone = new Promise((resolve) => running.web.once('exit', resolve));
      await kubectl('set', 'image', 'deployment/web', `nginx=nginx:1.29.${round}`);
      let cut = false;
      const writing = (async () => {
        for (let index = 0; !cut; index++) {
          const name = `written-${round}-${index}`;
          const { code } = await kubectl.bash(`kubectl create configmap ${name} --from-literal=a=b`);
          if (code === 0) acknowledged.push(name);
        }
      })();
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 1200));
      process.kill(running.clusterPid(), 'SIGKILL');
      cut = true;
      await Promise.all([writing, gone]);
      product = await startProduct({ dataDir });
      kubectl = await product.kubectl();
    }
    const present = new Set(
      (await kubectl('get', 'configmaps', '-o', 'jsonpath={.items[*].metadata.name}')).split(' '),
    );
    expect(acknowledged.filter((name) => !present.has(name))).toEqual([]);
    expect(acknowledged.length).toBeGreaterThan(0);
    // The restarted control plane takes new workers too.
    const management = await (product as Product).kubectl('management');
    await management('scale', 'machinedeployment', '--all', '--replicas=1');
    await eventually(
      'a worker after all the kills',
      async () => {
        const { stdout } = await kubectl.bash('kubectl get nodes --no-headers');
        return stdout.split('\n').filter((line) => / Ready /.test(line)).length === 2;
      },
      60,
    );
    await kubectl('rollout', 'status', 'deployment/web', '--timeout=90s');
    const images = await kubectl(
      'get',
      'pods',
      '-l',
      'app=web',
      '-o',
      'jsonpath={.items[*].spec.containers[0].image}',
    );
    expect(new Set(images.split(' '))).toEqual(new Set([`nginx:1.29.${ROUNDS - 1}`]));
  });

  it('of the web process: no process is left', async () => {
    const running = product as Product;
    const cluster = running.clusterPid();
    running.web.kill('SIGKILL');
    await eventually(
      'the end of the cluster process',
      async () => !existsSync(`/proc/${cluster}`) || isZombie(cluster),
      15,
    );
    product = undefined;
  });
});

function tryChild(pid: number): number | undefined {
  try {
    return childOf(pid);
  } catch {
    return undefined;
  }
}

function isZombie(pid: number): boolean {
  return /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
}
