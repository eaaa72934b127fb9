import type { Pod } from '#server/kube';

/** What of a pod is known only on its node. */
export interface NodeSide {
  podIPs?: readonly string[];
  hostIP?: string | undefined;
  nodeName?: string;
}

/**
 * The value a fieldRef names; undefined when it is no field a pod can show. Models pkg/fieldpath and the kubelet's
 * podFieldSelectorRuntimeValue.
 */
export function fieldValue(pod: Pod, path: string, node: NodeSide): string | undefined {
  const subscript = /^metadata\.(annotations|labels)\['(.+)'\]$/.exec(path);
  if (subscript) {
    const values = subscript[1] === 'labels' ? pod.metadata.labels : pod.metadata.annotations;
    return values?.[subscript[2] ?? ''] ?? '';
  }
  switch (path) {
    case 'metadata.name':
      return pod.metadata.name;
    case 'metadata.namespace':
      return pod.metadata.namespace ?? '';
    case 'metadata.uid':
      return pod.metadata.uid ?? '';
    case 'metadata.labels':
      return formatMap(pod.metadata.labels);
    case 'metadata.annotations':
      return formatMap(pod.metadata.annotations);
    case 'spec.nodeName':
      return pod.spec.nodeName ?? node.nodeName ?? '';
    case 'spec.serviceAccountName':
      return pod.spec.serviceAccountName ?? '';
    case 'status.hostIP':
    case 'status.hostIPs':
      return node.hostIP ?? '';
    case 'status.podIP':
      return node.podIPs?.[0] ?? '';
    case 'status.podIPs':
      return (node.podIPs ?? []).join(',');
    default:
      return undefined;
  }
}

/** `key="value"` a line, sorted, as the downward API writes maps. */
function formatMap(values: Readonly<Record<string, string>> | undefined): string {
  return Object.entries(values ?? {})
    .map(([key, value]) => `${key}=${JSON.stringify(value)}`)
    .sort()
    .join('\n');
}
