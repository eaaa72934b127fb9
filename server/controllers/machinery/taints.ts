import type { Taint, Toleration } from '#server/kube';

/** Same key and effect: at most one such taint can be on a node. */
export function sameTaint(a: Pick<Taint, 'key' | 'effect'>, b: Pick<Taint, 'key' | 'effect'>): boolean {
  return a.key === b.key && a.effect === b.effect;
}

/** Whether the toleration bears the taint. Models Toleration.ToleratesTaint of k8s.io/api/core/v1. */
export function tolerates(toleration: Toleration, taint: Taint): boolean {
  if (toleration.effect && toleration.effect !== taint.effect) return false;
  if (toleration.key && toleration.key !== taint.key) return false;
  switch (toleration.operator ?? 'Equal') {
    case '':
    case 'Equal':
      return (toleration.value ?? '') === (taint.value ?? '');
    case 'Exists':
      return true;
    default:
      return false;
  }
}

/** The first of the taints with one of the effects that none of the tolerations bears. */
export function untoleratedTaint(
  taints: readonly Taint[] | undefined,
  tolerations: readonly Toleration[] | undefined,
  effects: readonly string[],
): Taint | undefined {
  return taints?.find(
    (taint) =>
      effects.includes(taint.effect) && !tolerations?.some((toleration) => tolerates(toleration, taint)),
  );
}
