import { once } from 'node:events';
import type { KubeletApi, PodRef } from '#server/apiserver';
import { badRequest, failure, notFound, pods, type StatusError } from '#server/kube';
import { NetworkError } from '../contract.ts';
import type { Network } from '../network/contract.ts';
import type { ContainerRecord } from './container-record.ts';
import type { PodManager } from './pod-manager.ts';
import type { PodWorker } from './pod-worker.ts';

/** logs, exec, attach and port-forward of one node's pods. Models pkg/kubelet/server and kubelet_pods.go. */
export function createKubeletServer(options: {
  manager: PodManager;
  network: Network;
  hostIP: string;
}): KubeletApi {
  const { manager } = options;
  const find = (ref: PodRef): PodWorker => {
    const worker = manager.find(ref.namespace, ref.name);
    if (!worker) throw notFound(pods, ref.name);
    return worker;
  };
  const recordOf = (worker: PodWorker, container: string): ContainerRecord | undefined =>
    worker.records.find((record) => record.name === container);
  const running = (ref: PodRef, container: string): NonNullable<ContainerRecord['run']> => {
    const run = recordOf(find(ref), container)?.run;
    if (!run) throw failure(404, 'NotFound', `container not found ("${container}")`);
    return run;
  };
  return {
    async logs(ref, container, logOptions, signal) {
      const record = recordOf(find(ref), container);
      if (!record) throw badRequest(`container "${container}" in pod "${ref.name}" is not available`);
      const log = logOptions.previous ? record.previousLog : record.log;
      if (logOptions.previous && !log)
        throw badRequest(`previous terminated container "${container}" in pod "${ref.name}" not found`);
      if (!log) throw notStarted(record, ref.name);
      return log.read(logOptions, signal);
    },
    exec: async (ref, container, command, io) => running(ref, container).exec(command, io),
    attach: async (ref, container, io) => running(ref, container).attach(io),
    async portForward(ref, port) {
      const worker = find(ref);
      const ip = worker.pod.spec.hostNetwork ? options.hostIP : (worker.pod.status?.podIP ?? '');
      const loopback = options.network.attach({
        kind: 'external',
        ips: [`port-forward-${worker.uid}-${sequence()}`],
      });
      try {
        const stream = await loopback.connect(ip, port);
        void once(stream, 'close').then(
          () => loopback.detach(),
          () => loopback.detach(),
        );
        return stream;
      } catch (error) {
        loopback.detach();
        if (!(error instanceof NetworkError)) throw error;
        throw failure(
          500,
          'InternalError',
          `error forwarding port ${port} to pod ${worker.uid}, uid : failed to execute portforward in network namespace: failed to connect to localhost:${port} inside namespace "${worker.uid}", IPv4: dial tcp4 127.0.0.1:${port}: connect: connection refused IPv6 dial tcp6: address localhost: no suitable address found`,
        );
      }
    },
  };
}

let forwards = 0;

function sequence(): number {
  forwards += 1;
  return forwards;
}

function notStarted(record: ContainerRecord, pod: string): StatusError {
  const reason = record.state.waiting?.reason;
  const where = `container "${record.name}" in pod "${pod}" is`;
  if (reason === 'ErrImagePull') return badRequest(`${where} waiting to start: image can't be pulled`);
  if (reason === 'ImagePullBackOff')
    return badRequest(`${where} waiting to start: trying and failing to pull image`);
  if (reason !== undefined) return badRequest(`${where} waiting to start: ${reason}`);
  return badRequest(
    record.state.terminated ? `${where} terminated` : `${where} waiting to start - no logs yet`,
  );
}
