import {
  annotations,
  type DaemonSet,
  labels,
  type Node,
  type Pod,
  type PodSpec,
  type PodTemplateSpec,
  podMatchesNode,
  type Toleration,
  taints,
  untoleratedTaint,
} from '#server/kube';

const NAME_FIELD = 'metadata.name';

/** What daemons bear without asking: they run where others cannot yet or no longer. Models AddOrUpdateDaemonPodTolerations. */
function daemonTolerations({ tolerations = [], hostNetwork }: PodSpec): Toleration[] {
  const added: Toleration[] = [
    { key: taints.notReady, operator: 'Exists', effect: 'NoExecute' },
    { key: taints.unreachable, operator: 'Exists', effect: 'NoExecute' },
    { key: taints.diskPressure, operator: 'Exists', effect: 'NoSchedule' },
    { key: taints.memoryPressure, operator: 'Exists', effect: 'NoSchedule' },
    { key: taints.pidPressure, operator: 'Exists', effect: 'NoSchedule' },
    { key: taints.unschedulable, operator: 'Exists', effect: 'NoSchedule' },
    ...(hostNetwork ? [{ key: taints.networkUnavailable, operator: 'Exists', effect: 'NoSchedule' }] : []),
  ];
  const same = (a: Toleration, b: Toleration): boolean =>
    a.key === b.key &&
    a.effect === b.effect &&
    (a.operator ?? 'Equal') === b.operator &&
    (a.value ?? '') === (b.value ?? '');
  const kept = tolerations.filter((own) => !added.some((toleration) => same(own, toleration)));
  return [...kept, ...added];
}

function pinnedTo(nodeName: string, affinity: PodSpec['affinity']): NonNullable<PodSpec['affinity']> {
  const term = { matchFields: [{ key: NAME_FIELD, operator: 'In', values: [nodeName] }] };
  const required = { nodeSelectorTerms: [term] };
  return {
    ...affinity,
    nodeAffinity: { ...affinity?.nodeAffinity, requiredDuringSchedulingIgnoredDuringExecution: required },
  };
}

/** The template of a DaemonSet's pod on a node, of the revision with that hash. */
export function templateFor(set: DaemonSet, nodeName: string, hash: string): PodTemplateSpec {
  const { metadata, spec = { containers: [] } } = set.spec.template;
  const generation = set.metadata.annotations?.[annotations.daemonSetTemplateGeneration];
  return {
    metadata: {
      name: '',
      ...metadata,
      labels: {
        ...metadata?.labels,
        [labels.controllerRevisionHash]: hash,
        ...(generation ? { [labels.podTemplateGeneration]: generation } : {}),
      },
    },
    spec: { ...spec, tolerations: daemonTolerations(spec), affinity: pinnedTo(nodeName, spec.affinity) },
  };
}

/** The node a pod is on or is pinned to. */
export function targetNode(pod: Pod): string | undefined {
  if (pod.spec.nodeName) return pod.spec.nodeName;
  const terms =
    pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  const fields = terms.flatMap(({ matchFields }) => matchFields ?? []);
  return fields.find(
    ({ key, operator, values }) => key === NAME_FIELD && operator === 'In' && values?.length === 1,
  )?.values?.[0];
}

/**
 * Whether a daemon is to be started on the node, and whether one that runs there may stay.
 * Models NodeShouldRunDaemonPod.
 */
export function fits(set: DaemonSet, node: Node): { run: boolean; stay: boolean } {
  const spec = set.spec.template.spec ?? { containers: [] };
  if (spec.nodeName && spec.nodeName !== node.metadata.name) return { run: false, stay: false };
  if (!podMatchesNode({ spec }, node)) return { run: false, stay: false };
  const tolerations = daemonTolerations(spec);
  const barred = (effects: string[]): boolean =>
    untoleratedTaint(node.spec.taints, tolerations, effects) !== undefined;
  if (!barred(['NoSchedule', 'NoExecute'])) return { run: true, stay: true };
  return { run: false, stay: !barred(['NoExecute']) };
}

/** Whether the pod is of the current revision. Models IsPodUpdated. */
export function isUpdated(set: DaemonSet, pod: Pod, hash: string): boolean {
  const generation = set.metadata.annotations?.[annotations.daemonSetTemplateGeneration];
  const { [labels.controllerRevisionHash]: itsHash, [labels.podTemplateGeneration]: itsGeneration } =
    pod.metadata.labels ?? {};
  return itsHash === hash || (generation !== undefined && itsGeneration === generation);
}
