// `npm run bench [name …]`: figures of this machine, as ratios against a floor of the same run. Prints a table and writes
// bench/results/<time>.json.
import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { benchBirths } from './births.ts';
import { benchCreates } from './creates.ts';
import { benchKubectl } from './kubectl.ts';
import type { Row } from './row.ts';
import { benchStore } from './store.ts';

const BENCHES: Readonly<Record<string, () => Promise<Row[]>>> = {
  births: benchBirths,
  kubectl: benchKubectl,
  creates: benchCreates,
  store: benchStore,
};

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !(name in BENCHES));
if (unknown.length > 0) {
  console.error(`no bench named ${unknown.join(', ')}; there are: ${Object.keys(BENCHES).join(', ')}`);
  process.exit(2);
}
const results: Record<string, Row[]> = {};
for (const [name, bench] of Object.entries(BENCHES)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  results[name] = await bench();
  for (const row of results[name]) console.log(format(row));
}
mkdirSync('bench/results', { recursive: true });
const time = new Date().toISOString();
const machine = { node: process.version, cpu: cpus()[0]?.model, cores: cpus().length };
writeFileSync(
  `bench/results/${time.replaceAll(':', '-')}.json`,
  `${JSON.stringify({ time, machine, results }, null, 2)}\n`,
);
process.exit(0);

function format(row: Row): string {
  const figure = `${row.value.toFixed(row.value < 10 ? 2 : 0)} ${row.unit}`;
  const ratio =
    row.ratio === undefined ? '' : `  ratio ${row.ratio.toFixed(2)} (floor ${row.floor?.toFixed(1) ?? '?'})`;
  return `${row.name.padEnd(48)} ${figure.padStart(14)}${ratio}${row.target ? `  target ${row.target}` : ''}`;
}
