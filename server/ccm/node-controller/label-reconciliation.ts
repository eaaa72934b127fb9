import { labels, type Node } from '#server/kube';

/** Older label → present label: the older one is what counts. */
const PAIRS: readonly (readonly [string, string])[] = [
  [labels.betaZone, labels.zone],
  [labels.betaRegion, labels.region],
  [labels.betaInstanceType, labels.instanceType],
];

/**
 * The present labels that must be written so that they say what the older ones say. Where the older one is missing, the
 * pair is left alone. Models reconcileNodeLabels of k8s.io/cloud-provider/controllers/node.
 */
export function staleLabels(node: Node): Record<string, string> {
  const have = node.metadata.labels ?? {};
  const stale: Record<string, string> = {};
  for (const [older, present] of PAIRS) {
    const value = have[older];
    if (value !== undefined && have[present] !== value) stale[present] = value;
  }
  return stale;
}
