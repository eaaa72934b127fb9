/** What `npm run check` runs, cheapest first. */
export const steps = [
  { name: 'format', command: 'npx', args: ['biome', 'check', '.'] },
  { name: 'types', command: 'npx', args: ['tsc', '-p', '.'] },
  { name: 'types of the pure rooms', command: 'npx', args: ['tsc', '-p', 'tsconfig.pure.json'] },
  { name: 'rooms', command: 'npx', args: ['depcruise', '--config', '.dependency-cruiser.cjs', 'server'] },
  { name: 'map', command: 'node', args: ['scripts/write-map.mjs', '--check'] },
  { name: 'lint', command: 'npx', args: ['eslint', '.'] },
  { name: 'dead code', command: 'npx', args: ['knip'] },
];
