// `npm start`: checks the machine, then runs server/main.ts in this very process (so a signal needs no relay).
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { checkNode } from './node-version.mjs';

checkNode();
if (!existsSync(fileURLToPath(new URL('../node_modules/tsx', import.meta.url)))) {
  console.error('kube-classroom: the packages are not installed.\n  To mend it: npm ci');
  process.exit(1);
}
const { register } = await import('tsx/esm/api');
register();
await import('../server/main.ts');
