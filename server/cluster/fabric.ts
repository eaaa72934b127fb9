import type { KubeletApi, KubeletDirectory } from '#server/apiserver';
import type { Clock, Logger } from '#server/base';
import { createNetwork, type Network } from '#server/node';

/** Path of the management cluster. */
export const MANAGEMENT = 'management';

/** What the machines of one cluster share: their network, and how their API server finds the kubelets. */
export interface ClusterFabric {
  readonly network: Network;
  readonly kubelets: KubeletDirectory;
  /** A kubelet is reachable from now until disposed. */
  addKubelet(nodeName: string, api: KubeletApi): { dispose(): void };
  /** A machine of this cluster is on; the fabric goes when the last one is off. */
  enter(): { dispose(): void };
}

/** The fabrics of this process by cluster path, made when the first machine of a cluster boots. */
export interface Fabrics {
  of(path: string): ClusterFabric;
}

export function createFabrics(options: { clock: Clock; log: Logger }): Fabrics {
  const fabrics = new Map<string, ClusterFabric>();
  return {
    of(path) {
      const known = fabrics.get(path);
      if (known) return known;
      const fabric = createFabric({ ...options, onEmpty: () => fabrics.delete(path) });
      fabrics.set(path, fabric);
      return fabric;
    },
  };
}

function createFabric(options: { clock: Clock; log: Logger; onEmpty: () => void }): ClusterFabric {
  const network = createNetwork({ clock: options.clock, log: options.log });
  const kubelets = new Map<string, KubeletApi>();
  let machines = 0;
  return {
    network,
    kubelets: { kubelet: (nodeName) => kubelets.get(nodeName) },
    addKubelet(nodeName, api) {
      kubelets.set(nodeName, api);
      return {
        dispose() {
          if (kubelets.get(nodeName) === api) kubelets.delete(nodeName);
        },
      };
    },
    enter() {
      machines++;
      let left = false;
      return {
        dispose() {
          if (left) return;
          left = true;
          machines--;
          if (machines > 0) return;
          options.onEmpty();
          network.stop();
        },
      };
    },
  };
}
