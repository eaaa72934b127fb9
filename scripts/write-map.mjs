// Writes docs/map.md from scripts/rooms.mjs. `--check` fails when the file is not what would be written.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { rooms, roots } from './rooms.mjs';

const target = fileURLToPath(new URL('../docs/map.md', import.meta.url));
const order = new Map(rooms.map(({ room }, index) => [room.replace('server/', ''), index]));
for (const { room, uses } of rooms) {
  for (const used of uses) {
    const index = order.get(used);
    if (index === undefined) throw new Error(`${room} uses ${used}, which is no room`);
    if (index >= order.get(room.replace('server/', '')))
      throw new Error(`${room} uses ${used}, which is not above it`);
  }
}
const sign = (room) => {
  const door = fileURLToPath(new URL(`../${room}/index.ts`, import.meta.url));
  return existsSync(door) ? `[\`${room}\`](../${room}/index.ts)` : `\`${room}\``;
};
const text = `<!-- Written by \`npm run map\` from scripts/rooms.mjs; do not edit. -->
# The rooms

Lowest first. A room is entered by its \`index.ts\` and uses only what its row names; \`npm run check\` refuses the rest.
${roots.map((root) => `\`${root}\``).join(' and ')} are the only files outside of them; the first builds across rooms.

| room | its one job | uses |
|---|---|---|
${rooms.map(({ room, job, uses }) => `| ${sign(room)} | ${job} | ${uses.map((use) => `\`${use}\``).join(', ') || 'nothing'} |`).join('\n')}
`;
if (process.argv.includes('--check')) {
  if (!existsSync(target) || readFileSync(target, 'utf8') !== text) {
    console.error('docs/map.md is not what scripts/rooms.mjs says: run `npm run map`');
    process.exit(1);
  }
} else {
  writeFileSync(target, text);
}
