import { InternalError } from '#server/base';
import { type Controller, type ControllerContext, createEventRecorder, type WorkQueue } from '#server/client';
import { type Arrange, claim, createLoop } from '#server/controllers/machinery';
import {
  annotations,
  controllerOf,
  type Deployment,
  type DeploymentStatus,
  deepEqual,
  deployments,
  isNotFound,
  matchesLabelSelector,
  objectKey,
  type Pod,
  pods,
  type ReplicaSet,
  replicaSets,
} from '#server/kube';
import { proportionalSizes } from './proportions.ts';
import { createReplicaSetWriter, type Work } from './replica-set-writer.ts';
import { currentSet, newestFirst, oldestFirst, revisionOf } from './revisions.ts';
import { isComplete, nextProgressCheck, pausedConditions, rolloutStatus, scalingStatus } from './status.ts';
import { isRollingUpdate, newSetSize, shrinkOldSets, wanted } from './strategy.ts';

const WORKERS = 2;
/** The value of revisionHistoryLimit that means none is ever deleted. */
const UNLIMITED = 2 ** 31 - 1;

/** The ReplicaSets of a Deployment: the current template's, and the others, oldest first. */
interface Sets {
  current: ReplicaSet | undefined;
  old: ReplicaSet[];
}

const asksForPods = (set: ReplicaSet): boolean => wanted(set) > 0;
const allOf = ({ current, old }: Sets): ReplicaSet[] => (current ? [...old, current] : old);

/** The size was changed since the ReplicaSets were last told of it. Models isScalingEvent. */
function isScaling(deployment: Deployment, sets: Sets): boolean {
  return allOf(sets)
    .filter(asksForPods)
    .some((set) => {
      const told = set.metadata.annotations?.[annotations.desiredReplicas];
      return told !== undefined && Number(told) !== wanted(deployment);
    });
}

/** The current set is as large as the Deployment and all of it is available. Models IsSaturated. */
function isSaturated(deployment: Deployment, current: ReplicaSet | undefined): boolean {
  if (!current) return false;
  const told = Number(current.metadata.annotations?.[annotations.desiredReplicas]);
  const size = wanted(deployment);
  return told === size && wanted(current) === size && (current.status?.availableReplicas ?? 0) === size;
}

/** The one set that asks for pods, or the newest when none does; undefined when several do. */
function onlyActive({ current, old }: Sets): ReplicaSet | undefined {
  const active = allOf({ current, old }).filter(asksForPods);
  if (active.length > 1) return undefined;
  return active[0] ?? current ?? [...old].sort(newestFirst)[0];
}

/** Keeps Deployments rolled out. Models DeploymentController of kubernetes/pkg/controller/deployment. */
export function createDeploymentController(context: ControllerContext): Controller {
  const { client, informers, clock, ids, log } = context;
  const deploymentInformer = informers.informer(deployments);
  const setInformer = informers.informer(replicaSets);
  const podInformer = informers.informer(pods);
  const recorder = createEventRecorder({ client, component: 'deployment-controller', clock, ids, log });
  const writer = createReplicaSetWriter(context, recorder);

  const claimedSets = (deployment: Deployment): Promise<ReplicaSet[]> => {
    const matches = (set: ReplicaSet): boolean =>
      matchesLabelSelector(deployment.spec.selector, set.metadata.labels);
    const options = { client, resource: replicaSets, owner: deployment, ownerResource: deployments, matches };
    return claim(options, setInformer.list(deployment.metadata.namespace ?? ''));
  };
  /** Models getAllReplicaSetsAndSyncRevision. */
  const settle = async (work: Work, claimed: readonly ReplicaSet[], create: boolean): Promise<Sets> => {
    const existing = currentSet(work.deployment, claimed);
    const old = claimed.filter((set) => set !== existing).sort(oldestFirst);
    const revision = Math.max(0, ...old.map(revisionOf)) + 1;
    if (existing) return { current: await writer.adoptCurrent(work, existing, revision), old };
    return { current: create ? await writer.createCurrent(work, old, revision) : undefined, old };
  };
  const writeStatus = async ({ deployment }: Work, status: DeploymentStatus): Promise<void> => {
    if (deepEqual(status, deployment.status ?? {})) return;
    await client.update(deployments, { ...deployment, status }, { subresource: 'status' });
  };
  /** Models scale of sync.go. */
  const scale = async (work: Work, sets: Sets): Promise<void> => {
    const { deployment } = work;
    const only = onlyActive(sets);
    if (only) {
      if (wanted(only) !== wanted(deployment))
        await writer.resize(work, { set: only, size: wanted(deployment) });
      return;
    }
    const old = sets.old.filter(asksForPods);
    if (isSaturated(deployment, sets.current)) {
      for (const set of old) await writer.resize(work, { set, size: 0 });
      return;
    }
    if (!isRollingUpdate(deployment)) return;
    for (const change of proportionalSizes(deployment, allOf(sets).filter(asksForPods)))
      await writer.resize(work, change);
  };
  /** Deletes what lies beyond the revisions that are kept. Models cleanupDeployment. */
  const forgetRevisions = async ({ deployment }: Work, old: readonly ReplicaSet[]): Promise<void> => {
    const limit = deployment.spec.revisionHistoryLimit;
    if (limit === undefined || limit === UNLIMITED) return;
    const kept = old
      .filter((set) => !set.metadata.deletionTimestamp)
      .sort((a, b) => revisionOf(a) - revisionOf(b) || oldestFirst(a, b));
    for (const set of kept.slice(0, Math.max(0, kept.length - limit))) {
      const { replicas = 0, observedGeneration = 0 } = set.status ?? {};
      if (replicas !== 0 || wanted(set) !== 0 || (set.metadata.generation ?? 0) > observedGeneration)
        continue;
      try {
        await client.delete(replicaSets, { namespace: set.metadata.namespace, name: set.metadata.name });
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
    }
  };
  const rescale = async (work: Work, claimed: readonly ReplicaSet[]): Promise<void> => {
    const sets = await settle(work, claimed, false);
    await scale(work, sets);
    if (work.deployment.spec.paused) await forgetRevisions(work, sets.old);
    await writeStatus(work, scalingStatus(work.deployment, allOf(sets), sets.current, clock.now()));
  };
  /** One step of a rolling update; true when a size was changed. Models rolloutRolling. */
  const roll = async (work: Work, sets: Sets & { current: ReplicaSet }): Promise<boolean> => {
    const { deployment } = work;
    const { current } = sets;
    if (wanted(current) !== wanted(deployment)) {
      const size =
        wanted(current) > wanted(deployment)
          ? wanted(deployment)
          : newSetSize(deployment, allOf(sets), wanted(current));
      sets.current = await writer.resize(work, { set: current, size });
      if (size !== wanted(current)) return true;
    }
    const changes = shrinkOldSets(deployment, sets.old.filter(asksForPods), sets.current);
    for (const change of changes) sets.old[sets.old.indexOf(change.set)] = await writer.resize(work, change);
    return changes.length > 0;
  };
  const ownedPods = (namespace: string, uids: readonly (string | undefined)[]): Pod[] =>
    podInformer.list(namespace).filter((pod) => uids.includes(controllerOf(pod)?.uid));
  const oldPodsRun = ({ deployment }: Work, { old }: Sets): boolean => {
    if (old.some((set) => (set.status?.replicas ?? 0) > 0)) return true;
    const remaining = ownedPods(
      deployment.metadata.namespace ?? '',
      old.map((set) => set.metadata.uid),
    );
    return remaining.some((pod) => pod.status?.phase !== 'Failed' && pod.status?.phase !== 'Succeeded');
  };
  /** All old pods go before a new one comes. Models rolloutRecreate. */
  const recreate = async (work: Work, claimed: readonly ReplicaSet[]): Promise<Sets> => {
    const sets = await settle(work, claimed, false);
    const active = sets.old.filter(asksForPods);
    for (const set of active) sets.old[sets.old.indexOf(set)] = await writer.resize(work, { set, size: 0 });
    if (active.length > 0 || oldPodsRun(work, sets)) return sets;
    const next = sets.current ? sets : await settle(work, claimed, true);
    if (next.current)
      next.current = await writer.resize(work, { set: next.current, size: wanted(work.deployment) });
    return next;
  };
  const rollOut = async (work: Work, claimed: readonly ReplicaSet[]) => {
    let sets: Sets;
    if (isRollingUpdate(work.deployment)) {
      const { current, old } = await settle(work, claimed, true);
      if (!current) throw new InternalError('a rollout has no current ReplicaSet');
      const rolling = { current, old };
      await roll(work, rolling);
      sets = rolling;
    } else sets = await recreate(work, claimed);
    if (isComplete(work.deployment, work.deployment.status)) await forgetRevisions(work, sets.old);
    const now = clock.now();
    const status = rolloutStatus(work.deployment, allOf(sets), sets.current, now);
    await writeStatus(work, status);
    const wait = nextProgressCheck(work.deployment, status, now);
    return wait === undefined ? undefined : { requeueAfter: wait };
  };
  const reconcile = async (key: string) => {
    const deployment = deploymentInformer.get(key);
    if (!deployment) return undefined;
    const work: Work = { deployment };
    if (deepEqual(deployment.spec.selector, {})) {
      const message = 'This deployment is selecting all pods. A non-empty selector is required.';
      recorder.event(deployment, 'Warning', 'SelectingAll', message);
      const observedGeneration = deployment.metadata.generation ?? 0;
      if ((deployment.status?.observedGeneration ?? 0) < observedGeneration) {
        await writeStatus(work, { ...deployment.status, observedGeneration });
      }
      return undefined;
    }
    const claimed = await claimedSets(deployment);
    if (deployment.metadata.deletionTimestamp) {
      const sets = await settle(work, claimed, false);
      await writeStatus(work, scalingStatus(work.deployment, allOf(sets), sets.current, clock.now()));
      return undefined;
    }
    const conditions = pausedConditions(deployment, clock.now());
    if (conditions) {
      const status = { ...deployment.status, conditions };
      work.deployment = await client.update(
        deployments,
        { ...deployment, status },
        { subresource: 'status' },
      );
    }
    if (deployment.spec.paused) return rescale(work, claimed);
    const sets = await settle(work, claimed, false);
    if (isScaling(work.deployment, sets)) return rescale(work, allOf(sets));
    return rollOut(work, allOf(sets));
  };
  const watch = (on: Arrange, queue: WorkQueue): void => {
    const ownerOf = (set: ReplicaSet): Deployment | undefined => {
      const reference = controllerOf(set);
      if (reference?.kind !== 'Deployment') return undefined;
      const owner = deploymentInformer.get(`${set.metadata.namespace}/${reference.name}`);
      return owner?.metadata.uid === reference.uid ? owner : undefined;
    };
    const enqueueOwner = (set: ReplicaSet): void => {
      const owner = ownerOf(set);
      if (owner) queue.add(objectKey(owner));
    };
    const offer = (set: ReplicaSet): void => {
      for (const deployment of deploymentInformer.list(set.metadata.namespace ?? '')) {
        if (matchesLabelSelector(deployment.spec.selector, set.metadata.labels))
          queue.add(objectKey(deployment));
      }
    };
    on(deploymentInformer, {
      added: (deployment) => queue.add(objectKey(deployment)),
      updated: (_, deployment) => queue.add(objectKey(deployment)),
      deleted: (deployment) => queue.add(objectKey(deployment)),
    });
    on(setInformer, {
      added: (set) => (controllerOf(set) || set.metadata.deletionTimestamp ? enqueueOwner(set) : offer(set)),
      updated(old, set) {
        if (controllerOf(old)?.uid !== controllerOf(set)?.uid) enqueueOwner(old);
        if (controllerOf(set)) enqueueOwner(set);
        else if (controllerOf(old) || !deepEqual(old.metadata.labels, set.metadata.labels)) offer(set);
      },
      deleted: enqueueOwner,
    });
    on(podInformer, {
      deleted(pod) {
        // Recreate waits for the last old pod.
        const reference = controllerOf(pod);
        const set =
          reference?.kind === 'ReplicaSet'
            ? setInformer.get(`${pod.metadata.namespace}/${reference.name}`)
            : undefined;
        const owner = set && ownerOf(set);
        if (owner && !isRollingUpdate(owner)) queue.add(objectKey(owner));
      },
    });
  };
  return createLoop({
    name: 'deployment',
    context,
    workers: WORKERS,
    watch,
    reconcile,
    onStop: () => recorder.stop(),
  });
}
