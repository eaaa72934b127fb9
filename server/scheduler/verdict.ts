import type { Rejection } from './filters.ts';

/**
 * The sentence of FailedScheduling: how many nodes were rejected for which reason, then what preemption could do about it.
 * Models pkg/scheduler/framework FitError.Error with the messages of the post-filter plugins in v1.36.
 */
export function unschedulableMessage(nodeCount: number, rejections: readonly Rejection[]): string {
  if (nodeCount === 0) return 'no nodes available to schedule pods';
  const available = `0/${nodeCount} nodes are available:`;
  const reasons = histogram(rejections.flatMap((rejection) => rejection.reasons));
  const verdicts = histogram(
    rejections.map((rejection) =>
      rejection.helpedByPreemption
        ? 'No preemption victims found for incoming pod'
        : 'Preemption is not helpful for scheduling',
    ),
  );
  return `${available} ${reasons}. no new claims to deallocate, preemption: ${available} ${verdicts}.`;
}

/** `1 a, 2 b`: counted, and sorted as text. */
function histogram(reasons: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const reason of reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  return [...counts]
    .map(([reason, count]) => `${count} ${reason}`)
    .sort()
    .join(', ');
}
