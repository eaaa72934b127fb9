import type { ObjectMeta, UnstructuredObject } from '#server/kube';
import { cloneJson, isRecord } from '../json.ts';
import type { Operation } from './operation.ts';

/** What a write may change: everything but the status, or one part of the object. */
export type Part =
  | 'main'
  | 'status'
  | 'scale'
  | 'finalize'
  | 'ephemeralcontainers'
  | 'resize'
  | 'approval'
  | 'binding';

/**
 * The next state of the whole object: what `part` covers from `sent`, the rest from `live`. Models the PrepareForUpdate
 * of upstream's strategies and their status strategies.
 */
export function splitParts(
  op: Operation,
  part: Part,
  sent: UnstructuredObject,
  live: UnstructuredObject,
): UnstructuredObject {
  switch (part) {
    case 'main':
    case 'scale':
    case 'binding':
      if (op.kind.hasStatus && part === 'main') replaceMember(sent, 'status', live['status']);
      return sent;
    case 'status':
      return withStatus(op, sent, live);
    case 'finalize':
      return withSpecMember(sent, live, 'finalizers');
    case 'ephemeralcontainers':
      return withSpecMember(sent, live, 'ephemeralContainers');
    case 'resize':
      return withSpecMember(sent, live, 'containers');
    case 'approval':
      return withStatus(op, sent, live);
  }
}

/** Sets, or removes when undefined, a private copy of a member. */
function replaceMember(object: Record<string, unknown>, name: string, value: unknown): void {
  if (value === undefined) delete object[name];
  else object[name] = cloneJson(value);
}

/**
 * Status, and of the metadata what upstream's built-in status strategies let through (labels, annotations, finalizers);
 * custom resources keep theirs.
 */
function withStatus(op: Operation, sent: UnstructuredObject, live: UnstructuredObject): UnstructuredObject {
  // Everything else is the frozen state itself: what compares, checks and freezes the result need not look into it.
  const next = { ...live };
  if (sent['status'] === undefined) delete next['status'];
  else next['status'] = sent['status'];
  next.metadata =
    op.kind.schemaType === undefined
      ? { ...cloneJson(live.metadata), managedFields: sent.metadata.managedFields ?? [] }
      : sent.metadata;
  return next;
}

/**
 * What is sent to change `part`, without the members that `part` leaves alone and that are the stored state itself: they
 * need neither be copied nor be checked. Only components of this process send such bodies.
 */
export function withoutUntouched(part: Part, body: unknown, live: UnstructuredObject | undefined): unknown {
  if (
    part !== 'status' ||
    !live ||
    !isRecord(body) ||
    body['spec'] === undefined ||
    body['spec'] !== live['spec']
  )
    return body;
  const { spec: _, ...touched } = body;
  return touched;
}

function withSpecMember(
  sent: UnstructuredObject,
  live: UnstructuredObject,
  member: string,
): UnstructuredObject {
  const next = cloneJson(live);
  const spec = isRecord(next['spec']) ? next['spec'] : {};
  const sentSpec = isRecord(sent['spec']) ? sent['spec'] : {};
  replaceMember(spec, member, sentSpec[member]);
  next['spec'] = spec;
  if (sent.metadata.managedFields) next.metadata.managedFields = sent.metadata.managedFields;
  return next;
}

const CARRIED = [
  'uid',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'generation',
  'selfLink',
] as const;

/** What no update changes. Models rest.BeforeUpdate. */
export function carryOver(next: UnstructuredObject, live: UnstructuredObject): void {
  const target: Partial<ObjectMeta> & Record<string, unknown> = next.metadata as ObjectMeta &
    Record<string, unknown>;
  const source = live.metadata as ObjectMeta & Record<string, unknown>;
  for (const field of CARRIED) {
    if (source[field] === undefined) delete target[field];
    else (target as Record<string, unknown>)[field] = source[field];
  }
  delete target.resourceVersion;
  if (source.generateName && target.generateName === undefined) target.generateName = source.generateName;
}

/** Something still keeps a deleted object: a finalizer, a grace period, a namespace's own finalizers. */
export function isHeld(op: Pick<Operation, 'kind'>, object: UnstructuredObject): boolean {
  if ((object.metadata.finalizers?.length ?? 0) > 0) return true;
  if ((object.metadata.deletionGracePeriodSeconds ?? 0) > 0) return true;
  return ownFinalizers(op, object).length > 0;
}

/** `spec.finalizers` of a Namespace. */
export function ownFinalizers(op: Pick<Operation, 'kind'>, object: UnstructuredObject): readonly unknown[] {
  if (op.kind.group !== '' || op.kind.plural !== 'namespaces' || !isRecord(object['spec'])) return [];
  const finalizers = object['spec']['finalizers'];
  return Array.isArray(finalizers) ? finalizers : [];
}
