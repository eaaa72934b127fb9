import type { KindDefinition } from './kind.ts';

/** The kinds a server serves now: built-in ones, and those of CustomResourceDefinitions, which come and go. */
export interface KindTable {
  find(group: string, version: string, plural: string): KindDefinition | undefined;
  /** Any served version of the resource. */
  anyVersion(group: string, plural: string): KindDefinition | undefined;
  byKind(group: string, version: string, kind: string): KindDefinition | undefined;
  /** Group names and versions served, in order of discovery. */
  groups(): readonly { group: string; versions: readonly string[] }[];
  of(group: string, version: string): readonly KindDefinition[];
  all(): readonly KindDefinition[];
  /** Replaces the kinds that came from this source (a CustomResourceDefinition's name). */
  replace(source: string, kinds: readonly KindDefinition[]): void;
  /** Rises with each change: what is derived from the table is cached by it. */
  readonly generation: number;
  /** More than one version of this resource is served from the same stored objects. */
  isMultiVersion(group: string, plural: string): boolean;
}

interface Index {
  byPath: Map<string, KindDefinition>;
  byKind: Map<string, KindDefinition>;
  versions: Map<string, KindDefinition[]>;
  groups: { group: string; versions: string[] }[];
  byGroupVersion: Map<string, KindDefinition[]>;
  all: KindDefinition[];
}

function indexOf(kinds: readonly KindDefinition[]): Index {
  const index: Index = {
    byPath: new Map(),
    byKind: new Map(),
    versions: new Map(),
    groups: [],
    byGroupVersion: new Map(),
    all: [...kinds],
  };
  const groups = new Map<string, string[]>();
  for (const kind of kinds) {
    const { group, version, plural } = kind;
    index.byPath.set(`${group}/${version}/${plural}`, kind);
    index.byKind.set(`${group}/${version}/${kind.kind}`, kind);
    pushTo(index.versions, `${group}/${plural}`, kind);
    pushTo(index.byGroupVersion, `${group}/${version}`, kind);
    const versions = groups.get(group) ?? [];
    if (!versions.includes(version)) versions.push(version);
    groups.set(group, versions);
  }
  index.groups = [...groups]
    .map(([group, versions]) => ({ group, versions: versions.sort(compareVersions) }))
    .sort((a, b) => (a.group === '' ? -1 : b.group === '' ? 1 : 0));
  return index;
}

function pushTo<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
}

/** Newest and most stable first: v2, v1, v1beta1. Models k8s.io/apimachinery/pkg/version/helpers.go. */
export function compareVersions(a: string, b: string): number {
  const [x, y] = [rankOf(a), rankOf(b)];
  return y[0] - x[0] || y[1] - x[1] || y[2] - x[2] || a.localeCompare(b);
}

function rankOf(version: string): [number, number, number] {
  const match = /^v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?$/.exec(version);
  if (!match) return [-1, 0, 0];
  return [match[2] === 'alpha' ? 0 : match[2] === 'beta' ? 1 : 2, Number(match[1]), Number(match[3] ?? 0)];
}

/** The index of built-in kinds is the same for all clusters of the process. */
const shared = new WeakMap<readonly KindDefinition[], Index>();

function sharedIndexOf(builtin: readonly KindDefinition[]): Index {
  const known = shared.get(builtin);
  if (known) return known;
  const index = indexOf(builtin);
  shared.set(builtin, index);
  return index;
}

export function createKindTable(builtin: readonly KindDefinition[]): KindTable {
  const sources = new Map<string, readonly KindDefinition[]>();
  let index = sharedIndexOf(builtin);
  let generation = 1;
  return {
    find: (group, version, plural) => index.byPath.get(`${group}/${version}/${plural}`),
    anyVersion: (group, plural) => index.versions.get(`${group}/${plural}`)?.[0],
    byKind: (group, version, kind) => index.byKind.get(`${group}/${version}/${kind}`),
    groups: () => index.groups,
    of: (group, version) => index.byGroupVersion.get(`${group}/${version}`) ?? [],
    all: () => index.all,
    replace(source, kinds) {
      if (kinds.length === 0 && !sources.has(source)) return;
      if (kinds.length === 0) sources.delete(source);
      else sources.set(source, kinds);
      index =
        sources.size === 0 ? sharedIndexOf(builtin) : indexOf([...builtin, ...[...sources.values()].flat()]);
      generation++;
    },
    get generation() {
      return generation;
    },
    isMultiVersion: (group, plural) => (index.versions.get(`${group}/${plural}`)?.length ?? 0) > 1,
  };
}
