// `npm run check`: cheapest first; the first failure ends it.
import { spawnSync } from 'node:child_process';

const steps = [
  ['format', 'npx', ['biome', 'check', '.']],
  ['types', 'npx', ['tsc', '-p', '.']],
  ['types of the pure rooms', 'npx', ['tsc', '-p', 'tsconfig.pure.json']],
  ['rooms', 'npx', ['depcruise', '--config', '.dependency-cruiser.cjs', 'server']],
  ['map', 'node', ['scripts/write-map.mjs', '--check']],
  ['lint', 'npx', ['eslint', '.']],
  ['dead code', 'npx', ['knip']],
];
for (const [name, command, args] of steps) {
  const begun = performance.now();
  const { status } = spawnSync(command, args, { stdio: 'inherit' });
  const seconds = ((performance.now() - begun) / 1000).toFixed(1);
  console.log(`${status === 0 ? 'ok  ' : 'FAIL'} ${name} (${seconds} s)`);
  if (status !== 0) process.exit(1);
}
