import type { Controller, ControllerContext, WorkQueue } from '#server/client';
import { type Arrange, createLoop, isNamespaceTerminating } from '#server/controllers/machinery';
import { isAlreadyExists, namespaces, serviceAccounts } from '#server/kube';

const ACCOUNT = 'default';
const WORKERS = 2;

/** Keys are names of namespaces. */
export function createServiceAccountController(context: ControllerContext): Controller {
  const { client, informers } = context;
  const namespaceInformer = informers.informer(namespaces);
  const accountInformer = informers.informer(serviceAccounts);

  const reconcile = async (key: string): Promise<void> => {
    const namespace = namespaceInformer.get(key);
    if (!namespace || namespace.status?.phase === 'Terminating' || namespace.metadata.deletionTimestamp)
      return;
    if (accountInformer.get(`${key}/${ACCOUNT}`)) return;
    try {
      await client.create(serviceAccounts, { metadata: { name: ACCOUNT, namespace: key } });
    } catch (error) {
      if (!isAlreadyExists(error) && !isNamespaceTerminating(error)) throw error;
    }
  };
  const watch = (on: Arrange, queue: WorkQueue): void => {
    on(namespaceInformer, {
      added: ({ metadata }) => queue.add(metadata.name),
      updated: (_, { metadata }) => queue.add(metadata.name),
    });
    on(accountInformer, {
      deleted: ({ metadata }) => metadata.name === ACCOUNT && queue.add(metadata.namespace ?? ''),
    });
  };
  return createLoop({ name: 'service-account', context, workers: WORKERS, watch, reconcile });
}
