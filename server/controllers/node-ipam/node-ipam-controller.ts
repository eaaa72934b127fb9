import { OperationalError } from '#server/base';
import { type Controller, type ControllerContext, createEventRecorder, type WorkQueue } from '#server/client';
import { type Arrange, createLoop } from '#server/controllers/machinery';
import { isConflict, isNotFound, type Node, nodes } from '#server/kube';
import { createCidrSet } from './cidr-set.ts';

const rangesOf = ({ spec }: Node): string[] => spec.podCIDRs ?? (spec.podCIDR ? [spec.podCIDR] : []);

/**
 * `clusterCidr`: IPv4; `nodeCidrMaskSize`: the prefix length of a node's part. Throws OperationalError when they do not
 * fit. One worker: allocation is one at a time.
 */
export function createNodeIpamController(
  context: ControllerContext,
  options: { clusterCidr: string; nodeCidrMaskSize: number },
): Controller {
  const { client, informers, clock, ids, log } = context;
  const nodeInformer = informers.informer(nodes);
  const recorder = createEventRecorder({ client, component: 'cidrAllocator', clock, ids, log });
  const cidrs = createCidrSet(options.clusterCidr, options.nodeCidrMaskSize);
  /** What each node has, by name: released when it goes, whatever its last state said. */
  const held = new Map<string, string>();

  const occupy = (node: Node): void => {
    const [cidr] = rangesOf(node);
    if (!cidr) return;
    if (cidrs.occupy(cidr)) held.set(node.metadata.name, cidr);
    else log.warn({ node: node.metadata.name, cidr }, "a node's pod range is not one of the cluster's");
  };
  const release = (name: string): void => {
    const cidr = held.get(name);
    if (!cidr) return;
    held.delete(name);
    cidrs.release(cidr);
  };
  const reconcile = async (name: string): Promise<void> => {
    const node = nodeInformer.get(name);
    if (!node) {
      release(name);
      return;
    }
    if (rangesOf(node).length > 0) {
      occupy(node);
      return;
    }
    // A range given before whose write is not seen yet is given again: the write below is the same.
    const cidr = held.get(name) ?? cidrs.next();
    if (!cidr) {
      recorder.event(node, 'Normal', 'CIDRNotAvailable', `Node ${name} status is now: CIDRNotAvailable`);
      throw new OperationalError(
        `failed to allocate cidr from cluster cidr: CIDR allocation failed; there are no remaining CIDRs left to allocate in the accepted range`,
      );
    }
    held.set(name, cidr);
    try {
      await client.patch(
        nodes,
        { name },
        {
          type: 'strategic',
          body: { spec: { podCIDR: cidr, podCIDRs: [cidr] }, metadata: { uid: node.metadata.uid } },
        },
      );
    } catch (error) {
      if (isNotFound(error) || isConflict(error)) return;
      release(name);
      recorder.event(
        node,
        'Normal',
        'CIDRAssignmentFailed',
        `Node ${name} status is now: CIDRAssignmentFailed`,
      );
      throw error;
    }
  };
  const watch = (on: Arrange, queue: WorkQueue): void => {
    on(nodeInformer, {
      added(node) {
        // Before anything is given out, all that is in use is known.
        occupy(node);
        queue.add(node.metadata.name);
      },
      updated(old, node) {
        if (rangesOf(node).length === 0 || rangesOf(old).length === 0) queue.add(node.metadata.name);
      },
      deleted: (node) => queue.add(node.metadata.name),
    });
  };
  return createLoop({ name: 'node-ipam', context, watch, reconcile, onStop: () => recorder.stop() });
}
