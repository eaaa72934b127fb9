import { errorMessage } from '#server/base';
import type { ControllerContext, EventRecorder } from '#server/client';
import { hashTemplate, isNamespaceTerminating } from '#server/controllers/machinery';
import {
  annotations,
  controllerOf,
  controllerReference,
  type Deployment,
  deepEqual,
  deployments,
  isAlreadyExists,
  labels,
  type ReplicaSet,
  replicaSets,
} from '#server/kube';
import { currentSetAnnotations, revisionOf, sameTemplate, sizeAnnotations } from './revisions.ts';
import { condition, conditionOf, hasDeadline, REASONS, withCondition } from './status.ts';
import { newSetSize, type Resize, wanted } from './strategy.ts';

/** A Deployment as it is being worked on: each write of its status yields its next version. */
export interface Work {
  deployment: Deployment;
}

/** The writes a Deployment's controller makes to ReplicaSets. */
export interface ReplicaSetWriter {
  /** Brings the annotations of the existing current set, and what the Deployment says of it, up to date. */
  adoptCurrent(work: Work, current: ReplicaSet, revision: number): Promise<ReplicaSet>;
  /** Creates the current set, as large as a rollout allows beside `old`. */
  createCurrent(work: Work, old: readonly ReplicaSet[], revision: number): Promise<ReplicaSet>;
  /** Gives a set its size and the annotations that keep the Deployment's; an event tells of a changed size. */
  resize(work: Work, change: Resize): Promise<ReplicaSet>;
}

function newSet(deployment: Deployment, hash: string) {
  const { template, selector } = deployment.spec;
  const hashed = { [labels.podTemplateHash]: hash };
  const templateLabels = { ...template.metadata?.labels, ...hashed };
  return {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: {
      name: `${deployment.metadata.name}-${hash}`,
      namespace: deployment.metadata.namespace ?? '',
      ownerReferences: [controllerReference(deployment)],
      labels: templateLabels,
    },
    spec: {
      replicas: 0,
      ...(deployment.spec.minReadySeconds ? { minReadySeconds: deployment.spec.minReadySeconds } : {}),
      selector: { ...selector, matchLabels: { ...selector?.matchLabels, ...hashed } },
      template: {
        ...template,
        metadata: { ...template.metadata, labels: templateLabels } as ReplicaSet['metadata'],
      },
    },
  } satisfies ReplicaSet;
}

/** Models getNewReplicaSet and scaleReplicaSet of kubernetes/pkg/controller/deployment/sync.go. */
export function createReplicaSetWriter(
  { client, clock }: ControllerContext,
  recorder: EventRecorder,
): ReplicaSetWriter {
  /** Writes the Deployment with a revision and perhaps a Progressing condition. */
  const note = async (
    work: Work,
    revision: string | undefined,
    progressing?: { status: string; reason: string; message: string },
  ) => {
    const { deployment } = work;
    const old = deployment.status?.conditions ?? [];
    const next =
      progressing &&
      condition('Progressing', progressing.status, progressing.reason, progressing.message, clock.now());
    const conditions = next ? withCondition(old, next) : old;
    const current = deployment.metadata.annotations?.[annotations.deploymentRevision];
    if ((revision === undefined || current === revision) && deepEqual(conditions, old)) return;
    const marks = revision === undefined ? {} : { [annotations.deploymentRevision]: revision };
    const changed: Deployment = {
      ...deployment,
      metadata: { ...deployment.metadata, annotations: { ...deployment.metadata.annotations, ...marks } },
      status: { ...deployment.status, ...(conditions.length > 0 ? { conditions } : {}) },
    };
    work.deployment = await client.update(deployments, changed, { subresource: 'status' });
  };
  /** The set that has the name already: the current one after all, or another of the same hash. */
  const settleCollision = async (work: Work, name: string, error: unknown): Promise<ReplicaSet> => {
    const { deployment } = work;
    const live = await client.get(replicaSets, { namespace: deployment.metadata.namespace, name });
    const ours = controllerOf(live)?.uid === deployment.metadata.uid;
    if (ours && sameTemplate(live.spec.template, deployment.spec.template)) return live;
    const collisionCount = (deployment.status?.collisionCount ?? 0) + 1;
    const status = { ...deployment.status, collisionCount };
    work.deployment = await client.update(deployments, { ...deployment, status }, { subresource: 'status' });
    throw error;
  };
  const refused = async (work: Work, name: string, error: unknown): Promise<void> => {
    const message = `Failed to create new replica set "${name}": ${errorMessage(error)}`;
    if (hasDeadline(work.deployment))
      await note(work, undefined, { status: 'False', reason: REASONS.createError, message });
    recorder.event(work.deployment, 'Warning', REASONS.createError, message);
  };
  return {
    async adoptCurrent(work, current, revision) {
      const { deployment } = work;
      const marks = currentSetAnnotations(deployment, current.metadata.annotations ?? {}, revision);
      const minReadySeconds = deployment.spec.minReadySeconds ?? 0;
      if (
        !deepEqual(marks, current.metadata.annotations ?? {}) ||
        (current.spec.minReadySeconds ?? 0) !== minReadySeconds
      ) {
        const { minReadySeconds: _, ...spec } = current.spec;
        return client.update(replicaSets, {
          ...current,
          metadata: { ...current.metadata, annotations: marks },
          spec: { ...spec, ...(minReadySeconds ? { minReadySeconds } : {}) },
        });
      }
      const found = {
        status: 'True',
        reason: REASONS.found,
        message: `Found new replica set "${current.metadata.name}"`,
      };
      const unknown = hasDeadline(deployment) && !conditionOf(deployment.status, 'Progressing');
      await note(work, String(revisionOf(current)), unknown ? found : undefined);
      return current;
    },
    async createCurrent(work, old, revision) {
      const { deployment } = work;
      const draft = newSet(
        deployment,
        hashTemplate(deployment.spec.template, deployment.status?.collisionCount),
      );
      const size = newSetSize(deployment, [...old, draft], 0);
      const metadata = {
        ...draft.metadata,
        annotations: currentSetAnnotations(deployment, undefined, revision),
      };
      const { name } = metadata;
      let created: ReplicaSet;
      let existed = false;
      try {
        created = await client.create(replicaSets, {
          ...draft,
          metadata,
          spec: { ...draft.spec, replicas: size },
        });
      } catch (error) {
        if (isNamespaceTerminating(error)) throw error;
        if (!isAlreadyExists(error)) {
          await refused(work, name, error);
          throw error;
        }
        created = await settleCollision(work, name, error);
        existed = true;
      }
      if (!existed && size > 0) {
        recorder.event(
          deployment,
          'Normal',
          'ScalingReplicaSet',
          `Scaled up replica set ${name} from 0 to ${size}`,
        );
      }
      const news = { status: 'True', reason: REASONS.created, message: `Created new replica set "${name}"` };
      await note(work, String(revision), !existed && hasDeadline(deployment) ? news : undefined);
      return created;
    },
    async resize({ deployment }, { set, size }) {
      const from = wanted(set);
      const marks = { ...set.metadata.annotations, ...sizeAnnotations(deployment) };
      if (from === size && deepEqual(marks, set.metadata.annotations)) return set;
      const changed = await client.update(replicaSets, {
        ...set,
        metadata: { ...set.metadata, annotations: marks },
        spec: { ...set.spec, replicas: size },
      });
      if (from !== size) {
        const message = `Scaled ${from < size ? 'up' : 'down'} replica set ${set.metadata.name} from ${from} to ${size}`;
        recorder.event(deployment, 'Normal', 'ScalingReplicaSet', message);
      }
      return changed;
    },
  };
}
