import { OperationalError } from '#server/base';
import { type Controller, type ControllerContext, retryOnConflict, type WorkQueue } from '#server/client';
import { type Arrange, createLoop } from '#server/controllers/machinery';
import { finalizers, isConflict, isNotFound, type Namespace, namespaces, pods } from '#server/kube';
import { nextStatus } from './conditions.ts';
import { deleteContent } from './content.ts';

const WORKERS = 2;

const isFinalized = ({ spec }: Namespace): boolean => !spec.finalizers?.includes(finalizers.kubernetes);

/** Keys are names of namespaces. */
export function createNamespaceController(context: ControllerContext): Controller {
  const { client, informers, clock } = context;
  const namespaceInformer = informers.informer(namespaces);
  const podInformer = informers.informer(pods);

  /** The namespace as it is now; undefined when it is gone. */
  const live = async (name: string): Promise<Namespace | undefined> => {
    try {
      return await client.get(namespaces, { name });
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  };
  /** Writes what `change` makes of the live namespace; undefined leaves it. */
  const write = (
    name: string,
    subresource: string,
    change: (namespace: Namespace) => Namespace | undefined,
  ): Promise<Namespace | undefined> =>
    retryOnConflict(async () => {
      const now = await live(name);
      const next = now && change(now);
      return next ? client.update(namespaces, next, { subresource }) : now;
    });
  const finalize = async (name: string, uid: string | undefined): Promise<void> => {
    try {
      await write(name, 'finalize', (namespace) => {
        if (namespace.metadata.uid !== uid || isFinalized(namespace)) return undefined;
        const left =
          namespace.spec.finalizers?.filter((finalizer) => finalizer !== finalizers.kubernetes) ?? [];
        return { ...namespace, spec: { ...namespace.spec, finalizers: left } };
      });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  };
  const reconcile = async (name: string) => {
    if (!namespaceInformer.get(name)?.metadata.deletionTimestamp) return undefined;
    const terminating = await write(name, 'status', (namespace) =>
      !namespace.metadata.deletionTimestamp || namespace.status?.phase === 'Terminating'
        ? undefined
        : { ...namespace, status: { ...namespace.status, phase: 'Terminating' } },
    );
    if (!terminating?.metadata.deletionTimestamp || isFinalized(terminating)) return undefined;
    const pass = await deleteContent(client, name);
    try {
      await write(name, 'status', (namespace) => {
        const status = nextStatus(namespace, pass, clock.now());
        return status && { ...namespace, status };
      });
    } catch (error) {
      if (!isConflict(error) && !isNotFound(error)) throw error;
    }
    const failures = [...pass.discoveryFailures.map(({ error }) => error), ...pass.deletionFailures];
    if (failures.length > 0)
      throw new OperationalError(`namespace ${name} could not be emptied: ${failures.join(', ')}`);
    if (pass.remaining.length > 0) return { requeueAfter: (Math.floor(pass.estimate / 2) + 1) * 1000 };
    await finalize(name, terminating.metadata.uid);
    return undefined;
  };
  const watch = (on: Arrange, queue: WorkQueue): void => {
    const terminates = (namespace: Namespace | undefined): boolean =>
      namespace?.metadata.deletionTimestamp !== undefined;
    on(namespaceInformer, {
      added: (namespace) => terminates(namespace) && queue.add(namespace.metadata.name),
      updated(old, namespace) {
        if (terminates(namespace) && !terminates(old)) queue.add(namespace.metadata.name);
      },
    });
    // The rest waits for the last pod.
    on(podInformer, {
      deleted({ metadata }) {
        const name = metadata.namespace ?? '';
        if (terminates(namespaceInformer.get(name))) queue.add(name);
      },
    });
  };
  return createLoop({ name: 'namespace', context, workers: WORKERS, watch, reconcile });
}
