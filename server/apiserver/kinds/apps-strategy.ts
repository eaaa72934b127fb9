import {
  type ControllerRevision,
  type DaemonSet,
  type Deployment,
  deepEqual,
  type FieldError,
  type PodTemplateSpec,
  type ReplicaSet,
} from '#server/kube';
import { as, type Strategy } from '../kind.ts';
import {
  forbiddenField,
  IMMUTABLE,
  invalidValue,
  nonNegative,
  notSupported,
  required,
} from './field-errors.ts';
import { defaultPodTemplate } from './pod-defaults.ts';
import { podSpecWarnings } from './pod-warnings.ts';
import {
  countOrPercentErrors,
  isZeroCount,
  selectorAndTemplateErrors,
  selectorUpdateErrors,
} from './workload-validation.ts';

/** What apps/v1 still shows of a field that left the API: how often a DaemonSet's template changed. */
const TEMPLATE_GENERATION = 'deprecated.daemonset.template.generation';

function templateWarnings(template: PodTemplateSpec): string[] {
  return template.spec ? podSpecWarnings(template.spec, 'spec.template.spec') : [];
}

function deploymentStrategyErrors({ spec }: Deployment): FieldError[] {
  const { strategy } = spec;
  const field = 'spec.strategy';
  if (strategy?.type === 'Recreate') {
    if (!strategy.rollingUpdate) return [];
    return [
      forbiddenField(`${field}.rollingUpdate`, "may not be specified when strategy `type` is 'Recreate'"),
    ];
  }
  if (strategy?.type !== 'RollingUpdate')
    return [notSupported(`${field}.type`, strategy?.type ?? '', ['Recreate', 'RollingUpdate'])];
  const rolling = strategy.rollingUpdate;
  if (!rolling) return [required(`${field}.rollingUpdate`, 'this should be defaulted and never be nil')];
  const errors = [
    ...countOrPercentErrors(rolling.maxUnavailable, `${field}.rollingUpdate.maxUnavailable`, false),
    ...countOrPercentErrors(rolling.maxSurge, `${field}.rollingUpdate.maxSurge`, false),
  ];
  if (isZeroCount(rolling.maxUnavailable) && isZeroCount(rolling.maxSurge)) {
    const why = 'may not be 0 when `maxSurge` is 0';
    errors.push(invalidValue(`${field}.rollingUpdate.maxUnavailable`, rolling.maxUnavailable ?? 0, why));
  }
  errors.push(...countOrPercentErrors(rolling.maxUnavailable, `${field}.rollingUpdate.maxUnavailable`, true));
  return errors;
}

/** Models ValidateDeployment of kubernetes/pkg/apis/apps/validation. */
function deploymentErrors(deployment: Deployment): FieldError[] {
  const { spec } = deployment;
  const errors = nonNegative(spec.replicas, 'spec.replicas');
  errors.push(...selectorAndTemplateErrors(spec.selector, spec.template, 'deployment'));
  errors.push(...deploymentStrategyErrors(deployment));
  errors.push(...nonNegative(spec.minReadySeconds, 'spec.minReadySeconds'));
  errors.push(...nonNegative(spec.revisionHistoryLimit, 'spec.revisionHistoryLimit'));
  const deadline = spec.progressDeadlineSeconds;
  errors.push(...nonNegative(deadline, 'spec.progressDeadlineSeconds'));
  if (deadline !== undefined && deadline <= (spec.minReadySeconds ?? 0)) {
    errors.push(
      invalidValue('spec.progressDeadlineSeconds', deadline, 'must be greater than minReadySeconds'),
    );
  }
  return errors;
}

export const deploymentStrategy: Strategy = {
  allowUnconditionalUpdate: true,
  defaults(object) {
    const { spec } = as<Deployment>(object);
    spec.replicas ??= 1;
    spec.strategy ??= {};
    spec.strategy.type ||= 'RollingUpdate';
    if (spec.strategy.type === 'RollingUpdate') {
      spec.strategy.rollingUpdate ??= {};
      spec.strategy.rollingUpdate.maxUnavailable ??= '25%';
      spec.strategy.rollingUpdate.maxSurge ??= '25%';
    }
    spec.revisionHistoryLimit ??= 10;
    spec.progressDeadlineSeconds ??= 600;
    defaultPodTemplate(spec.template);
  },
  prepareForCreate(object) {
    as<Deployment>(object).status = {};
  },
  validate: (object) => deploymentErrors(as<Deployment>(object)),
  validateUpdate(object, old) {
    const deployment = as<Deployment>(object);
    return [
      ...deploymentErrors(deployment),
      ...selectorUpdateErrors(deployment.spec.selector, as<Deployment>(old).spec.selector),
    ];
  },
  warnings: (object) => templateWarnings(as<Deployment>(object).spec.template),
};

/** Models ValidateReplicaSet. */
function replicaSetErrors({ spec }: ReplicaSet): FieldError[] {
  return [
    ...nonNegative(spec.replicas, 'spec.replicas'),
    ...nonNegative(spec.minReadySeconds, 'spec.minReadySeconds'),
    ...selectorAndTemplateErrors(spec.selector, spec.template ?? {}, 'deployment'),
  ];
}

export const replicaSetStrategy: Strategy = {
  allowUnconditionalUpdate: true,
  defaults(object) {
    const { spec } = as<ReplicaSet>(object);
    spec.replicas ??= 1;
    if (spec.template) defaultPodTemplate(spec.template);
  },
  prepareForCreate(object) {
    as<ReplicaSet>(object).status = { replicas: 0 };
  },
  validate: (object) => replicaSetErrors(as<ReplicaSet>(object)),
  validateUpdate(object, old) {
    const set = as<ReplicaSet>(object);
    return [
      ...replicaSetErrors(set),
      ...selectorUpdateErrors(set.spec.selector, as<ReplicaSet>(old).spec.selector),
    ];
  },
  warnings: (object) => templateWarnings(as<ReplicaSet>(object).spec.template ?? {}),
};

function updateStrategyErrors({ spec }: DaemonSet): FieldError[] {
  const field = 'spec.updateStrategy';
  const strategy = spec.updateStrategy;
  if (strategy?.type === 'OnDelete') return [];
  if (strategy?.type !== 'RollingUpdate')
    return [notSupported(`${field}.type`, strategy?.type ?? '', ['OnDelete', 'RollingUpdate'])];
  const rolling = strategy.rollingUpdate;
  if (!rolling) return [required(`${field}.rollingUpdate`)];
  const at = `${field}.rollingUpdate`;
  const errors = [
    ...countOrPercentErrors(rolling.maxUnavailable, `${at}.maxUnavailable`, true),
    ...countOrPercentErrors(rolling.maxSurge, `${at}.maxSurge`, true),
  ];
  const unavailable = !isZeroCount(rolling.maxUnavailable);
  const surge = !isZeroCount(rolling.maxSurge);
  if (unavailable && surge) {
    errors.push(
      invalidValue(`${at}.maxSurge`, rolling.maxSurge, 'may not be set when maxUnavailable is non-zero'),
    );
  } else if (!unavailable && !surge) {
    errors.push(required(`${at}.maxUnavailable`, 'cannot be 0 when maxSurge is 0'));
  }
  return errors;
}

/** Models ValidateDaemonSet. */
function daemonSetErrors(set: DaemonSet): FieldError[] {
  const { spec } = set;
  return [
    ...selectorAndTemplateErrors(spec.selector, spec.template, 'daemonset'),
    ...nonNegative(spec.minReadySeconds, 'spec.minReadySeconds'),
    ...updateStrategyErrors(set),
    ...nonNegative(spec.revisionHistoryLimit, 'spec.revisionHistoryLimit'),
  ];
}

export const daemonSetStrategy: Strategy = {
  allowUnconditionalUpdate: true,
  defaults(object) {
    const { spec } = as<DaemonSet>(object);
    spec.updateStrategy ??= {};
    spec.updateStrategy.type ||= 'RollingUpdate';
    if (spec.updateStrategy.type === 'RollingUpdate') {
      spec.updateStrategy.rollingUpdate ??= {};
      spec.updateStrategy.rollingUpdate.maxUnavailable ??= 1;
      spec.updateStrategy.rollingUpdate.maxSurge ??= 0;
    }
    spec.revisionHistoryLimit ??= 10;
    defaultPodTemplate(spec.template);
  },
  prepareForCreate(object) {
    const set = as<DaemonSet>(object);
    set.metadata.annotations = { ...set.metadata.annotations, [TEMPLATE_GENERATION]: '1' };
    set.status = {
      currentNumberScheduled: 0,
      desiredNumberScheduled: 0,
      numberMisscheduled: 0,
      numberReady: 0,
    };
  },
  prepareForUpdate(object, old, context) {
    if (context.subresource) return;
    const [set, before] = [as<DaemonSet>(object), as<DaemonSet>(old)];
    const last = Number(before.metadata.annotations?.[TEMPLATE_GENERATION] ?? 1);
    const next = deepEqual(set.spec.template, before.spec.template) ? last : last + 1;
    set.metadata.annotations = { ...set.metadata.annotations, [TEMPLATE_GENERATION]: String(next) };
  },
  validate: (object) => daemonSetErrors(as<DaemonSet>(object)),
  validateUpdate(object, old) {
    const set = as<DaemonSet>(object);
    return [
      ...daemonSetErrors(set),
      ...selectorUpdateErrors(set.spec.selector, as<DaemonSet>(old).spec.selector),
    ];
  },
  warnings: (object) => templateWarnings(as<DaemonSet>(object).spec.template),
};

function revisionErrors(revision: ControllerRevision): FieldError[] {
  const errors = nonNegative(revision.revision, 'revision');
  if (revision.data === undefined) errors.push(required('data', 'data is mandatory'));
  return errors;
}

export const controllerRevisionStrategy: Strategy = {
  allowUnconditionalUpdate: true,
  validate: (object) => revisionErrors(as<ControllerRevision>(object)),
  validateUpdate(object, old) {
    const [revision, before] = [as<ControllerRevision>(object), as<ControllerRevision>(old)];
    const errors = revisionErrors(revision);
    if (!deepEqual(revision.data, before.data)) errors.push(invalidValue('data', revision.data, IMMUTABLE));
    return errors;
  },
};
