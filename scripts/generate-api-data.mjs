// Turns the facts of the built-in API types (JSON, read from the struct tags of kubernetes/api) into the two
// files the rest of the project reads: `server/kube/api-fields.data.json` (compact, for protobuf, patches,
// server-side apply, defaults and OpenAPI) and `server/kube/types.generated.ts` (the JSON shapes as interfaces).
//
//   npm run generate -- PATH/api-fields.json
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const source = process.argv[2];
if (!source) {
  console.error('usage: npm run generate -- PATH/api-fields.json');
  process.exit(2);
}
const facts = JSON.parse(readFileSync(source, 'utf8'));
const out = (name) => fileURLToPath(new URL(`../server/kube/${name}`, import.meta.url));

const CORE_ALIASES = new Set(['v1', 'corev1', 'apiv1']);
const SCALARS = new Map([
  ['string', 'string'],
  ['bool', 'boolean'],
  ['byte', 'byte'],
  ['int32', 'int32'],
  ['int64', 'int64'],
  ['types.UID', 'string'],
  ['metav1.Time', 'Time'],
  ['metav1.MicroTime', 'MicroTime'],
  ['metav1.Duration', 'Duration'],
  ['resource.Quantity', 'Quantity'],
  ['intstr.IntOrString', 'IntOrString'],
  ['metav1.FieldsV1', 'FieldsV1'],
  ['runtime.RawExtension', 'RawExtension'],
  ['interface{}', 'any'],
]);

/** Resolves one Go type of group version `gv` to our notation: scalars, `[]T`, `{}T` (string map), `gv#Type`. */
function resolve(gv, goType, seen = 0) {
  const type = goType.replace(/^\*/, '');
  if (seen > 8) throw new Error(`cannot resolve ${gv} ${goType}`);
  if (type === '[]byte') return 'bytes';
  if (type.startsWith('[]')) return `[]${resolve(gv, type.slice(2), seen + 1)}`;
  const map = /^map\[[^\]]+\](.*)$/.exec(type);
  if (map) return `{}${resolve(gv, map[1], seen + 1)}`;
  const scalar = SCALARS.get(type) ?? (gv === 'meta/v1' ? SCALARS.get(`metav1.${type}`) : undefined);
  if (scalar) return scalar;
  let [home, name] = [gv, type];
  const dotted = /^(\w+)\.(\w+)$/.exec(type);
  if (dotted) {
    name = dotted[2];
    home = dotted[1] === 'metav1' ? 'meta/v1' : CORE_ALIASES.has(dotted[1]) ? 'core/v1' : undefined;
  }
  const types = facts.types[home];
  if (types?.[name]) return `${home}#${name}`;
  const named = types?.[`=${name}`];
  if (named) return resolve(home, named.is, seen + 1);
  if (facts.types['core/v1'][`=${name}`])
    return resolve('core/v1', facts.types['core/v1'][`=${name}`].is, seen + 1);
  throw new Error(`unknown type ${goType} in ${gv}`);
}

function enumOf(gv, goType) {
  const bare = goType.replace(/^(\*|\[\])+/, '');
  const name = bare.split('.').pop();
  const home = bare.startsWith('metav1.') ? 'meta/v1' : bare.includes('.') ? 'core/v1' : gv;
  const named = facts.types[home]?.[`=${name}`] ?? facts.types['core/v1'][`=${name}`];
  return named?.enum && named.values?.length ? named.values : undefined;
}

// ---- compact data -------------------------------------------------------------------------------------------
const data = { source: facts.source, types: {}, kinds: {} };
for (const [gv, types] of Object.entries(facts.types)) {
  for (const [name, fields] of Object.entries(types)) {
    if (name.startsWith('=')) continue;
    const compact = {};
    for (const [field, f] of Object.entries(fields)) {
      if (f.t === 'metav1.TypeMeta' || f.t === 'TypeMeta' || f.t === 'time.Time' || field === '-') continue;
      const enumValues = enumOf(gv, f.t);
      compact[field] = {
        ...(f.n ? { n: f.n } : {}),
        t: resolve(gv, f.t),
        ...(f.t.startsWith('*') ? { p: 1 } : {}),
        ...(f.inline ? { i: 1 } : {}),
        ...(f.omitempty ? { o: 1 } : {}),
        ...(f.optional || f.omitempty || f.t.startsWith('*') ? {} : { r: 1 }),
        ...(f.default !== undefined ? { d: f.default } : {}),
        ...(f.patchStrategy ? { ps: f.patchStrategy } : {}),
        ...(f.patchMergeKey ? { pk: f.patchMergeKey } : {}),
        ...(f.listType ? { l: f.listType } : {}),
        ...(f.listMapKeys ? { k: f.listMapKeys } : {}),
        ...(f.mapType ? { m: f.mapType } : {}),
        ...(f.structType ? { s: f.structType } : {}),
        ...(enumValues ? { e: enumValues } : {}),
      };
    }
    data.types[`${gv}#${name}`] = compact;
  }
}
for (const [gv, kinds] of Object.entries(facts.kinds)) {
  for (const [kind, k] of Object.entries(kinds)) {
    data.kinds[`${gv}#${kind}`] = { namespaced: k.namespaced, ...(k.noStatus ? { noStatus: true } : {}) };
  }
}
const lines = Object.entries(data.types).map(([k, v]) => `${JSON.stringify(k)}:${JSON.stringify(v)}`);
writeFileSync(
  out('api-fields.data.json'),
  `{"source":${JSON.stringify(data.source)},\n"kinds":${JSON.stringify(data.kinds)},\n"types":{\n${lines.join(',\n')}\n}}\n`,
);

// ---- TypeScript shapes --------------------------------------------------------------------------------------
const GROUPS = [
  'meta/v1',
  'core/v1',
  'apps/v1',
  'authentication/v1',
  'authorization/v1',
  'batch/v1',
  'certificates/v1',
  'coordination/v1',
  'discovery/v1',
  'networking/v1',
  'policy/v1',
  'rbac/v1',
  'scheduling/v1',
  'storage/v1',
  'autoscaling/v1',
];
const HAND_WRITTEN = new Set(['meta/v1#ObjectMeta', 'meta/v1#TypeMeta', 'meta/v1#Status']);
const tsName = new Map([
  ['meta/v1#ObjectMeta', 'ObjectMeta'],
  ['meta/v1#Status', 'Status'],
]);
const used = new Set([
  'ObjectMeta',
  'Status',
  'KubeObject',
  'KubeList',
  'UserInfo',
  'WatchEvent',
  'Resource',
  'JsonSchema',
  'FieldError',
]);
for (const gv of GROUPS) {
  for (const key of Object.keys(data.types)) {
    const [home, name] = key.split('#');
    if (home !== gv || HAND_WRITTEN.has(key)) continue;
    const prefix = gv.split('/')[0].replace(/^./, (c) => c.toUpperCase());
    const chosen = used.has(name) ? `${prefix}${name}` : name;
    used.add(chosen);
    tsName.set(key, chosen);
  }
}
const TS_SCALARS = {
  string: 'string',
  boolean: 'boolean',
  byte: 'number',
  bytes: 'string',
  int32: 'number',
  int64: 'number',
  Time: 'string',
  MicroTime: 'string',
  Duration: 'string',
  Quantity: 'string',
  IntOrString: 'number | string',
  FieldsV1: 'Record<string, unknown>',
  RawExtension: 'unknown',
  any: 'unknown',
};
function ts(type) {
  if (type.startsWith('[]')) {
    const inner = ts(type.slice(2));
    return inner.includes('|') ? `(${inner})[]` : `${inner}[]`;
  }
  if (type.startsWith('{}')) return `Record<string, ${ts(type.slice(2))}>`;
  return TS_SCALARS[type] ?? tsName.get(type) ?? 'unknown';
}
const quote = (s) => (/^[A-Za-z_$][\w$]*$/.test(s) ? s : JSON.stringify(s));
function members(key) {
  return Object.entries(data.types[key]).flatMap(([field, f]) => {
    if (f.i) return members(f.t);
    const required = f.r || (data.kinds[key] && field === 'spec');
    return [`  ${quote(field)}${required ? '' : '?'}: ${ts(f.t)};`];
  });
}
let text = `// Generated by scripts/generate-api-data.mjs from the API facts of Kubernetes v1.36. Do not edit.
// The JSON shapes of the built-in types: times and quantities are strings, bytes are base64.
import type { ObjectMeta, Status } from './object.ts';
`;
for (const [key, name] of tsName) {
  if (HAND_WRITTEN.has(key)) continue;
  const isObject = data.types[key].metadata?.t === 'meta/v1#ObjectMeta' && data.kinds[key];
  const body = members(key).map((m) => (isObject ? m.replace(/^ {2}metadata\?:/, '  metadata:') : m));
  const head = isObject ? ['  apiVersion: string;', '  kind: string;'] : [];
  text += `\nexport interface ${name} {\n${[...head, ...body].join('\n')}\n}\n`;
}
text = text.replace('import type { ObjectMeta, Status }', 'import type { ObjectMeta }');
writeFileSync(out('types.generated.ts'), text);
console.log(`${Object.keys(data.types).length} types, ${tsName.size} interfaces`);
