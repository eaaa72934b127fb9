import {
  type CustomResourceDefinition,
  customSchema,
  formatTime,
  pruneUnknownFields,
  type UnstructuredObject,
} from '#server/kube';
import { setMember } from '../json.ts';
import { as, type KindDefinition, type RequestContext } from '../kind.ts';
import { createdAtColumn, nameColumn } from '../kinds/cells.ts';
import { CRD_SCHEMA } from './crd-schema.ts';
import { definitionErrors } from './crd-validation.ts';
import { validateBySchema } from './validate-schema.ts';

/** The finalizer that keeps a definition until its objects are gone; the first delete puts it on. */
export const CLEANUP_FINALIZER = 'customresourcecleanup.apiextensions.k8s.io';

const GROUP = 'apiextensions.k8s.io';

type Status = NonNullable<CustomResourceDefinition['status']>;
type Condition = NonNullable<Status['conditions']>[number];

/**
 * customresourcedefinitions.apiextensions.k8s.io itself. Names are accepted (or not, when another definition of the
 * group has them) and the definition is established within the write, where upstream's controllers do it soon after.
 * Models apiextensions-apiserver/pkg/registry/customresourcedefinition and its naming and establishing controllers.
 */
export const crdKind: KindDefinition = {
  group: GROUP,
  version: 'v1',
  kind: 'CustomResourceDefinition',
  listKind: 'CustomResourceDefinitionList',
  plural: 'customresourcedefinitions',
  singular: 'customresourcedefinition',
  shortNames: ['crd', 'crds'],
  categories: ['api-extensions'],
  namespaced: false,
  schemaType: undefined,
  customSchema: CRD_SCHEMA,
  hasStatus: true,
  strategy: {
    finalizersOnDelete: [CLEANUP_FINALIZER],
    defaults: fillDefinition,
    prepareForCreate(object, context) {
      object.status = statusOf(as<CustomResourceDefinition>(object), undefined, context);
    },
    prepareForUpdate(object, old, context) {
      if (context.subresource === undefined)
        object.status = statusOf(
          as<CustomResourceDefinition>(object),
          as<CustomResourceDefinition>(old),
          context,
        );
    },
    prepareForDelete(object, context) {
      const crd = as<CustomResourceDefinition>(object);
      object.status = {
        ...crd.status,
        conditions: withCondition(crd.status?.conditions ?? [], terminating(), context.server.now()),
      };
    },
    validate: (object) => shapeErrors(object) ?? definitionErrors(as<CustomResourceDefinition>(object)),
    validateUpdate: (object, old) =>
      shapeErrors(object) ??
      definitionErrors(as<CustomResourceDefinition>(object), as<CustomResourceDefinition>(old)),
  },
  columns: [nameColumn, createdAtColumn],
};

/** Served, and its objects may be written. */
export function isEstablished(crd: CustomResourceDefinition): boolean {
  return (
    crd.status?.conditions?.some(
      (condition) => condition.type === 'Established' && condition.status === 'True',
    ) ?? false
  );
}

/** The rest of the checks takes the shape for granted. */
function shapeErrors(object: UnstructuredObject): ReturnType<typeof validateBySchema> | undefined {
  const errors = validateBySchema(object, CRD_SCHEMA);
  return errors.length > 0 ? errors : undefined;
}

function fillDefinition(object: UnstructuredObject): void {
  const pruned = pruneUnknownFields(object, customSchema(CRD_SCHEMA));
  if (pruned !== object) for (const key of Object.keys(object)) setMember(object, key, pruned[key]);
  const spec = object.spec as Partial<CustomResourceDefinition['spec']> | undefined;
  if (typeof spec !== 'object' || spec === null) return;
  spec.conversion ??= { strategy: 'None' };
  const { names } = spec;
  if (typeof names !== 'object' || names === null || typeof names.kind !== 'string') return;
  names.singular ||= names.kind.toLowerCase();
  names.listKind ||= `${names.kind}List`;
}

function statusOf(
  crd: CustomResourceDefinition,
  old: CustomResourceDefinition | undefined,
  context: RequestContext,
): Status {
  if (shapeErrors(as<UnstructuredObject>(crd))) return old?.status ?? {};
  const storage = crd.spec.versions.find((version) => version.storage)?.name;
  const stored = old?.status?.storedVersions ?? [];
  const storedVersions = storage === undefined || stored.includes(storage) ? stored : [...stored, storage];
  const { names, conflict } = acceptNames(crd, old, context);
  const now = context.server.now();
  const conditions = withCondition(old?.status?.conditions ?? [], namesAccepted(conflict), now);
  const established = conditions.find((condition) => condition.type === 'Established');
  const next = established?.status === 'True' ? established : establishedCondition(conflict === undefined);
  return { conditions: withCondition(conditions, next, now), acceptedNames: names, storedVersions };
}

interface Conflict {
  reason: string;
  message: string;
}

/** Which of the wanted names are free, and what is wrong with the others. */
function acceptNames(
  crd: CustomResourceDefinition,
  old: CustomResourceDefinition | undefined,
  context: RequestContext,
): { names: CustomResourceDefinition['spec']['names']; conflict: Conflict | undefined } {
  const resources = new Set<string>();
  const kinds = new Set<string>();
  for (const other of context.server.list({ group: GROUP, plural: 'customresourcedefinitions' })) {
    const { spec, status } = as<CustomResourceDefinition>(other);
    if (other.metadata.name === crd.metadata.name || spec.group !== crd.spec.group || !status?.acceptedNames)
      continue;
    const taken = status.acceptedNames;
    for (const name of [taken.plural, taken.singular, ...(taken.shortNames ?? [])])
      if (name) resources.add(name);
    for (const name of [taken.kind, taken.listKind]) if (name) kinds.add(name);
  }
  const wanted = crd.spec.names;
  const before = old?.status?.acceptedNames;
  let conflict: Conflict | undefined;
  const accept = (
    name: string,
    taken: ReadonlySet<string>,
    previous: string | undefined,
    reason: string,
  ): string => {
    if (!taken.has(name)) return name;
    conflict = { reason, message: `${JSON.stringify(name)} is already in use` };
    return previous ?? '';
  };
  const names = {
    plural: accept(wanted.plural, resources, before?.plural, 'PluralConflict'),
    singular: accept(wanted.singular, resources, before?.singular, 'SingularConflict'),
    kind: accept(wanted.kind, kinds, before?.kind, 'KindConflict'),
    listKind: accept(wanted.listKind, kinds, before?.listKind, 'ListKindConflict'),
  };
  const takenShort = (wanted.shortNames ?? []).filter((name) => resources.has(name));
  if (takenShort.length > 0) {
    const texts = takenShort.map((name) => `${JSON.stringify(name)} is already in use`);
    conflict = {
      reason: 'ShortNamesConflict',
      message: texts.length > 1 ? `[${texts.join(', ')}]` : (texts[0] ?? ''),
    };
  }
  const shortNames = takenShort.length > 0 ? before?.shortNames : wanted.shortNames;
  return {
    names: {
      ...names,
      ...(shortNames ? { shortNames } : {}),
      ...(wanted.categories ? { categories: wanted.categories } : {}),
    },
    conflict,
  };
}

function namesAccepted(conflict: Conflict | undefined): Condition {
  if (conflict) return { type: 'NamesAccepted', status: 'False', ...conflict };
  return { type: 'NamesAccepted', status: 'True', reason: 'NoConflicts', message: 'no conflicts found' };
}

function establishedCondition(accepted: boolean): Condition {
  return accepted
    ? {
        type: 'Established',
        status: 'True',
        reason: 'InitialNamesAccepted',
        message: 'the initial names have been accepted',
      }
    : { type: 'Established', status: 'False', reason: 'NotAccepted', message: 'not all names are accepted' };
}

function terminating(): Condition {
  const message = 'CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon';
  return { type: 'Terminating', status: 'True', reason: 'InstanceDeletionPending', message };
}

/** Replaces the condition of this type; the time of its last transition stays when the status does. */
function withCondition(conditions: readonly Condition[], next: Condition, now: number): Condition[] {
  const before = conditions.find((condition) => condition.type === next.type);
  const since =
    before?.status === next.status && before.lastTransitionTime ? before.lastTransitionTime : formatTime(now);
  const { type, status, reason, message } = next;
  const timed: Condition = {
    type,
    status,
    lastTransitionTime: since,
    ...(reason ? { reason } : {}),
    ...(message ? { message } : {}),
  };
  return before
    ? conditions.map((condition) => (condition === before ? timed : condition))
    : [...conditions, timed];
}
