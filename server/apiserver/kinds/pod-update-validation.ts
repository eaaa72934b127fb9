import { type Container, deepEqual, type FieldError, type Pod, type Toleration } from '#server/kube';
import { forbiddenField, invalidValue, required } from './field-errors.ts';

export const MUTABLE_POD_FIELDS =
  'pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)';

function imageErrors(next: readonly Container[], old: readonly Container[], field: string): FieldError[] {
  if (next.length !== old.length)
    return [forbiddenField(field, 'pod updates may not add or remove containers')];
  return next.flatMap((container, index) => {
    const at = `${field}[${index}].image`;
    if (!container.image) return [required(at)];
    if (container.image.trim() === container.image) return [];
    return [invalidValue(at, container.image, 'must not have leading or trailing whitespace')];
  });
}

function deadlineErrors(next: number | undefined, old: number | undefined): FieldError[] {
  if (next === old || old === undefined) return [];
  const field = 'spec.activeDeadlineSeconds';
  if (next === undefined)
    return [invalidValue(field, null, `must not update from a positive integer to nil value`)];
  return next > old ? [invalidValue(field, next, 'must be less than or equal to previous value')] : [];
}

/** Existing tolerations stay, but for how long; new ones may come. */
function tolerationUpdateErrors(next: readonly Toleration[], old: readonly Toleration[]): FieldError[] {
  const bare = ({ tolerationSeconds: _, ...rest }: Toleration): unknown => rest;
  const kept = old.every((toleration) => next.some((one) => deepEqual(bare(one), bare(toleration))));
  if (kept) return [];
  return [
    forbiddenField(
      'spec.tolerations',
      'existing toleration can not be modified except its tolerationSeconds',
    ),
  ];
}

function gateErrors(pod: Pod, old: Pod): FieldError[] {
  const known = new Set((old.spec.schedulingGates ?? []).map((gate) => gate.name));
  const added = (pod.spec.schedulingGates ?? []).find((gate) => !known.has(gate.name));
  if (!added) return [];
  return [
    forbiddenField(
      'spec.schedulingGates',
      `only deletion is allowed, but found new scheduling gate '${added.name}'`,
    ),
  ];
}

function ephemeralUpdateErrors(pod: Pod, old: Pod): FieldError[] {
  const next = new Map((pod.spec.ephemeralContainers ?? []).map((container) => [container.name, container]));
  return (old.spec.ephemeralContainers ?? []).flatMap((container) => {
    const now = next.get(container.name);
    const name = JSON.stringify(container.name);
    if (!now) {
      return [
        forbiddenField(
          'spec.ephemeralContainers',
          `existing ephemeral containers ${name} may not be removed\n`,
        ),
      ];
    }
    if (deepEqual(now, container)) return [];
    return [
      forbiddenField(
        'spec.ephemeralContainers',
        `existing ephemeral containers ${name} may not be changed\n`,
      ),
    ];
  });
}

/** The new spec with what may change set back to the old; what still differs may not change. */
function rest(pod: Pod, old: Pod): unknown {
  const images = (
    next: readonly Container[] | undefined,
    before: readonly Container[] | undefined,
  ): Container[] | undefined =>
    next?.map((container, index) => {
      const was = before?.[index]?.image;
      const { image: _, ...others } = container;
      return was === undefined ? others : { ...others, image: was };
    });
  const {
    tolerations,
    activeDeadlineSeconds,
    ephemeralContainers,
    schedulingGates,
    terminationGracePeriodSeconds,
  } = old.spec;
  const grace =
    (terminationGracePeriodSeconds ?? 0) < 0 && pod.spec.terminationGracePeriodSeconds === 1
      ? terminationGracePeriodSeconds
      : pod.spec.terminationGracePeriodSeconds;
  return {
    ...pod.spec,
    containers: images(pod.spec.containers, old.spec.containers),
    initContainers: images(pod.spec.initContainers, old.spec.initContainers),
    tolerations,
    activeDeadlineSeconds,
    ephemeralContainers,
    schedulingGates,
    terminationGracePeriodSeconds: grace,
    ...(old.spec.schedulingGates?.length
      ? { nodeSelector: old.spec.nodeSelector, affinity: old.spec.affinity }
      : {}),
  };
}

/** Models ValidatePodUpdate (and ValidatePodEphemeralContainersUpdate, whose writes change nothing else). */
export function podUpdateErrors(pod: Pod, old: Pod): FieldError[] {
  const errors = imageErrors(pod.spec.containers ?? [], old.spec.containers ?? [], 'spec.containers');
  errors.push(
    ...imageErrors(pod.spec.initContainers ?? [], old.spec.initContainers ?? [], 'spec.initContainers'),
  );
  if (errors.some((error) => error.detail === 'pod updates may not add or remove containers')) return errors;
  errors.push(...deadlineErrors(pod.spec.activeDeadlineSeconds, old.spec.activeDeadlineSeconds));
  errors.push(...tolerationUpdateErrors(pod.spec.tolerations ?? [], old.spec.tolerations ?? []));
  errors.push(...gateErrors(pod, old), ...ephemeralUpdateErrors(pod, old));
  if (errors.length === 0 && !deepEqual(rest(pod, old), old.spec))
    errors.push(forbiddenField('spec', MUTABLE_POD_FIELDS));
  return errors;
}
