// Derived from scripts/rooms.mjs: the one authority on who may use whom.
const { readFileSync } = require('node:fs');
const { join } = require('node:path');

// CommonJS cannot import an ES module synchronously on Node 20: the data is evaluated from its text.
const source = readFileSync(join(__dirname, 'scripts/rooms.mjs'), 'utf8').replace(/export const/g, 'const');
const { rooms, roots } = new Function(`${source}; return { rooms, roots };`)();

const TESTS = '(\\.test\\.ts$|/testing/)';
const escape = (text) => text.replace(/[.+^${}()|[\]\\]/g, '\\$&');
/** The folder pattern of a room; `server/controllers/*` is one room per folder, captured for back-reference. */
const pattern = (room) => `^${escape(room).replace('/\\*', '/*').replace('*', '([^/]+)')}/`;
const allowed = (name) => (name.endsWith('/*') ? `^server/${name.slice(0, -2)}/[^/]+/` : `^server/${name}/`);

const roomRules = rooms.map(({ room, uses }) => ({
  name: `room-${room.replace(/\W+/g, '-')}`,
  comment: `${room} may use only: ${uses.join(', ') || 'nothing'}`,
  severity: 'error',
  from: { path: pattern(room), pathNot: TESTS },
  to: {
    path: '^server/',
    pathNot: [room.endsWith('/*') ? `^${room.slice(0, -2)}/$1/` : `^${room}/`, ...uses.map(allowed)],
  },
}));

module.exports = {
  forbidden: [
    ...roomRules,
    {
      name: 'no-cycles',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    {
      name: 'enter-by-the-door',
      comment: 'A room is entered by its index.ts, from another room, a root or a test elsewhere.',
      severity: 'error',
      from: { path: '^server/(controllers/[^/]+|clouds/[^/]+|[^/]+)/' },
      to: {
        path: '^server/(controllers/[^/]+|clouds/[^/]+|[^/]+)/',
        pathNot: [
          '^server/$1/',
          '^server/(controllers/[^/]+|clouds/[^/]+|[^/]+)/index\\.ts$',
          '/testing/index\\.ts$',
        ],
      },
    },
    {
      name: 'no-way-back-through-the-door',
      comment: "A room's own files never import their own index.ts.",
      severity: 'error',
      from: { path: '^server/(controllers/[^/]+|clouds/[^/]+|[^/]+)/(?!index\\.ts$)', pathNot: TESTS },
      to: { path: '^server/$1/index\\.ts$' },
    },
    {
      name: 'tests-stay-out',
      severity: 'error',
      from: { path: '^server/', pathNot: TESTS },
      to: { path: `(${TESTS}|^tests/)` },
    },
    {
      name: 'known-rooms-only',
      severity: 'error',
      from: {
        path: '^server/',
        pathNot: [...rooms.map(({ room }) => pattern(room)), ...roots.map((root) => `^${escape(root)}$`)],
      },
      to: {},
    },
    {
      name: 'pure-rooms',
      severity: 'error',
      from: { path: '^server/kube/', pathNot: TESTS },
      to: { dependencyTypes: ['core'] },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'types', 'node'],
      extensions: ['.ts', '.js', '.mjs', '.json'],
    },
  },
};
