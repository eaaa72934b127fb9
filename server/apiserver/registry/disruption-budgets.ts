import {
  failure,
  formatTime,
  matchesLabelSelector,
  type Pod,
  type PodDisruptionBudget,
  type StatusError,
} from '#server/kube';
import { cloneJson } from '../json.ts';
import { as } from '../kind.ts';
import type { Operation, RegistryEnvironment } from './operation.ts';
import { changeObject } from './update.ts';

/** Evictions a budget's controller has not seen yet, at most. */
const MOST_DISRUPTED = 2000;
const RETRY_SECONDS = 10;
/** Phases in which a pod is nobody's healthy one. */
const WITHOUT_BUDGET: ReadonlySet<string> = new Set(['Pending', 'Succeeded', 'Failed']);

/**
 * Lets the budget of a pod pay for its eviction; resolves when nothing stands in the way. Throws StatusError 429 when the
 * budget does not allow it now, 500 when the pod has more than one. Models EvictionREST.Create and checkAndDecrement of
 * kubernetes/pkg/registry/core/pod/storage.
 */
export async function spendBudget(
  env: RegistryEnvironment,
  op: Operation,
  pod: Pod,
  dryRun: boolean,
): Promise<void> {
  const phase = pod.status?.phase ?? '';
  if (WITHOUT_BUDGET.has(phase) || pod.metadata.deletionTimestamp !== undefined) return;
  const kind = env.kinds.find('policy', 'v1', 'poddisruptionbudgets');
  if (!kind) return;
  const [budget, ...others] = env.facilities
    .list(kind, op.namespace)
    .map((object) => as<PodDisruptionBudget>(object))
    .filter(({ spec }) => matchesLabelSelector(spec.selector, pod.metadata.labels));
  if (!budget) return;
  if (others.length > 0) {
    throw failure(
      500,
      'InternalError',
      'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.',
    );
  }
  if (!isReady(pod) && mayGoUnready(budget)) return;
  await changeObject(
    env,
    { ...op, kind, name: budget.metadata.name, subresource: 'status', verb: 'update' },
    {
      part: 'status',
      managed: false,
      retry: true,
      unconditional: true,
      next(live) {
        const next = cloneJson(live);
        spend(as<PodDisruptionBudget>(next), pod.metadata.name, env.clock.now());
        return next;
      },
    },
    { dryRun, fieldValidation: 'Ignore', force: undefined },
  );
}

function isReady(pod: Pod): boolean {
  return pod.status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True';
}

/** A pod that is not ready is no healthy one less. */
function mayGoUnready({ spec, status }: PodDisruptionBudget): boolean {
  if (spec.unhealthyPodEvictionPolicy === 'AlwaysAllow') return true;
  const desired = status?.desiredHealthy ?? 0;
  return desired > 0 && (status?.currentHealthy ?? 0) >= desired;
}

function spend(budget: PodDisruptionBudget, podName: string, now: number): void {
  const { metadata, status = {} } = budget;
  const { disruptionsAllowed = 0, desiredHealthy = 0, currentHealthy = 0 } = status;
  if ((status.observedGeneration ?? 0) < (metadata.generation ?? 0)) {
    throw refused(
      `The disruption budget ${metadata.name} is still being processed by the server.`,
      RETRY_SECONDS,
    );
  }
  if (Object.keys(status.disruptedPods ?? {}).length > MOST_DISRUPTED) {
    throw refused(
      `The disruption budget ${metadata.name} has too many evictions not confirmed`,
      RETRY_SECONDS,
    );
  }
  if (disruptionsAllowed <= 0) {
    throw refused(
      `The disruption budget ${metadata.name} needs ${desiredHealthy} healthy pods and has ${currentHealthy} currently`,
      0,
    );
  }
  budget.status = {
    ...status,
    disruptionsAllowed: disruptionsAllowed - 1,
    disruptedPods: { ...status.disruptedPods, [podName]: formatTime(now) },
  };
}

function refused(cause: string, retryAfterSeconds: number): StatusError {
  return failure(
    429,
    'TooManyRequests',
    "Cannot evict pod as it would violate the pod's disruption budget.",
    {
      causes: [{ reason: 'DisruptionBudget', message: cause }],
      ...(retryAfterSeconds > 0 ? { retryAfterSeconds } : {}),
    },
  );
}
