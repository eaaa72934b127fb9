import type { Client } from '#server/client';
import { claim, hashTemplate } from '#server/controllers/machinery';
import {
  type ControllerRevision,
  controllerReference,
  controllerRevisions,
  type DaemonSet,
  daemonSets,
  deepEqual,
  isAlreadyExists,
  labels,
  matchesLabelSelector,
} from '#server/kube';

/** The revision of the current template, and the others. */
export interface History {
  hash: string;
  old: ControllerRevision[];
}

/** What a revision keeps: a patch that brings the template back. */
function snapshot({ spec }: DaemonSet): unknown {
  return { spec: { template: { ...spec.template, $patch: 'replace' } } };
}

function draft(set: DaemonSet, hash: string, revision: number): ControllerRevision {
  return {
    apiVersion: 'apps/v1',
    kind: 'ControllerRevision',
    metadata: {
      name: `${set.metadata.name}-${hash}`,
      namespace: set.metadata.namespace ?? '',
      labels: { ...set.spec.template.metadata?.labels, [labels.controllerRevisionHash]: hash },
      ...(set.metadata.annotations ? { annotations: set.metadata.annotations } : {}),
      ownerReferences: [controllerReference(set)],
    },
    data: snapshot(set),
    revision,
  };
}

/**
 * Settles the revisions of a DaemonSet: creates the current one, or makes it the latest after a rollback. Rejects with
 * the API's AlreadyExists when another revision has its name: then the collision is counted, and the next try has
 * another name. Models constructHistory of kubernetes/pkg/controller/daemon/update.go.
 */
export async function settleHistory(
  client: Client,
  set: DaemonSet,
  candidates: readonly ControllerRevision[],
): Promise<History> {
  const matches = ({ metadata }: ControllerRevision): boolean =>
    matchesLabelSelector(set.spec.selector, metadata.labels);
  const owned = await claim(
    { client, resource: controllerRevisions, owner: set, ownerResource: daemonSets, matches },
    candidates,
  );
  const data = snapshot(set);
  const [current] = owned
    .filter((revision) => deepEqual(revision.data, data))
    .sort((a, b) => b.revision - a.revision);
  const old = owned.filter((revision) => revision !== current);
  const latest = Math.max(0, ...old.map(({ revision }) => revision)) + 1;
  if (current) {
    if (current.revision < latest) await client.update(controllerRevisions, { ...current, revision: latest });
    return { hash: current.metadata.labels?.[labels.controllerRevisionHash] ?? '', old };
  }
  const hash = hashTemplate(set.spec.template, set.status?.collisionCount);
  const revision = draft(set, hash, latest);
  try {
    await client.create(controllerRevisions, revision);
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    const { namespace, name } = revision.metadata;
    const existing = await client.get(controllerRevisions, { namespace, name });
    if (!deepEqual(existing.data, data)) {
      const live = await client.get(daemonSets, { namespace, name: set.metadata.name });
      const status = {
        currentNumberScheduled: 0,
        numberMisscheduled: 0,
        desiredNumberScheduled: 0,
        numberReady: 0,
        ...live.status,
        collisionCount: (live.status?.collisionCount ?? 0) + 1,
      };
      await client.update(daemonSets, { ...live, status }, { subresource: 'status' });
      throw error;
    }
  }
  return { hash, old };
}
