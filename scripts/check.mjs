// `npm run check`: cheapest first; the first failure ends it.
import { spawnSync } from 'node:child_process';
import { steps } from './check-steps.mjs';

for (const { name, command, args } of steps) {
  const begun = performance.now();
  const { status } = spawnSync(command, args, { stdio: 'inherit' });
  const seconds = ((performance.now() - begun) / 1000).toFixed(1);
  console.log(`${status === 0 ? 'ok  ' : 'FAIL'} ${name} (${seconds} s)`);
  if (status !== 0) process.exit(1);
}
