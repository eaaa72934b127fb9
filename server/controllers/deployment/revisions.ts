import {
  type Deployment,
  deepEqual,
  labels,
  annotations as names,
  type PodTemplateSpec,
  type ReplicaSet,
} from '#server/kube';
import { maxSurge, wanted } from './strategy.ts';

/** How long, in characters, the annotation of former revision numbers may grow. */
const HISTORY_LENGTH = 2000;
/** Kept for a rollback request of long ago. */
const ROLLBACK_TO = 'deprecated.deployment.rollback.to';

const NOT_COPIED: ReadonlySet<string> = new Set([
  names.lastApplied,
  names.deploymentRevision,
  names.deploymentRevisionHistory,
  names.desiredReplicas,
  names.maxReplicas,
  ROLLBACK_TO,
]);

/** The revision number an object carries; 0 without one or when it is no number. */
export function revisionOf(object: Deployment | ReplicaSet): number {
  const text = object.metadata.annotations?.[names.deploymentRevision] ?? '';
  return /^\d+$/.test(text) ? Number(text) : 0;
}

export function newestFirst(a: ReplicaSet, b: ReplicaSet): number {
  return -oldestFirst(a, b);
}

export function oldestFirst(a: ReplicaSet, b: ReplicaSet): number {
  const [bornA, bornB] = [a.metadata.creationTimestamp ?? '', b.metadata.creationTimestamp ?? ''];
  if (bornA !== bornB) return bornA < bornB ? -1 : 1;
  return a.metadata.name < b.metadata.name ? -1 : 1;
}

function withoutHash(template: PodTemplateSpec | undefined): unknown {
  const { labels: all = {}, creationTimestamp: _, ...metadata } = template?.metadata ?? { name: '' };
  const { [labels.podTemplateHash]: __, ...rest } = all;
  return { spec: template?.spec, metadata: { ...metadata, name: metadata.name || undefined, labels: rest } };
}

/** Whether two pod templates are the same but for the hash label. Models EqualIgnoreHash. */
export function sameTemplate(a: PodTemplateSpec | undefined, b: PodTemplateSpec | undefined): boolean {
  return deepEqual(withoutHash(a), withoutHash(b));
}

/** The oldest ReplicaSet with the Deployment's template. Models FindNewReplicaSet. */
export function currentSet(deployment: Deployment, sets: readonly ReplicaSet[]): ReplicaSet | undefined {
  return [...sets].sort(oldestFirst).find((set) => sameTemplate(set.spec.template, deployment.spec.template));
}

/** The annotations that keep the Deployment's size, for telling scaling from rolling out. */
export function sizeAnnotations(deployment: Deployment): Record<string, string> {
  return {
    [names.desiredReplicas]: String(wanted(deployment)),
    [names.maxReplicas]: String(wanted(deployment) + maxSurge(deployment)),
  };
}

function addToHistory(history: string | undefined, revision: string): string {
  if (!history) return revision;
  const revisions = history.split(',');
  let length = history.length + 1 + revision.length;
  while (revisions.length > 0 && length > HISTORY_LENGTH) length -= (revisions.shift() ?? '').length + 1;
  return [...revisions, revision].join(',');
}

/**
 * The annotations of the current ReplicaSet: the Deployment's own, and its revision when that is a later one.
 * `existing` are those it has, undefined when it is still to be created. Models SetNewReplicaSetAnnotations.
 */
export function currentSetAnnotations(
  deployment: Deployment,
  existing: Record<string, string> | undefined,
  revision: number,
): Record<string, string> {
  const result: Record<string, string> = { ...existing };
  for (const [name, value] of Object.entries(deployment.metadata.annotations ?? {})) {
    if (!NOT_COPIED.has(name)) result[name] = value;
  }
  const old = existing?.[names.deploymentRevision];
  if (Number(old ?? 0) < revision) {
    result[names.deploymentRevision] = String(revision);
    if (old !== undefined)
      result[names.deploymentRevisionHistory] = addToHistory(result[names.deploymentRevisionHistory], old);
  }
  return existing ? result : { ...result, ...sizeAnnotations(deployment) };
}
