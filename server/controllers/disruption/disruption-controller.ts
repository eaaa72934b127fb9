import type { Controller, ControllerContext, WorkQueue } from '#server/client';
import { type Arrange, createLoop } from '#server/controllers/machinery';
import {
  type Condition,
  controllerOf,
  deepEqual,
  deployments,
  formatTime,
  isConflict,
  isNotFound,
  matchesLabelSelector,
  objectKey,
  type Pod,
  type PodDisruptionBudget,
  type PodDisruptionBudgetStatus,
  podDisruptionBudgets,
  pods,
  replicaSets,
} from '#server/kube';
import { countBudget, EVICTION_TIMEOUT, UncountableError } from './counts.ts';

/** Keeps the status of PodDisruptionBudgets. Models kubernetes/pkg/controller/disruption. */
export function createDisruptionController(context: ControllerContext): Controller {
  const { client, informers, clock } = context;
  const budgetInformer = informers.informer(podDisruptionBudgets);
  const podInformer = informers.informer(pods);
  const setInformer = informers.informer(replicaSets);
  const deploymentInformer = informers.informer(deployments);

  const scaleOf = (pod: Pod): { uid: string; replicas: number } | undefined => {
    const { namespace = '' } = pod.metadata;
    const owner = controllerOf(pod);
    const set = owner?.kind === 'ReplicaSet' ? setInformer.get(`${namespace}/${owner.name}`) : undefined;
    if (!set || set.metadata.uid !== owner?.uid) return undefined;
    const parent = controllerOf(set);
    if (!parent) return { uid: set.metadata.uid ?? '', replicas: set.spec.replicas ?? 1 };
    const deployment = deploymentInformer.get(`${namespace}/${parent.name}`);
    if (parent.kind !== 'Deployment' || deployment?.metadata.uid !== parent.uid) return undefined;
    return { uid: parent.uid, replicas: deployment?.spec.replicas ?? 1 };
  };

  const nextStatus = (budget: PodDisruptionBudget): PodDisruptionBudgetStatus => {
    const { spec, status, metadata } = budget;
    const facts = {
      pods: podInformer
        .list(metadata.namespace ?? '')
        .filter((pod) => matchesLabelSelector(spec.selector, pod.metadata.labels)),
      scaleOf,
      now: clock.now(),
    };
    const generation = metadata.generation ?? 0;
    const condition = (reason: string, message: string): Condition[] => {
      const before = status?.conditions?.find(({ type }) => type === 'DisruptionAllowed');
      const now = reason === 'SufficientPods' ? 'True' : 'False';
      const lastTransitionTime = before?.status === now ? before.lastTransitionTime : formatTime(clock.now());
      return [
        {
          type: 'DisruptionAllowed',
          status: now,
          observedGeneration: generation,
          lastTransitionTime,
          reason,
          message,
        },
      ];
    };
    try {
      const { disruptedPods, ...counts } = countBudget(budget, facts);
      return {
        observedGeneration: generation,
        ...(Object.keys(disruptedPods).length > 0 ? { disruptedPods } : {}),
        ...counts,
        conditions: condition(counts.disruptionsAllowed > 0 ? 'SufficientPods' : 'InsufficientPods', ''),
      };
    } catch (error) {
      if (!(error instanceof UncountableError)) throw error;
      return { ...status, disruptionsAllowed: 0, conditions: condition('SyncFailed', error.message) };
    }
  };

  const reconcile = async (key: string, queue: WorkQueue): Promise<void> => {
    const budget = budgetInformer.get(key);
    if (!budget) return;
    const status = nextStatus(budget);
    if (Object.keys(status.disruptedPods ?? {}).length > 0) queue.addAfter(key, EVICTION_TIMEOUT);
    if (deepEqual(budget.status, status)) return;
    try {
      await client.update(podDisruptionBudgets, { ...budget, status }, { subresource: 'status' });
    } catch (error) {
      // An eviction came first: its change brings the budget back here.
      if (!isConflict(error) && !isNotFound(error)) throw error;
    }
  };

  const watch = (on: Arrange, queue: WorkQueue): void => {
    const touched = (namespace: string | undefined, labels: Record<string, string> | undefined): void => {
      for (const budget of budgetInformer.list(namespace ?? '')) {
        if (matchesLabelSelector(budget.spec.selector, labels)) queue.add(objectKey(budget));
      }
    };
    const ofPod = ({ metadata }: Pod): void => touched(metadata.namespace, metadata.labels);
    on(budgetInformer, {
      added: (budget) => queue.add(objectKey(budget)),
      updated: (_, budget) => queue.add(objectKey(budget)),
    });
    on(podInformer, {
      added: ofPod,
      updated(before, after) {
        ofPod(before);
        ofPod(after);
      },
      deleted: ofPod,
    });
    on(deploymentInformer, {
      updated(before, after) {
        if (before.spec.replicas === after.spec.replicas) return;
        touched(after.metadata.namespace, after.spec.template?.metadata?.labels);
      },
    });
  };
  return createLoop({ name: 'disruption', context, workers: 1, watch, reconcile });
}
