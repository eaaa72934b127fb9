import { createSeededIds } from '#server/base';
import { invalid, isConflict, StatusError, type UnstructuredObject, type UserInfo } from '#server/kube';
import type { AdmissionAttributes } from '../../admission/chain.ts';
import { createAllocators } from '../../allocators.ts';
import type { KindDefinition, RequestContext, ServerFacilities } from '../../kind.ts';
import { builtinKinds } from '../table.ts';

export const NOW = Date.UTC(2026, 0, 1);
export const SOMEBODY: UserInfo = { name: 'somebody', groups: ['system:authenticated'] };

export function kindOf(object: { apiVersion: string; kind: string }): KindDefinition {
  const group = object.apiVersion.includes('/') ? object.apiVersion.split('/')[0] : '';
  const found = builtinKinds.find((kind) => kind.group === group && kind.kind === object.kind);
  if (!found) throw new Error(`no kind ${object.kind}`);
  return found;
}

/** What strategies and admission see of a server that stores `objects`. `allow` decides what anybody may do. */
export function facilities(
  objects: readonly UnstructuredObject[] = [],
  options: {
    allow?: (verb: string, name: string | undefined) => boolean;
    serviceCidr?: string;
    nodePortRange?: string;
  } = {},
): ServerFacilities {
  const ids = createSeededIds(1);
  const matching = (
    resource: { group: string; plural: string },
    namespace: string | undefined,
  ): UnstructuredObject[] =>
    objects.filter((object) => {
      const kind = kindOf(object);
      return (
        kind.group === resource.group &&
        kind.plural === resource.plural &&
        (namespace === undefined || object.metadata.namespace === namespace)
      );
    });
  const partial: Partial<ServerFacilities> = {
    now: () => NOW,
    uid: () => ids.uid(),
    suffix: (length) => 'x'.repeat(length),
    read: (resource, namespace, name) =>
      matching(resource, namespace).find((object) => object.metadata.name === name),
    list: matching,
    allocators: createAllocators({
      serviceCidr: options.serviceCidr ?? '10.96.0.0/16',
      nodePortRange: options.nodePortRange,
      ids,
      existing: objects.filter((object) => object.kind === 'Service'),
    }),
    authorize: ({ verb, resource }) => ({
      allowed: options.allow?.(verb, resource?.name) ?? false,
      reason: '',
    }),
  };
  return partial as ServerFacilities;
}

export function contextOf(server: ServerFacilities, subresource?: string): RequestContext {
  return { user: SOMEBODY, verb: 'create', dryRun: false, subresource, namespace: 'default', server };
}

/** What a create stores, without metadata of the machinery. Throws as the server answers. */
export async function created(
  object: UnstructuredObject,
  server = facilities(),
  context = contextOf(server),
): Promise<UnstructuredObject> {
  const kind = kindOf(object);
  const copy = structuredClone(object);
  kind.strategy.defaults?.(copy);
  try {
    await kind.strategy.prepareForCreate?.(copy, context);
    const errors = kind.strategy.validate?.(copy) ?? [];
    if (errors.length > 0) throw invalid(kind, copy.metadata.name, errors);
    return copy;
  } catch (error) {
    kind.strategy.release?.(structuredClone(copy), context);
    throw error;
  }
}

/** What an update stores, the status taken from the old state. Throws as the server answers. */
export async function updated(
  old: UnstructuredObject,
  change: (object: UnstructuredObject) => void,
  server = facilities(),
): Promise<UnstructuredObject> {
  const kind = kindOf(old);
  const context = contextOf(server);
  const next = structuredClone(old);
  change(next);
  kind.strategy.defaults?.(next);
  await kind.strategy.prepareForUpdate?.(next, old, context);
  try {
    const errors = kind.strategy.validateUpdate?.(next, old) ?? [];
    if (errors.length > 0) throw invalid(kind, next.metadata.name, errors);
    kind.strategy.releaseDifference?.(old, next, context);
    return next;
  } catch (error) {
    kind.strategy.releaseDifference?.(next, old, context);
    throw error;
  }
}

/** The message of the refusal `work` ends in. */
export async function refusalOf(work: () => unknown): Promise<string> {
  try {
    await work();
  } catch (error) {
    if (error instanceof StatusError && !isConflict(error)) return error.message;
    throw error;
  }
  return 'nothing was refused';
}

export function attributesOf(
  operation: AdmissionAttributes['operation'],
  object: UnstructuredObject,
  server: ServerFacilities,
  options: Partial<AdmissionAttributes> = {},
): AdmissionAttributes {
  const kind = kindOf(object);
  return {
    operation,
    kind,
    namespace: kind.namespaced ? (object.metadata.namespace ?? 'default') : undefined,
    name: object.metadata.name,
    ...(operation === 'DELETE' ? { old: object } : { object }),
    user: SOMEBODY,
    dryRun: false,
    server,
    ...options,
  };
}

type Parts = Record<string, unknown> & {
  name?: string;
  namespace?: string;
  metadata?: Record<string, unknown>;
};

/** An object of a kind: `name` and `namespace` go into the metadata, the rest beside it. */
export function objectOf(apiVersion: string, kind: string, parts: Parts = {}): UnstructuredObject {
  const { name = 'a', namespace, metadata, ...rest } = parts;
  return {
    apiVersion,
    kind,
    metadata: { name, ...(namespace ? { namespace } : {}), ...metadata },
    ...structuredClone(rest),
  };
}

export function podOf(spec: Record<string, unknown> = {}, parts: Parts = {}): UnstructuredObject {
  return objectOf('v1', 'Pod', {
    namespace: 'default',
    spec: { containers: [{ name: 'c', image: 'nginx' }], ...spec },
    ...parts,
  });
}

export function serviceOf(spec: Record<string, unknown> = {}, parts: Parts = {}): UnstructuredObject {
  return objectOf('v1', 'Service', {
    namespace: 'default',
    spec: { ports: [{ port: 80 }], ...spec },
    ...parts,
  });
}

export function workloadOf(kind: string, spec: Record<string, unknown> = {}): UnstructuredObject {
  return objectOf('apps/v1', kind, {
    namespace: 'default',
    spec: {
      selector: { matchLabels: { app: 'a' } },
      template: {
        metadata: { labels: { app: 'a' } },
        spec: { containers: [{ name: 'c', image: 'nginx:1' }] },
      },
      ...spec,
    },
  });
}
