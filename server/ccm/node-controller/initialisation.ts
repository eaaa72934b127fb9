import { labels, type Node, type Taint, taints } from '#server/kube';
import type { InstanceMetadata } from '../contract.ts';
import type { Klog } from '../klog.ts';

/** A change to a node that may be made again, on a newer state of it. */
export type NodeModifier = (node: Node) => Node;

/** By key alone: neither value nor effect matter. */
export function isUninitialized(node: Node): boolean {
  return (node.spec.taints ?? []).some(isCloudTaint);
}

function isCloudTaint(taint: Taint): boolean {
  return taint.key === taints.uninitialized;
}

const KUBERNETES_LABEL = /(^|\.)(kubernetes|k8s)\.io\//;

/**
 * What the cloud's answer about an uninitialised node makes of it: the provider ID when `node` has none, labels, and no
 * taint any more. Models syncNode and getNodeModifiersFromCloudProvider of k8s.io/cloud-provider/controllers/node.
 */
export function initialisation(node: Node, metadata: InstanceMetadata, log: Klog): NodeModifier {
  // Decided on the node as it was when the cloud was asked: a provider ID that comes later makes the write fail.
  const { providerID } = metadata;
  const spec = !node.spec.providerID && providerID ? { providerID } : {};
  const fromCloud = cloudLabels(metadata);
  for (const [key, value] of Object.entries(fromCloud)) {
    if (log.enabled(2))
      log.info('node_controller.go:512', `Adding node label from cloud provider: ${key}=${value}`);
  }
  return (current) => {
    const nodeLabels = withAdditional({ ...current.metadata.labels, ...fromCloud }, metadata, log);
    const { taints: before = [], ...rest } = current.spec;
    const left = before.filter((taint) => !isCloudTaint(taint));
    return {
      ...current,
      metadata: {
        ...current.metadata,
        ...(Object.keys(nodeLabels).length > 0 ? { labels: nodeLabels } : {}),
      },
      spec: { ...rest, ...spec, ...(left.length > 0 ? { taints: left } : {}) },
    };
  };
}

/** Each fact under its older and its present label. */
function cloudLabels({ instanceType, zone, region }: InstanceMetadata): Record<string, string> {
  return {
    ...(instanceType ? { [labels.betaInstanceType]: instanceType, [labels.instanceType]: instanceType } : {}),
    ...(zone ? { [labels.betaZone]: zone, [labels.zone]: zone } : {}),
    ...(region ? { [labels.betaRegion]: region, [labels.region]: region } : {}),
  };
}

/** Additional labels never stand in Kubernetes' own namespaces and never replace what is there. */
function withAdditional(
  nodeLabels: Record<string, string>,
  { additionalLabels = {} }: InstanceMetadata,
  log: Klog,
): Record<string, string> {
  for (const [key, value] of Object.entries(additionalLabels)) {
    if (KUBERNETES_LABEL.test(key)) {
      log.warning('node_controller.go:557', `Discarding node label ${key} with kubernetes namespace`);
    } else if (nodeLabels[key] === undefined) {
      nodeLabels[key] = value;
    } else if (nodeLabels[key] !== value) {
      log.warning('node_controller.go:561', `Discarding node label ${key} that is already present`);
    }
  }
  return nodeLabels;
}
