import { isReady } from '#server/controllers/machinery';
import {
  controllerOf,
  type Pod,
  type PodDisruptionBudget,
  type PodDisruptionBudgetStatus,
  resolveIntOrPercent,
} from '#server/kube';

/** After this an eviction whose pod is still there is taken back, milliseconds. */
export const EVICTION_TIMEOUT = 2 * 60_000;

/** A budget that cannot be counted; the message is for its condition. */
export class UncountableError extends Error {
  override readonly name = 'UncountableError';
}

export interface BudgetFacts {
  /** The pods the budget selects. */
  readonly pods: readonly Pod[];
  /** Replicas wanted by who controls the pod, with that controller's uid; undefined: unknown controller. */
  readonly scaleOf: (pod: Pod) => { uid: string; replicas: number } | undefined;
  /** Wall-clock, milliseconds. */
  readonly now: number;
}

type Counts = Required<
  Pick<
    PodDisruptionBudgetStatus,
    'currentHealthy' | 'desiredHealthy' | 'disruptedPods' | 'disruptionsAllowed' | 'expectedPods'
  >
>;

/**
 * The numbers of a budget's status. Throws UncountableError when pods have no controller whose size is known and the
 * budget is relative to it. Models getExpectedPodCount, countHealthyPods and updatePdbStatus.
 */
export function countBudget(budget: PodDisruptionBudget, facts: BudgetFacts): Counts {
  const { expectedPods, desiredHealthy } = expectation(budget, facts);
  const disruptedPods = stillDisrupted(budget, facts);
  const currentHealthy = facts.pods.filter(
    (pod) =>
      pod.metadata.deletionTimestamp === undefined && !(pod.metadata.name in disruptedPods) && isReady(pod),
  ).length;
  const disruptionsAllowed = expectedPods > 0 ? Math.max(0, currentHealthy - desiredHealthy) : 0;
  return { currentHealthy, desiredHealthy, disruptedPods, disruptionsAllowed, expectedPods };
}

function expectation(
  { spec }: PodDisruptionBudget,
  facts: BudgetFacts,
): { expectedPods: number; desiredHealthy: number } {
  if (spec.maxUnavailable !== undefined) {
    const expectedPods = expectedScale(facts);
    const away = resolveIntOrPercent(spec.maxUnavailable, expectedPods, true);
    return { expectedPods, desiredHealthy: Math.max(0, expectedPods - away) };
  }
  if (spec.minAvailable === undefined) return { expectedPods: facts.pods.length, desiredHealthy: 0 };
  if (typeof spec.minAvailable === 'number')
    return { expectedPods: facts.pods.length, desiredHealthy: spec.minAvailable };
  const expectedPods = expectedScale(facts);
  return { expectedPods, desiredHealthy: resolveIntOrPercent(spec.minAvailable, expectedPods, true) };
}

function expectedScale({ pods, scaleOf }: BudgetFacts): number {
  const sizes = new Map<string, number>();
  for (const pod of pods) {
    const scale = scaleOf(pod);
    if (!scale) {
      throw new UncountableError(
        controllerOf(pod)
          ? `found unexpected controller for pod ${JSON.stringify(pod.metadata.name)}`
          : `found no controller ref for pod ${JSON.stringify(pod.metadata.name)}`,
      );
    }
    sizes.set(scale.uid, scale.replicas);
  }
  return [...sizes.values()].reduce((sum, size) => sum + size, 0);
}

/** Evictions that are granted and whose pods are not marked as deleted yet. */
function stillDisrupted({ status }: PodDisruptionBudget, { pods, now }: BudgetFacts): Record<string, string> {
  return Object.fromEntries(
    Object.entries(status?.disruptedPods ?? {}).filter(([name, time]) => {
      const pod = pods.find(({ metadata }) => metadata.name === name);
      return pod && pod.metadata.deletionTimestamp === undefined && Date.parse(time) + EVICTION_TIMEOUT > now;
    }),
  );
}
