import type { Pod, Toleration } from '#server/kube';
import { as } from '../kind.ts';
import type { AdmissionAttributes } from './chain.ts';
import { concerns } from './refusal.ts';

/** How long pods stay on a node that is not ready or not reachable, unless they say otherwise. */
const SECONDS = 300;

function tolerates(tolerations: readonly Toleration[], key: string): boolean {
  return tolerations.some(
    (toleration) =>
      (!toleration.key || toleration.key === key) &&
      (!toleration.effect || toleration.effect === 'NoExecute'),
  );
}

/** Models kubernetes/plugin/pkg/admission/defaulttolerationseconds. */
export function admitDefaultTolerations(attributes: AdmissionAttributes): void {
  if (!attributes.object || !concerns(attributes, 'pods')) return;
  if (attributes.operation !== 'CREATE' && attributes.operation !== 'UPDATE') return;
  const { spec } = as<Pod>(attributes.object);
  const tolerations = spec.tolerations ?? [];
  const added = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable']
    .filter((key) => !tolerates(tolerations, key))
    .map((key): Toleration => ({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: SECONDS }));
  if (added.length > 0) spec.tolerations = [...tolerations, ...added];
}
