import {
  formatTime,
  groupResource,
  type Namespace,
  type NamespaceCondition,
  type NamespaceStatus,
  type Resource,
} from '#server/kube';

/** What a pass over a namespace's content has found. */
export interface Findings {
  discoveryFailures: { groupVersion: string; error: string }[];
  deletionFailures: string[];
  /** What is left of each kind. */
  remaining: { resource: Resource; count: number }[];
  /** How many objects each finalizer holds. */
  finalizers: Map<string, number>;
}

const FINE: readonly (readonly [type: string, reason: string, message: string])[] = [
  ['NamespaceDeletionDiscoveryFailure', 'ResourcesDiscovered', 'All resources successfully discovered'],
  [
    'NamespaceDeletionGroupVersionParsingFailure',
    'ParsedGroupVersions',
    'All legacy kube types successfully parsed',
  ],
  [
    'NamespaceDeletionContentFailure',
    'ContentDeleted',
    'All content successfully deleted, may be waiting on finalization',
  ],
  ['NamespaceContentRemaining', 'ContentRemoved', 'All content successfully removed'],
  ['NamespaceFinalizersRemaining', 'ContentHasNoFinalizers', 'All content-preserving finalizers finished'],
];

function sorted(texts: string[]): string {
  return texts.sort().join(', ');
}

function problems(findings: Findings): Map<string, { reason: string; message: string }> {
  const found = new Map<string, { reason: string; message: string }>();
  const { discoveryFailures, deletionFailures, remaining, finalizers } = findings;
  if (discoveryFailures.length > 0) {
    const texts = discoveryFailures.map(({ groupVersion, error }) => `${groupVersion}: ${error}`);
    const message = `Discovery failed for some groups, ${texts.length} failing: unable to retrieve the complete list of server APIs: ${sorted(texts)}`;
    found.set('NamespaceDeletionDiscoveryFailure', { reason: 'DiscoveryFailed', message });
  }
  if (deletionFailures.length > 0) {
    const all = [...deletionFailures].sort();
    const text = all.length === 1 ? all[0] : `[${all.join(', ')}]`;
    const message = `Failed to delete all resource types, ${all.length} remaining: ${text}`;
    found.set('NamespaceDeletionContentFailure', { reason: 'ContentDeletionFailed', message });
  }
  if (remaining.length > 0) {
    const texts = remaining.map(
      ({ resource, count }) =>
        `${resource.group ? groupResource(resource) : `${resource.plural}.`} has ${count} resource instances`,
    );
    found.set('NamespaceContentRemaining', {
      reason: 'SomeResourcesRemain',
      message: `Some resources are remaining: ${sorted(texts)}`,
    });
  }
  if (finalizers.size > 0) {
    const texts = [...finalizers].map(([finalizer, count]) => `${finalizer} in ${count} resource instances`);
    const message = `Some content in the namespace has finalizers remaining: ${sorted(texts)}`;
    found.set('NamespaceFinalizersRemaining', { reason: 'SomeFinalizersRemain', message });
  }
  return found;
}

/**
 * The status of a namespace after a pass; undefined when it says so already.
 * Models namespace_conditions.go of kubernetes/pkg/controller/namespace/deletion.
 */
export function nextStatus(
  namespace: Namespace,
  findings: Findings,
  now: number,
): NamespaceStatus | undefined {
  const found = problems(findings);
  const conditions = [...(namespace.status?.conditions ?? [])];
  let changed = false;
  for (const [type, fineReason, fineMessage] of FINE) {
    const problem = found.get(type);
    const { reason, message } = problem ?? { reason: fineReason, message: fineMessage };
    const index = conditions.findIndex((condition) => condition.type === type);
    const old = conditions[index];
    const status = problem ? 'True' : 'False';
    if (old && old.status === status && old.reason === reason && old.message === message) continue;
    changed = true;
    const kept = old?.status === status ? old.lastTransitionTime : undefined;
    const next: NamespaceCondition = {
      type,
      status,
      lastTransitionTime: kept ?? formatTime(now),
      reason,
      message,
    };
    if (old) conditions[index] = next;
    else conditions.push(next);
  }
  return changed ? { ...namespace.status, conditions } : undefined;
}
