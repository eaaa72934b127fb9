import type { Controller, ControllerContext, WorkQueue } from '#server/client';
import { type Arrange, createLoop, isNamespaceTerminating } from '#server/controllers/machinery';
import { configMaps, deepEqual, isAlreadyExists, namespaces } from '#server/kube';

const NAME = 'kube-root-ca.crt';
const KEY = 'ca.crt';
const DESCRIPTION_ANNOTATION = 'kubernetes.io/description';
const DESCRIPTION =
  'Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. ' +
  'No other usage is guaranteed across distributions of Kubernetes clusters.';

/** Keys are names of namespaces. `rootCaPem` is published as it is. */
export function createRootCaPublisher(
  context: ControllerContext,
  options: { rootCaPem: string },
): Controller {
  const { client, informers } = context;
  const namespaceInformer = informers.informer(namespaces);
  const configMapInformer = informers.informer(configMaps, { fieldSelector: `metadata.name=${NAME}` });
  const data = { [KEY]: options.rootCaPem };

  const reconcile = async (key: string): Promise<void> => {
    const namespace = namespaceInformer.get(key);
    if (!namespace || namespace.status?.phase === 'Terminating' || namespace.metadata.deletionTimestamp)
      return;
    const existing = configMapInformer.get(`${key}/${NAME}`);
    if (!existing) {
      try {
        const metadata = {
          name: NAME,
          namespace: key,
          annotations: { [DESCRIPTION_ANNOTATION]: DESCRIPTION },
        };
        await client.create(configMaps, { metadata, data });
      } catch (error) {
        if (!isAlreadyExists(error) && !isNamespaceTerminating(error)) throw error;
      }
      return;
    }
    const described = existing.metadata.annotations?.[DESCRIPTION_ANNOTATION];
    if (deepEqual(existing.data, data) && described) return;
    const annotations = { ...existing.metadata.annotations, [DESCRIPTION_ANNOTATION]: DESCRIPTION };
    const { binaryData: _, ...rest } = existing;
    await client.update(configMaps, { ...rest, metadata: { ...existing.metadata, annotations }, data });
  };
  const watch = (on: Arrange, queue: WorkQueue): void => {
    on(namespaceInformer, {
      added: ({ metadata }) => queue.add(metadata.name),
      updated: (_, { metadata }) => queue.add(metadata.name),
    });
    on(configMapInformer, {
      updated: (_, { metadata }) => queue.add(metadata.namespace ?? ''),
      deleted: ({ metadata }) => queue.add(metadata.namespace ?? ''),
    });
  };
  return createLoop({ name: 'root-ca-publisher', context, watch, reconcile });
}
