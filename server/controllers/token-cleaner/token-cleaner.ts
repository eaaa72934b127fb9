import type { Controller, ControllerContext, WorkQueue } from '#server/client';
import { type Arrange, createLoop } from '#server/controllers/machinery';
import { isConflict, isNotFound, objectKey, type Secret, secrets, wellKnownNamespaces } from '#server/kube';

const TYPE = 'bootstrap.kubernetes.io/token';

/** When (milliseconds since the epoch) the token expires; undefined: never, or it cannot be read. */
function expiryOf({ data }: Secret): number | undefined {
  const text = Buffer.from(data?.['expiration'] ?? '', 'base64').toString('utf8');
  const time = Date.parse(text);
  return Number.isNaN(time) ? undefined : time;
}

export function createTokenCleaner(context: ControllerContext): Controller {
  const { client, informers, clock } = context;
  const secretInformer = informers.informer(secrets, {
    namespace: wellKnownNamespaces.system,
    fieldSelector: `type=${TYPE}`,
  });

  const reconcile = async (key: string) => {
    const secret = secretInformer.get(key);
    const expiry = secret && expiryOf(secret);
    if (!secret || expiry === undefined) return undefined;
    const left = expiry - clock.now();
    if (left > 0) return { requeueAfter: left };
    const { namespace, name, uid } = secret.metadata;
    try {
      await client.delete(secrets, { namespace, name }, uid ? { preconditions: { uid } } : {});
    } catch (error) {
      // Gone, or another token of that name: not this one's business.
      if (!isNotFound(error) && !isConflict(error)) throw error;
    }
    return undefined;
  };
  const watch = (on: Arrange, queue: WorkQueue): void => {
    on(secretInformer, {
      added: (secret) => queue.add(objectKey(secret)),
      updated: (_, secret) => queue.add(objectKey(secret)),
    });
  };
  return createLoop({ name: 'token-cleaner', context, watch, reconcile });
}
