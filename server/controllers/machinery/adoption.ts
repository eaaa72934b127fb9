import type { Client } from '#server/client';
import {
  controllerOf,
  controllerReference,
  isNotFound,
  type KubeObject,
  type Resource,
  StatusError,
} from '#server/kube';

export interface AdoptionOptions<T extends KubeObject> {
  client: Client;
  /** What may be claimed. */
  resource: Resource<T>;
  /** Who claims; its kind's resource is where it is looked up before it adopts. */
  owner: KubeObject;
  ownerResource: Resource;
  /** Whether an object is meant by the owner's selector. */
  matches: (object: T) => boolean;
}

/** The cache showed an owner that is no more: the claim must be made anew from fresh state. */
class OwnerGoneError extends Error {
  override readonly name = 'OwnerGoneError';
}

function isInvalid(error: unknown): boolean {
  return error instanceof StatusError && error.code === 422;
}

/**
 * Settles which of `candidates` (of the owner's namespace) the owner controls: those it controls already and whose
 * labels match, plus matching ones without a controller, which are adopted; owned ones that match no longer are
 * released. Rejects when the API refuses, or when an owner that would adopt is gone or going in truth.
 * Models kubernetes/pkg/controller/controller_ref_manager.go.
 */
export async function claim<T extends KubeObject>(
  options: AdoptionOptions<T>,
  candidates: readonly T[],
): Promise<T[]> {
  const { client, resource, owner, ownerResource, matches } = options;
  const ref = (object: T) => ({ namespace: object.metadata.namespace, name: object.metadata.name });
  let checked: Promise<void> | undefined;
  const mayAdopt = async (): Promise<void> => {
    const live = await client.get(ownerResource, {
      namespace: owner.metadata.namespace,
      name: owner.metadata.name,
    });
    if (live.metadata.uid !== owner.metadata.uid) {
      throw new OwnerGoneError(`original ${owner.kind} ${owner.metadata.name} is gone`);
    }
    if (live.metadata.deletionTimestamp) {
      throw new OwnerGoneError(
        `${owner.metadata.name} has just been deleted at ${live.metadata.deletionTimestamp}`,
      );
    }
  };
  const adopt = async (object: T): Promise<boolean> => {
    checked ??= mayAdopt();
    await checked;
    const body = { metadata: { ownerReferences: [controllerReference(owner)], uid: object.metadata.uid } };
    try {
      await client.patch(resource, ref(object), { type: 'strategic', body });
      return true;
    } catch (error) {
      if (isNotFound(error)) return false;
      throw error;
    }
  };
  const release = async (object: T): Promise<void> => {
    const body = {
      metadata: {
        ownerReferences: [{ $patch: 'delete', uid: owner.metadata.uid }],
        uid: object.metadata.uid,
      },
    };
    try {
      await client.patch(resource, ref(object), { type: 'strategic', body });
    } catch (error) {
      // Gone, or another object of that name, or the reference was gone already: nothing is left to release.
      if (!isNotFound(error) && !isInvalid(error)) throw error;
    }
  };
  const claimOne = async (object: T): Promise<boolean> => {
    const controller = controllerOf(object);
    if (controller) {
      if (controller.uid !== owner.metadata.uid) return false;
      if (matches(object)) return true;
      if (!owner.metadata.deletionTimestamp) await release(object);
      return false;
    }
    if (owner.metadata.deletionTimestamp || object.metadata.deletionTimestamp || !matches(object))
      return false;
    return adopt(object);
  };
  const claimed: T[] = [];
  for (const object of candidates) if (await claimOne(object)) claimed.push(object);
  return claimed;
}
