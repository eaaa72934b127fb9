import type { Pod } from '#server/kube';

/** Node names a pod is pinned to by matchFields (DaemonSet pods are), or undefined when any node will do. */
export function pinnedNodes(pod: Pod): ReadonlySet<string> | undefined {
  const terms =
    pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  if (!terms || terms.length === 0) return undefined;
  const names = new Set<string>();
  for (const term of terms) {
    const byName = term.matchFields?.find(
      (field) => field.key === 'metadata.name' && field.operator === 'In',
    );
    if (!byName) return undefined;
    for (const name of byName.values ?? []) names.add(name);
  }
  return names;
}
