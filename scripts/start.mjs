// `npm start`: checks the machine, builds the server when its sources changed, then runs it in this very process (so a
// signal needs no relay).
import { existsSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { checkNode } from './node-version.mjs';

checkNode();
if (!existsSync(fileURLToPath(new URL('../node_modules/esbuild', import.meta.url)))) {
  console.error('kube-classroom: the packages are not installed.\n  To mend it: npm ci');
  process.exit(1);
}
const { buildServer, entry } = await import('./build.mjs');
process.setSourceMapsEnabled(true);
await import(pathToFileURL(entry(await buildServer(), 'main.ts')).href);
