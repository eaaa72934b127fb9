import type { Logger } from '#server/base';
import { badRequest, failure, type Node, notFound, type Pod } from '#server/kube';
import type { Chain } from '../chain.ts';
import { as } from '../kind.ts';
import type { KubeletApi, KubeletDirectory, PodRef } from '../kubelet-api.ts';
import type { Operation } from '../registry/operation.ts';

export interface StreamEnvironment {
  chain: Chain;
  kubelets: KubeletDirectory;
  log: Logger;
}

/** A container somebody wants to talk to. */
export interface Target {
  readonly ref: PodRef;
  readonly container: string;
  /** Undefined: the pod is on no node yet. */
  readonly nodeName: string | undefined;
}

/**
 * The pod and container a request names. Throws 404 and 400 in upstream's words.
 * Models LogLocation and streamLocation of kubernetes/pkg/registry/core/pod/strategy.go.
 */
export function targetOf({ chain }: StreamEnvironment, op: Operation): Target {
  const name = op.name ?? '';
  const found = chain.env.facilities.read(op.kind, op.namespace, name);
  if (!found) throw notFound(op.kind, name);
  const pod = as<Pod>(found);
  const ref = { namespace: op.namespace ?? '', name, uid: pod.metadata.uid ?? '' };
  return {
    ref,
    container: containerOf(pod, op.query['container'] ?? ''),
    nodeName: pod.spec.nodeName || undefined,
  };
}

function containerOf(pod: Pod, asked: string): string {
  const names = pod.spec.containers.map((container) => container.name);
  const initNames = (pod.spec.initContainers ?? []).map((container) => container.name);
  if (asked) {
    const ephemeral = (pod.spec.ephemeralContainers ?? []).map((container) => container.name);
    if ([...names, ...initNames, ...ephemeral].includes(asked)) return asked;
    throw badRequest(`container ${asked} is not valid for pod ${pod.metadata.name}`);
  }
  const [only] = names;
  if (names.length === 1 && only !== undefined) return only;
  let message = `a container name must be specified for pod ${pod.metadata.name}`;
  if (names.length > 0) message += `, choose one of: [${names.join(' ')}]`;
  if (initNames.length > 0) message += ` or one of the init containers: [${initNames.join(' ')}]`;
  throw badRequest(message);
}

/** The kubelet of the pod's node. Throws 500 as a proxy that cannot dial. */
export function kubeletOf(
  env: StreamEnvironment,
  nodeName: string,
  path: string,
  dialing: boolean,
): KubeletApi {
  const kubelet = env.kubelets.kubelet(nodeName);
  if (kubelet) return kubelet;
  const node = env.chain.env.facilities.read({ group: '', plural: 'nodes' }, undefined, nodeName);
  const address =
    node && as<Node>(node).status?.addresses?.find(({ type }) => type === 'InternalIP')?.address;
  if (!node)
    throw failure(404, 'NotFound', `nodes "${nodeName}" not found`, { name: nodeName, kind: 'nodes' });
  const where = `${address ?? nodeName}:10250`;
  const refused = `dial tcp ${where}: connect: connection refused`;
  const message = dialing ? `error dialing backend: ${refused}` : `Get "https://${where}${path}": ${refused}`;
  throw failure(500, 'InternalError', dialing ? message : `Internal error occurred: ${message}`, {
    causes: [{ message }],
  });
}
