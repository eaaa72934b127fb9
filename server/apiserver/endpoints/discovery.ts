import { createHash } from 'node:crypto';
import { formatApiVersion } from '#server/kube';
import { verbsOf } from '../chain.ts';
import type { KindDefinition, SubresourceDefinition } from '../kind.ts';
import type { KindTable } from '../kind-table.ts';

/** What the server serves, as clients ask for it; documents are made once per change of the table of kinds. */
export interface Discovery {
  /** Answers GET of a discovery path; undefined: not one. */
  answer(path: string, form: DiscoveryForm): DiscoveryDocument | undefined;
}

/** Plain lists, or everything at once. */
export type DiscoveryForm = 'plain' | 'v2' | 'v2beta1';

export interface DiscoveryDocument {
  readonly contentType: string;
  readonly body: Buffer;
  /** Only of aggregated documents. */
  readonly etag: string | undefined;
}

/** Models k8s.io/apiserver/pkg/endpoints/discovery and its aggregated sub-package. */
export function createDiscovery(kinds: KindTable): Discovery {
  let generation = 0;
  const documents = new Map<string, DiscoveryDocument | undefined>();
  return {
    answer(path, form) {
      if (generation !== kinds.generation) {
        generation = kinds.generation;
        documents.clear();
      }
      const key = `${form} ${path}`;
      if (documents.has(key)) return documents.get(key);
      const document = makeDocument(kinds, path.split('/').filter(Boolean), form);
      // Only paths that exist are remembered: their number is bounded by the kinds.
      if (document) documents.set(key, document);
      return document;
    },
  };
}

function makeDocument(
  kinds: KindTable,
  parts: readonly string[],
  form: DiscoveryForm,
): DiscoveryDocument | undefined {
  const [prefix, first, second] = parts;
  if (prefix === 'api') {
    if (parts.length === 1) {
      if (form !== 'plain') return aggregated(kinds, form, (group) => group === '');
      return plain({ kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] });
    }
    return parts.length === 2 && first === 'v1' ? resourceList(kinds, '', 'v1') : undefined;
  }
  if (prefix !== 'apis') return undefined;
  if (parts.length === 1) {
    if (form !== 'plain') return aggregated(kinds, form, (group) => group !== '');
    const groups = namedGroups(kinds).map(({ group, versions }) => groupObject(group, versions));
    return plain({ kind: 'APIGroupList', apiVersion: 'v1', groups });
  }
  const known = namedGroups(kinds).find(({ group }) => group === first);
  if (!known || first === undefined) return undefined;
  if (parts.length === 2)
    return plain({ kind: 'APIGroup', apiVersion: 'v1', ...groupObject(known.group, known.versions) });
  if (parts.length === 3 && second !== undefined && known.versions.includes(second))
    return resourceList(kinds, first, second);
  return undefined;
}

function namedGroups(kinds: KindTable): { group: string; versions: readonly string[] }[] {
  return kinds.groups().filter(({ group }) => group !== '');
}

function groupObject(group: string, versions: readonly string[]): object {
  const listed = versions.map((version) => ({ groupVersion: `${group}/${version}`, version }));
  return { name: group, versions: listed, preferredVersion: listed[0] };
}

function plain(value: object): DiscoveryDocument {
  return {
    contentType: 'application/json',
    body: Buffer.from(`${JSON.stringify(value)}\n`),
    etag: undefined,
  };
}

interface Subresource {
  name: string;
  kind: string;
  group: string | undefined;
  version: string | undefined;
  verbs: readonly string[];
}

/** Subresources of a kind as discovery lists them, sorted by name. */
function subresourcesOf(kind: KindDefinition): Subresource[] {
  const editable = ['get', 'patch', 'update'];
  const found: Subresource[] = (kind.subresources ?? []).map((one: SubresourceDefinition) => ({
    name: one.name,
    kind: one.kind,
    group: one.group,
    version: one.version,
    verbs: [...one.verbs].sort(),
  }));
  if (kind.hasStatus)
    found.push({ name: 'status', kind: kind.kind, group: undefined, version: undefined, verbs: editable });
  if (kind.scale)
    found.push({ name: 'scale', kind: 'Scale', group: 'autoscaling', version: 'v1', verbs: editable });
  return found.sort((a, b) => (a.name < b.name ? -1 : 1));
}

function sortedKinds(kinds: KindTable, group: string, version: string): KindDefinition[] {
  return [...kinds.of(group, version)].sort((a, b) => (a.plural < b.plural ? -1 : 1));
}

function resourceList(kinds: KindTable, group: string, version: string): DiscoveryDocument | undefined {
  const listed = sortedKinds(kinds, group, version);
  if (listed.length === 0) return undefined;
  const resources = listed.flatMap((kind) => [
    {
      name: kind.plural,
      singularName: kind.singular,
      namespaced: kind.namespaced,
      kind: kind.kind,
      verbs: [...verbsOf(kind)].sort(),
      ...(kind.shortNames.length > 0 ? { shortNames: kind.shortNames } : {}),
      ...(kind.categories.length > 0 ? { categories: kind.categories } : {}),
      ...(kind.virtual ? {} : { storageVersionHash: storageHash(kind) }),
    },
    ...subresourcesOf(kind).map((sub) => ({
      name: `${kind.plural}/${sub.name}`,
      singularName: '',
      namespaced: kind.namespaced,
      ...(sub.group !== undefined ? { group: sub.group, version: sub.version } : {}),
      kind: sub.kind,
      verbs: sub.verbs,
    })),
  ]);
  const groupVersion = formatApiVersion(group, version);
  return plain({ kind: 'APIResourceList', ...(group ? { apiVersion: 'v1' } : {}), groupVersion, resources });
}

/** Models discovery.StorageVersionHash. */
function storageHash(kind: KindDefinition): string {
  const gvk = `${kind.group}/${kind.version}/${kind.kind}`;
  return createHash('sha256').update(gvk).digest().subarray(0, 8).toString('base64');
}

function aggregated(
  kinds: KindTable,
  form: 'v2' | 'v2beta1',
  wanted: (group: string) => boolean,
): DiscoveryDocument {
  const items = kinds
    .groups()
    .filter(({ group }) => wanted(group))
    .map(({ group, versions }) => ({
      metadata: group ? { name: group } : {},
      versions: versions.map((version) => ({
        version,
        resources: sortedKinds(kinds, group, version).map(aggregatedResource),
        freshness: 'Current',
      })),
    }));
  const body = Buffer.from(
    `${JSON.stringify({ kind: 'APIGroupDiscoveryList', apiVersion: `apidiscovery.k8s.io/${form}`, metadata: {}, items })}\n`,
  );
  return {
    contentType: `application/json;g=apidiscovery.k8s.io;v=${form};as=APIGroupDiscoveryList`,
    body,
    etag: `"${createHash('sha512').update(body).digest('hex').toUpperCase()}"`,
  };
}

function aggregatedResource(kind: KindDefinition): object {
  const { group, version } = kind;
  const subresources = subresourcesOf(kind).map((sub) => ({
    subresource: sub.name,
    responseKind: { group: sub.group ?? group, version: sub.version ?? version, kind: sub.kind },
    verbs: sub.verbs,
  }));
  return {
    resource: kind.plural,
    responseKind: { group, version, kind: kind.kind },
    scope: kind.namespaced ? 'Namespaced' : 'Cluster',
    singularResource: kind.singular,
    verbs: [...verbsOf(kind)].sort(),
    ...(kind.shortNames.length > 0 ? { shortNames: kind.shortNames } : {}),
    ...(kind.categories.length > 0 ? { categories: kind.categories } : {}),
    ...(subresources.length > 0 ? { subresources } : {}),
  };
}
