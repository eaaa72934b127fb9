import type { Client } from '#server/client';
import { formatTime, type Pod, pods } from '#server/kube';

export interface Kubelet {
  /** Pods for which this is false stay as they are. Default: all become ready. */
  accepts(pod: Pod): boolean;
  stop(): void;
}

/** Binds every pod and reports it ready; removes pods being deleted: scheduler and kubelet as a controller sees them. */
export function actAsKubelet(client: Client, accepts: (pod: Pod) => boolean = () => true): Kubelet {
  const addresses = new Map<string, string>();
  const kubelet: Kubelet = { accepts, stop: () => watch.stop() };
  const serve = async (pod: Pod): Promise<void> => {
    const ref = { namespace: pod.metadata.namespace, name: pod.metadata.name };
    if (pod.metadata.deletionTimestamp) {
      await client.delete(pods, ref, { gracePeriodSeconds: 0 });
      return;
    }
    if (pod.status?.phase === 'Running' || !kubelet.accepts(pod)) return;
    if (!pod.spec.nodeName) {
      await client.createSubresource(pods, ref, 'binding', {
        apiVersion: 'v1',
        kind: 'Binding',
        metadata: { name: pod.metadata.name },
        target: { kind: 'Node', name: 'worker' },
      } as never);
    }
    const now = formatTime(Date.now());
    const uid = pod.metadata.uid ?? '';
    const ip = addresses.get(uid) ?? `10.244.0.${addresses.size + 1}`;
    addresses.set(uid, ip);
    await client.patch(
      pods,
      ref,
      {
        type: 'merge',
        body: {
          status: {
            phase: 'Running',
            podIP: ip,
            podIPs: [{ ip }],
            conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: now }],
          },
        },
      },
      { subresource: 'status' },
    );
  };
  const watch = client.watch<Pod>(
    pods,
    { sendInitialEvents: true },
    (event) => {
      // A pod that is gone meanwhile, or was bound by another event, needs no service.
      if (event.type === 'ADDED' || event.type === 'MODIFIED')
        void serve(event.object).catch(() => undefined);
    },
    () => undefined,
  );
  return kubelet;
}
