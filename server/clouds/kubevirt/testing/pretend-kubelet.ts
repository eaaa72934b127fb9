import { Writable } from 'node:stream';
import type { Clock } from '#server/base';
import type { Client } from '#server/client';
import { isNotFound, type Pod, pods } from '#server/kube';
import type { VirtLaunchers } from '../launcher.ts';

type Process = Parameters<VirtLaunchers['program']['run']>[0];

export interface PretendKubelet {
  stop(): void;
  /** While set, pods are neither bound nor run; their status becomes this. */
  hold: object | undefined;
}

/** Scheduler and kubelet of the management cluster: binds virt-launcher pods, runs their program, removes deleted ones. */
export function startPretendKubelet(client: Client, launchers: VirtLaunchers, clock: Clock): PretendKubelet {
  const running = new Map<string, { terminate(): void; kill(): void }>();
  let address = 10;

  const patchStatus = async (pod: Pod, status: object): Promise<void> => {
    try {
      await client.patch(
        pods,
        { namespace: pod.metadata.namespace, name: pod.metadata.name },
        { type: 'merge', body: status },
        { subresource: 'status' },
      );
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  };

  const kubelet: PretendKubelet = { hold: undefined, stop: () => watch.stop() };

  const run = async (pod: Pod): Promise<void> => {
    if (kubelet.hold) {
      await patchStatus(pod, { status: kubelet.hold });
      return;
    }
    const abort = new AbortController();
    const handlers: ((signal: 'SIGTERM') => void)[] = [];
    const process: Partial<Process> = {
      argv: pod.spec.containers[0]?.command ?? [],
      stdout: new Writable({ write: (_chunk, _encoding, done) => done() }),
      clock,
      signal: abort.signal,
      onSignal: (handler) => void handlers.push(handler),
    };
    running.set(pod.metadata.uid ?? '', {
      terminate: () => handlers.forEach((handler) => handler('SIGTERM')),
      kill: () => abort.abort(),
    });
    const exit = launchers.program.run(process as Process);
    await client.createSubresource(
      pods,
      { namespace: pod.metadata.namespace, name: pod.metadata.name },
      'binding',
      {
        apiVersion: 'v1',
        kind: 'Binding',
        metadata: { name: pod.metadata.name },
        target: { kind: 'Node', name: 'infra-1' },
      } as Parameters<Client['createSubresource']>[3],
    );
    address += 1;
    const podIP = `10.0.1.${address}`;
    const ready = { type: 'Ready', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' };
    const compute = { name: 'compute', ready: true, restartCount: 0, image: 'x', imageID: 'x' };
    await patchStatus(pod, {
      status: {
        phase: 'Running',
        podIP,
        podIPs: [{ ip: podIP }],
        qosClass: 'Burstable',
        conditions: [ready],
        containerStatuses: [compute],
      },
    });
    const code = await exit;
    await patchStatus(pod, { status: { phase: code === 0 ? 'Succeeded' : 'Failed' } });
    const now = await client
      .get(pods, { namespace: pod.metadata.namespace, name: pod.metadata.name })
      .catch(() => undefined);
    if (now?.metadata.deletionTimestamp !== undefined)
      await client.delete(pods, now.metadata, { gracePeriodSeconds: 0 });
  };

  const handle = (type: 'ADDED' | 'MODIFIED' | 'DELETED', pod: Pod): void => {
    const uid = pod.metadata.uid ?? '';
    const known = running.get(uid);
    if (type === 'ADDED' && !known) void run(pod);
    if (type === 'MODIFIED' && pod.metadata.deletionTimestamp !== undefined) {
      if (known) known.terminate();
      else void client.delete(pods, pod.metadata, { gracePeriodSeconds: 0 });
    }
    if (type === 'DELETED') {
      known?.kill();
      running.delete(uid);
    }
  };

  const watch = client.watch(
    pods,
    {},
    ({ type, object }) => {
      if (type === 'BOOKMARK') return;
      // Later: a write from within a watch callback would overtake the event it answers.
      queueMicrotask(() => handle(type, object));
    },
    () => undefined,
  );
  return kubelet;
}
